import Glibc
import XCTest

@testable import ImgdlCore

private nonisolated(unsafe) var saidBySignal: Int32 = -1

/// Whether the thread at this place of /proc sleeps in the kernel.
private func isAsleep(_ place: String) -> Bool {
    guard let file = fopen("/proc/\(place)/stat", "r") else { return true }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return true }
    let text = String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: ")").last?.dropFirst().first == "S"
}

/// What epoll is told, and what it need not be told.
final class EventLoopTests: XCTestCase {
    private var loop: EventLoop!
    private var ends: [Int32] = []
    private let clock = MonotonicClock()
    /// Turns take no time, except where a test says so.
    private static let still = Instant(nanoseconds: 0)

    override func setUpWithError() throws {
        loop = try EventLoop()
        ends = try socketPair()
    }

    override func tearDown() {
        for end in ends { close(end) }
        loop = nil
    }

    private func socketPair() throws -> [Int32] {
        var pair: [Int32] = [-1, -1]
        XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair), 0)
        return pair
    }

    private func say(_ end: Int32) { XCTAssertEqual(write(end, "x", 1), 1) }

    /// Without waiting for it.
    private func ready() -> [Int32] { ready { readable, _ in readable } }
    private func writable() -> [Int32] { ready { _, writable in writable } }

    private func ready(_ isWanted: (_ readable: Bool, _ writable: Bool) -> Bool) -> [Int32] {
        let now = clock.now()
        loop.wait(until: now, now: now)
        var ready: [Int32] = []
        loop.forEachReady(now: { now }) { if isWanted($1, $2) { ready.append($0) } }
        return ready
    }

    /// Another socket that has the first one's number is watched as any. In one step: other threads open and close
    /// descriptors, too.
    private func expectAnother(line: UInt = #line) throws {
        let other = try socketPair()
        XCTAssertEqual(dup2(other[0], ends[0]), ends[0], line: line)
        close(other[0])
        close(ends[1])
        ends[1] = other[1]
        loop.watch(ends[0], readable: true, writable: false)
        say(ends[1])
        XCTAssertEqual(ready(), [ends[0]], line: line)
    }

    /// In a crowd, one of those that want much has its turn, and each has it; who wants little always has.
    func testWhoWantsLittleGoesFirst() throws {
        var heavy: [[Int32]] = []
        let much = [UInt8](repeating: 1, count: 100_000)
        for _ in 0..<3 {
            let pair = try socketPair()
            ends += pair
            XCTAssertEqual(write(pair[1], much, much.count), much.count)
            loop.watch(pair[0], readable: true, writable: false)
            heavy.append(pair)
        }
        loop.watch(ends[0], readable: true, writable: false)
        say(ends[1])
        var turns: [Int32] = []
        for _ in 0..<3 {
            let now = clock.now()
            loop.wait(until: now, now: now)
            var ready: [Int32] = []
            loop.forEachReady(isCrowded: { true }, now: { Self.still }) { descriptor, _, _ in ready.append(descriptor) }
            XCTAssertEqual(ready.count, 2)
            XCTAssertEqual(ready.first, ends[0])
            turns.append(try XCTUnwrap(ready.last))
        }
        XCTAssertEqual(turns.sorted(), heavy.map { $0[0] }.sorted())
        XCTAssertEqual(ready().count, 4, "else all at once")
        let now = clock.now()
        loop.wait(until: now, now: now)
        var count = 0
        loop.forEachReady(isCrowded: { count > 1 }, now: { Self.still }) { _, _, _ in count += 1 }
        XCTAssertEqual(count, 2, "those that were found ready before it became one wait for their turn, too")
    }

    /// Each has its turn before anybody is said to have been silent.
    func testAllThatAreReadyAreFoundAtOnce() throws {
        var expected: Set<Int32> = []
        for _ in 0..<200 {
            let pair = try socketPair()
            ends += pair
            loop.watch(pair[0], readable: true, writable: false)
            say(pair[1])
            expected.insert(pair[0])
        }
        let now = clock.now()
        loop.wait(until: now, now: now)
        XCTAssertLessThan(loop.heardUntil, now, "nobody has had a turn")
        var found: Set<Int32> = []
        loop.forEachReady(now: { Self.still }) { descriptor, _, _ in found.insert(descriptor) }
        XCTAssertEqual(found, expected)
        XCTAssertEqual(loop.heardUntil, now)
    }

    /// In a crowd that takes several looks.
    func testWhoWaitsForItsTurnIsNotHeardOf() throws {
        let much = [UInt8](repeating: 1, count: 100_000)
        for _ in 0..<3 {
            let pair = try socketPair()
            ends += pair
            XCTAssertEqual(write(pair[1], much, much.count), much.count)
            loop.watch(pair[0], readable: true, writable: false)
        }
        let first = clock.now()
        var turns: Set<Int32> = []
        for turn in 1...3 {
            loop.wait(until: first, now: turn == 1 ? first : clock.now())
            loop.forEachReady(isCrowded: { true }, now: { Self.still }) { descriptor, _, _ in turns.insert(descriptor) }
            XCTAssertEqual(turns.count, turn, "those that have waited go first")
            XCTAssertEqual(loop.heardUntil == first, turn == 3)
        }
        // One has gone meanwhile: nobody waits for it.
        let second = clock.now()
        loop.wait(until: second, now: second)
        loop.forEachReady(isCrowded: { true }, now: { Self.still }) { _, _, _ in }
        for end in ends[2...].enumerated() where end.offset % 2 == 0 { loop.unwatch(end.element) }
        loop.wait(until: second, now: clock.now())
        loop.forEachReady(isCrowded: { true }, now: { Self.still }) { _, _, _ in }
        XCTAssertEqual(loop.heardUntil, second)
    }

    /// Twenty that have much to read, whose turns take 8 tenths of a round each: deadlines and commands are looked at after every other one,
    /// who wants little goes first, and nobody has been heard of before each has had its turn.
    func testARoundEndsInTime() throws {
        let much = [UInt8](repeating: 1, count: 100_000)
        var heavy: Set<Int32> = []
        for _ in 0..<20 {
            let pair = try socketPair()
            ends += pair
            XCTAssertEqual(write(pair[1], much, much.count), much.count)
            loop.watch(pair[0], readable: true, writable: false)
            heavy.insert(pair[0])
        }
        loop.watch(ends[0], readable: true, writable: false)
        let first = clock.now()
        var moment = first
        var had: Set<Int32> = []
        for number in 1...10 {
            XCTAssertLessThan(loop.heardUntil, first)
            loop.wait(until: first, now: number == 1 ? first : clock.now())
            var turns: [Int32] = []
            loop.forEachReady(now: { moment }) { descriptor, _, _ in
                turns.append(descriptor)
                if heavy.contains(descriptor) {
                    moment = Instant(nanoseconds: moment.nanoseconds + 8 * ReadyRounds.longest / 10)
                }
            }
            if number == 6 {
                XCTAssertEqual(turns.first, ends[0], "it has little to read")
                turns.removeFirst()
                var byte: UInt8 = 0
                XCTAssertEqual(read(ends[0], &byte, 1), 1)
            }
            if number == 5 { say(ends[1]) }
            XCTAssertEqual(turns.count, 2, "round \(number)")
            had.formUnion(turns)
            XCTAssertEqual(had.count, 2 * number, "those that have waited go first")
        }
        XCTAssertEqual(had, heavy)
        XCTAssertEqual(loop.heardUntil, first)
    }

    /// A process that was stopped, or that a debugger looked at: what is ready is asked for once more.
    func testASignalDoesNotHideWhatIsReady() throws {
        loop.watch(ends[0], readable: true, writable: false)
        saidBySignal = ends[1]
        let before = signal(SIGUSR2) { _ in _ = write(saidBySignal, "x", 1) }
        defer { signal(SIGUSR2, before) }
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGUSR2)
        pthread_sigmask(SIG_UNBLOCK, &set, nil)
        let sleeper = pthread_self()
        // Where the calling thread is, as “PID/task/TID”.
        var link = [CChar](repeating: 0, count: 64)
        XCTAssertGreaterThan(readlink("/proc/thread-self", &link, link.count - 1), 0)
        let place = String(cString: link)
        let signaller = try Thread.start(name: "signaller") {
            while !isAsleep(place) { sched_yield() }
            pthread_kill(sleeper, SIGUSR2)
        }
        XCTAssertTrue(loop.wait(until: clock.now().advanced(byMilliseconds: 20_000), now: clock.now()))
        var ready: [Int32] = []
        loop.forEachReady(now: { Self.still }) { descriptor, _, _ in ready.append(descriptor) }
        signaller.join()
        XCTAssertEqual(ready, [ends[0]])
        XCTAssertFalse(loop.wait(until: nil, now: clock.now()), "it is ready")
    }

    func testComesBackBeforeTheSleep() {
        loop.watch(ends[0], readable: true, writable: false)
        loop.rest(ends[0])
        loop.watch(ends[0], readable: true, writable: false)
        say(ends[1])
        XCTAssertEqual(ready(), [ends[0]])
        XCTAssertEqual(ready(), [ends[0]], "as long as it is ready")
    }

    func testComesBackForOtherEvents() {
        loop.watch(ends[0], readable: false, writable: true)
        loop.rest(ends[0])
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [])
        say(ends[1])
        XCTAssertEqual(ready(), [ends[0]])
    }

    /// Descriptors that epoll has, the one by which it is woken not counted.
    private func watched() throws -> Int {
        let file = try XCTUnwrap(fopen("/proc/self/fdinfo/\(loop.epoll)", "r"))
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        var count = -1
        while fgets(&line, Int32(line.count), file) != nil {
            if strncmp(line, "tfd:", 4) == 0 { count += 1 }
        }
        return count
    }

    /// A connection that rests is not told, and taken up again without a word to the kernel.
    func testRestsAcrossTheSleep() throws {
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [])
        loop.rest(ends[0])
        XCTAssertEqual(ready(), [])
        XCTAssertEqual(try watched(), 1)
        loop.watch(ends[0], readable: true, writable: false)
        say(ends[1])
        XCTAssertEqual(ready(), [ends[0]])
        loop.rest(ends[0])
        loop.watch(ends[0], readable: true, writable: true)
        XCTAssertEqual(ready(), [ends[0]])
        loop.rest(ends[0])
        XCTAssertEqual(ready(), [], "it would be ready at once")
        XCTAssertEqual(try watched(), 0)
    }

    /// A connection that nobody uses is closed by its server: the loop must not spin.
    func testIsGoneOnceBytesHaveComeWhileItRested() throws {
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [])
        loop.rest(ends[0])
        loop.rest(ends[0])
        say(ends[1])
        XCTAssertEqual(ready(), [])
        XCTAssertEqual(try watched(), 0)
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [ends[0]])
        loop.unwatch(ends[0])
        XCTAssertEqual(ready(), [])
    }

    /// Closed and opened again in one turn: another socket, which epoll does not know.
    func testANumberThatComesBack() throws {
        for _ in 0..<2 {
            loop.watch(ends[0], readable: true, writable: false)
            loop.rest(ends[0])
            loop.unwatch(ends[0])
            try expectAnother()
        }
    }

    /// What counts is what was wanted last.
    func testChangesItsMindBeforeTheSleep() {
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [])
        loop.watch(ends[0], readable: true, writable: true)
        loop.watch(ends[0], readable: false, writable: true)
        say(ends[1])
        XCTAssertEqual(ready(), [])
        loop.watch(ends[0], readable: true, writable: true)
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [ends[0]])
    }

    /// The number of a socket that was closed before it was connected is the next one's, in the same turn.
    func testANumberThatComesBackInTheSameTurn() throws {
        loop.watch(ends[0], readable: false, writable: true)
        XCTAssertEqual(writable(), [ends[0]])
        for round in 0..<2 {
            let other = try socketPair()
            XCTAssertEqual(dup2(other[0], ends[0]), ends[0])
            close(other[0])
            close(ends[1])
            ends[1] = other[1]
            loop.rest(ends[0])
            loop.watch(ends[0], readable: false, writable: true)
            XCTAssertEqual(writable(), [ends[0]], "round \(round)")
        }
    }

    /// epoll forgets a descriptor that is closed, whatever it has been told.
    func testANumberThatComesBackWithoutAWord() throws {
        loop.watch(ends[0], readable: true, writable: false)
        XCTAssertEqual(ready(), [])
        try expectAnother()
    }
}
