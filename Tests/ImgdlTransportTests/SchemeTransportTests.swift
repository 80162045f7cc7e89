import Foundation
import ImgdlCore
import Origin
import Synchronization
import XCTest

@testable import ImgdlTransport

/// A loader whose transfers the test runs.
private final class TestLoader: SchemeLoader, @unchecked Sendable {
    struct State {
        var requests: [OutgoingRequest] = []
        var receivers: [any LoadReceiver] = []
        var given = 0
        var resumed = 0
    }

    let state = Monitor(State())
    /// Inside `start`.
    var onStart: (any LoadReceiver) -> Void = { _ in }
    var onGivenUp: (any LoadReceiver) -> Void = { _ in }
    var onResume: (any LoadReceiver) -> Void = { _ in }
    var waits = false

    func start(_ request: OutgoingRequest, _ receiver: any LoadReceiver) -> LoadControls {
        state.change {
            $0.requests.append(request)
            $0.receivers.append(receiver)
        }
        onStart(receiver)
        return LoadControls(
            cancel: { [self] in
                state.change { $0.given += 1 }
                onGivenUp(receiver)
            },
            resume: { [self] in
                state.change { $0.resumed += 1 }
                onResume(receiver)
            })
    }

    var receiver: any LoadReceiver { state.read { $0.receivers.last! } }
    var givenUp: Int { state.read(\.given) }
    var resumed: Int { state.read(\.resumed) }
}

/// Transfers that do not run on the network (features K6, T06, T32, R18, L1, B23).
final class SchemeTransportTests: XCTestCase {
    private var loop: TestLoop!
    private var recorder: Recorder!
    private var loaders: SchemeLoaders!
    private var transport: SchemeTransport!
    private var loader: TestLoader!
    private var folder: String!
    private var lastID: UInt64 = 0

    override func setUpWithError() throws {
        loop = TestLoop()
        recorder = Recorder()
        loaders = SchemeLoaders()
        loader = TestLoader()
        try loaders.set(loader, for: "app")
        var configuration = TransportConfiguration(proxy: "")
        configuration.allowsFileURLs = true
        configuration.allowsDataURLs = true
        transport = SchemeTransport(
            configuration: configuration, loaders: loaders,
            network: try CurlTransport(
                configuration: configuration, loop: loop, events: recorder, resolver: ThreadedResolver()),
            loop: loop, events: recorder, clock: MonotonicClock())
        folder = NSTemporaryDirectory() + "schemes-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    override func tearDownWithError() throws {
        transport.close()
        XCTAssertEqual(loop.watched, [])
        transport = nil
        try FileManager.default.removeItem(atPath: folder)
    }

    @discardableResult
    private func start(_ url: String, method: String = "GET") throws -> TransferID {
        lastID += 1
        let id = TransferID(rawValue: lastID)
        let parsed = try transport.parse(url)
        transport.start(
            id,
            TransportRequest(
                url: parsed, method: method, fields: [HeaderField("X-Own", "1")], body: nil, maximumHeaderBytes: 1000,
                identity: RequestIdentity(credential: parsed.credential)))
        return id
    }

    private func end(_ id: TransferID, file: StaticString = #filePath, line: UInt = #line) -> TransferRecord {
        loop.run(transport, until: { recorder[id].hasEnded }, file: file, line: line)
        return recorder[id]
    }

    private func write(_ name: String, _ count: Int) throws -> (url: String, bytes: [UInt8]) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try Data(bytes).write(to: URL(fileURLWithPath: "\(folder!)/\(name)"))
        return ("file://\(folder!)/\(name)", bytes)
    }

    private func head(_ status: Int32 = 200, length: Int64? = nil, encoding: Bool = false) -> ResponseHead {
        ResponseHead(status: status, httpVersion: 0, fields: [], contentLength: length, isEncoded: encoding)
    }

    /// A loader that does not wait to be asked for more.
    func testABodyThatNobodyTakes() throws {
        let id = try start("app:x")
        loop.run(transport, until: { !loader.state.read(\.receivers).isEmpty })
        try loader.receiver.receive(head())
        loop.run(transport, until: { recorder[id].head != nil })
        transport.setPaused(id, true)
        let piece = [UInt8](repeating: 7, count: 32 << 20)
        var failure: Failure?
        for count in 1...9 {
            do throws(Failure) {
                try loader.receiver.receive(piece, taken: nil)
                XCTAssertLessThanOrEqual(count * piece.count, RelayedTransfer.maximumWaitingBytes)
            } catch {
                failure = error
                break
            }
        }
        XCTAssertEqual(failure?.code, .bodyLimit)
        XCTAssertEqual(end(id).failure?.code, .bodyLimit, "paused or not")
        XCTAssertEqual(recorder[id].body, [])
        XCTAssertEqual(loader.givenUp, 0, "it has been told")
    }

    /// It would wait for what nobody takes.
    func testAPieceThatIsMoreThanAnybodyTakesEndsWhileItIsPaused() throws {
        recorder.bodyLimits = [TransferID(rawValue: 1): 2 << 20]
        let id = try startPaused()
        XCTAssertEqual(code(of: [1]), .ok)
        XCTAssertEqual(code(of: [UInt8](repeating: 7, count: 2 << 20)), .notReady)
        XCTAssertEqual(end(id).failure?.code, .bodyLimit)
        XCTAssertEqual(loader.givenUp, 1)
        XCTAssertEqual(loader.resumed, 0)
    }

    /// What `receive` says to each.
    private func code(of piece: [UInt8]) -> ErrorCode {
        do throws(Failure) {
            try loader.receiver.receive(piece, taken: nil)
            return .ok
        } catch { return error.code }
    }

    /// A paused transfer whose loader waits, and has reported the head.
    private func startPaused() throws -> TransferID {
        loader.waits = true
        let id = try start("app:x")
        try loader.receiver.receive(head())
        loop.run(transport, until: { recorder[id].head != nil })
        transport.setPaused(id, true)
        return id
    }

    func testALoaderThatWaitsIsToldToAndThenToGoOn() throws {
        let id = try startPaused()
        let piece = [UInt8](repeating: 7, count: 100_000)
        let codes = (0..<20).map { _ in code(of: piece) }
        XCTAssertEqual(codes, Array(repeating: .ok, count: 10) + Array(repeating: .notReady, count: 10))
        XCTAssertEqual(code(of: []), .ok)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(recorder.held[id], [1_000_000])
        XCTAssertEqual(recorder[id].body, [])
        XCTAssertEqual(loader.resumed, 0, "it is paused")
        transport.setPaused(id, false)
        loop.run(transport, until: { loader.resumed > 0 })
        XCTAssertEqual(recorder[id].body.count, 1_000_000)
        XCTAssertEqual(recorder.held[id]?.last, 0, "told before what it held")
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(loader.resumed, 1, "once for all that were refused")
        XCTAssertEqual(code(of: piece), .ok)
        try loader.receiver.end(nil)
        XCTAssertEqual(end(id).body.count, 1_100_000)
        XCTAssertEqual(loader.givenUp, 0)
    }

    /// Whatever it takes: the whole body is reported by what is called to go on.
    func testALoaderThatReportsInsideResume() throws {
        let id = try startPaused()
        var left = 50
        loader.onResume = { [self] receiver in
            while left > 0, code(of: [UInt8](repeating: 1, count: 500_000)) == .ok { left -= 1 }
            if left == 0 { try? receiver.end(nil) }
        }
        XCTAssertEqual(code(of: [UInt8](repeating: 1, count: 1 << 20)), .ok)
        XCTAssertEqual(code(of: [1]), .notReady)
        transport.setPaused(id, false)
        XCTAssertEqual(end(id).body.count, 25_000_000 + 1 << 20)
        XCTAssertGreaterThan(loader.resumed, 20, "two fit each time")
    }

    /// A piece that is larger than what may be held: not while it is paused, nor more than anybody takes.
    func testALargePiece() throws {
        let piece = [UInt8](repeating: 7, count: 5 << 20)
        recorder.bodyLimits = [TransferID(rawValue: 1): 12 << 20, TransferID(rawValue: 2): 4 << 20]
        let id = try startPaused()
        XCTAssertEqual(code(of: piece), .notReady)
        transport.setPaused(id, false)
        loop.run(transport, until: { loader.resumed == 1 })
        for count in 1...2 {
            XCTAssertEqual(code(of: piece), .ok)
            loop.run(transport, until: { recorder[id].body.count == count * piece.count })
        }
        // Somebody joins who takes more.
        recorder.bodyLimits[id] = 16 << 20
        XCTAssertEqual(code(of: piece), .notReady)
        loop.run(transport, until: { loader.resumed == 2 })
        XCTAssertEqual(code(of: piece), .ok)
        try loader.receiver.end(nil)
        XCTAssertNil(end(id).failure)
        XCTAssertEqual(recorder[id].body.count, 15 << 20)

        let other = try startPaused()
        XCTAssertEqual(code(of: [1]), .ok)
        transport.setPaused(other, false)
        loop.run(transport, until: { recorder[other].body.count == 1 })
        XCTAssertEqual(code(of: piece), .notReady)
        XCTAssertEqual(end(other).failure?.code, .bodyLimit)
        XCTAssertEqual(loader.givenUp, 1)
        XCTAssertEqual(loader.resumed, 2)
    }

    /// Others may run: where a processor is hard to come by not for long, as each yield gives a whole turn away.
    private static func giveWay() {
        let end = MonotonicClock().now().advanced(byMilliseconds: 10)
        for _ in 0..<1000 where MonotonicClock().now() < end { sched_yield() }
    }

    /// As with giving up: a host frees what it has after `end`.
    func testAnEndWaitsForAResumeOnAnotherThread() throws {
        let id = try startPaused()
        let hasReturned = Monitor(false)
        let result = Monitor(Bool?.none)
        loader.onResume = { receiver in
            let isCalling = Monitor(false)
            Foundation.Thread.detachNewThread {
                isCalling.change { $0 = true }
                try? receiver.end(nil)
                result.change { $0 = hasReturned.read { $0 } }
            }
            _ = isCalling.wait(until: .patient) { $0 ? true : nil }
            Self.giveWay()
            hasReturned.change { $0 = true }
        }
        XCTAssertEqual(code(of: [UInt8](repeating: 1, count: 1 << 20)), .ok)
        XCTAssertEqual(code(of: [1]), .notReady)
        transport.setPaused(id, false)
        XCTAssertNil(end(id).failure)
        XCTAssertEqual(result.wait(until: .patient) { $0 }, true)
    }

    func testWhatHasEndedIsNotResumed() throws {
        let id = try startPaused()
        XCTAssertEqual(code(of: [UInt8](repeating: 1, count: 1 << 20)), .ok)
        XCTAssertEqual(code(of: [1]), .notReady)
        try loader.receiver.end(nil)
        transport.setPaused(id, false)
        XCTAssertEqual(end(id).body.count, 1 << 20)
        let other = try startPaused()
        XCTAssertEqual(code(of: [UInt8](repeating: 1, count: 1 << 20)), .ok)
        XCTAssertEqual(code(of: [1]), .notReady)
        transport.cancel(other)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(code(of: [1]), .ok, "nobody listens any more")
        XCTAssertEqual(loader.resumed, 0)
        XCTAssertEqual(loader.givenUp, 1)
    }

    // MARK: This machine

    func testFilesOfAnySize() throws {
        for count in [0, 1, 128 * 1024, 128 * 1024 + 1, 1_000_003] {
            let (url, bytes) = try write("f\(count)", count)
            let record = end(try start(url))
            XCTAssertNil(record.failure)
            XCTAssertEqual(record.head?.status, 200)
            XCTAssertEqual(record.head?.contentLength, Int64(count))
            XCTAssertNil(record.head?.fields.first(named: "Last-Modified"))
            XCTAssertEqual(record.body, bytes)
            XCTAssertEqual(record.times.bytesReceived, Int64(count))
        }
    }

    func testWhatIsNoFileHasAStatus() throws {
        mkfifo("\(folder!)/pipe", 0o600)
        symlink("/dev/null", "\(folder!)/device")
        symlink("loop", "\(folder!)/loop")
        let table: [(String, Int32)] = [
            ("missing", 404), ("missing/x", 404), ("", 403), ("pipe", 403), ("device", 403), ("loop", 404),
            (String(repeating: "x", count: 300), 404),
        ]
        for (name, status) in table {
            let record = end(try start("file://\(folder!)/\(name)"))
            XCTAssertNil(record.failure, name)
            XCTAssertEqual(record.head?.status, status, name)
            XCTAssertEqual(record.body, [])
        }
    }

    func testMethodsOfFiles() throws {
        let (url, _) = try write("f", 10)
        let asked = end(try start(url, method: "HEAD"))
        XCTAssertEqual(asked.head?.contentLength, 10)
        XCTAssertEqual(asked.body, [])
        XCTAssertTrue(asked.isFinished)
        XCTAssertEqual(end(try start(url, method: "PUT")).head?.status, 405)
        XCTAssertEqual(end(try start("data:,x", method: "POST")).head?.status, 405)
    }

    func testAPausedFileStandsStill() throws {
        let (url, bytes) = try write("f", 1_000_000)
        let (other, _) = try write("g", 1_000_000)
        recorder.onBody = { [unowned self] id, _ in
            if id.rawValue == 1, recorder[id].body.count < 200_000 { transport.setPaused(id, true) }
        }
        let id = try start(url)
        loop.run(transport, until: { !recorder[id].body.isEmpty })
        let before = recorder[id].body.count
        // As much goes through the same thread meanwhile.
        XCTAssertEqual(end(try start(other)).body.count, 1_000_000)
        XCTAssertEqual(recorder[id].body.count, before)
        recorder.onBody = { _, _ in }
        transport.setPaused(id, false)
        XCTAssertEqual(end(id).body, bytes)
    }

    func testAFileThatShrinksWhileItIsReadIsTruncated() throws {
        let (url, bytes) = try write("f", 1_000_000)
        recorder.onBody = { [unowned self] id, _ in
            if recorder[id].body.count < 200_000 { transport.setPaused(id, true) }
        }
        let id = try start(url)
        loop.run(transport, until: { !recorder[id].body.isEmpty })
        truncate("\(folder!)/f", 1000)
        transport.setPaused(id, false)
        recorder.onBody = { _, _ in }
        let record = end(id)
        XCTAssertEqual(record.failure?.code, .truncated)
        XCTAssertEqual(record.failure?.status, 200)
        XCTAssertEqual(record.body, Array(bytes.prefix(record.body.count)))
    }

    func testData() throws {
        let record = end(try start("data:image/x;base64,QUJD"))
        XCTAssertEqual(record.text, "ABC")
        XCTAssertEqual(record.head?.fields.first(named: "Content-Type"), "image/x")
        XCTAssertEqual(record.head?.contentLength, 3)
        let long = String(repeating: "%41", count: 300_000)
        XCTAssertEqual(end(try start("data:,\(long)")).body.count, 300_000)
    }

    /// At each of its reports; nothing comes after it, and no descriptor stays open.
    func testCancelInEveryReportOfAFile() throws {
        let (url, _) = try write("f", 400_000)
        let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        recorder.onConnected = { [unowned self] id in if id.rawValue == 1 { transport.cancel(id) } }
        recorder.onHead = { [unowned self] id, _ in
            if id.rawValue == 2 { transport.cancel(id) }
            return .receive
        }
        recorder.onBody = { [unowned self] id, _ in
            if id.rawValue == 3 || (id.rawValue == 4 && recorder[id].body.count > 200_000) { transport.cancel(id) }
        }
        for _ in 1...4 { try start(url) }
        let cancelledAtOnce = try start(url)
        transport.cancel(cancelledAtOnce)
        XCTAssertEqual(end(try start(url)).body.count, 400_000)
        for id in 1...5 { XCTAssertFalse(recorder[TransferID(rawValue: UInt64(id))].hasEnded) }
        XCTAssertEqual(recorder[cancelledAtOnce].connections, 0)
        transport.close()
        loop.turn(transport)
        XCTAssertLessThanOrEqual(try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count, before)
    }

    func testCloseEndsWhatIsBeingRead() throws {
        let (url, _) = try write("f", 1_000_000)
        let ids = try (0..<20).map { _ in try start(url) }
        loop.run(transport, until: { !recorder[ids[0]].body.isEmpty })
        transport.close()
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertFalse(ids.contains { recorder[$0].failure != nil })
    }

    // MARK: Loaders of the host

    func testALoaderReportsFromAnotherThread() throws {
        loader.onStart = { receiver in
            Foundation.Thread.detachNewThread { [self] in
                try! receiver.receive(head(length: 300))
                for index in 0..<100 { try! receiver.receive([UInt8](repeating: UInt8(index), count: 3), taken: nil) }
                try! receiver.end(nil)
            }
        }
        let record = end(try start("app://h/x"))
        XCTAssertEqual(record.body, (0..<300).map { UInt8($0 / 3) })
        XCTAssertEqual(loader.givenUp, 0)
        XCTAssertEqual(loader.state.read { $0.requests.map(\.url.canonical) }, ["app://h/x"])
        XCTAssertEqual(loader.state.read { $0.requests[0].fields }, [HeaderField("X-Own", "1")])
    }

    func testCredentialsComeAsAHeaderField() throws {
        for (pair, encoded) in [("u:pw", "dTpwdw=="), ("u", "dTo="), ("me%40x:", "bWVAeDo=")] {
            try start("app://\(pair)@h/")
            XCTAssertEqual(
                loader.state.read { $0.requests.last!.fields.first(named: "Authorization") }, "Basic \(encoded)")
        }
    }

    /// The process exits: its own state may be gone.
    func testNobodyIsToldWhenTheProcessExits() throws {
        try start("app:x")
        loaders.abandon()
        transport.close()
        XCTAssertEqual(loader.givenUp, 0)
    }

    func testWhatComesWhileItIsPausedWaits() throws {
        let id = try start("app:x")
        try loader.receiver.receive(head())
        loop.run(transport, until: { recorder[id].head != nil })
        transport.setPaused(id, true)
        try loader.receiver.receive([1, 2, 3], taken: nil)
        try loader.receiver.end(nil)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(recorder[id].body, [])
        XCTAssertFalse(recorder[id].hasEnded)
        transport.setPaused(id, false)
        XCTAssertEqual(end(id).body, [1, 2, 3])
    }

    func testABodyIsHeldAgainstItsAnnouncedLength() throws {
        let table: [(ResponseHead, Int, ErrorCode?)] = [
            (head(length: 3), 3, nil), (head(length: 4), 3, .truncated), (head(length: 2), 3, .protocolError),
            (head(), 3, nil), (head(length: 9, encoding: true), 3, nil), (head(204, length: 9), 0, nil),
            (head(304, length: 9), 0, nil), (head(length: 0), 0, nil),
        ]
        for (head, count, code) in table {
            let id = try start("app:x")
            try loader.receiver.receive(head)
            try loader.receiver.receive([UInt8](repeating: 7, count: count), taken: nil)
            try loader.receiver.end(nil)
            XCTAssertEqual(end(id).failure?.code, code, "\(head)")
        }
        XCTAssertEqual(loader.givenUp, 0, "all had ended")
    }

    func testABodyThatNobodyWantsIsReadNoFurtherThanItsPreview() throws {
        recorder.onHead = { _, _ in .discard }
        let id = try start("app:x")
        try loader.receiver.receive(head(404, length: 10_000))
        try loader.receiver.receive([UInt8](repeating: 1, count: 500), taken: nil)
        try loader.receiver.receive([UInt8](repeating: 2, count: 500), taken: nil)
        let record = end(id)
        XCTAssertTrue(record.isFinished)
        XCTAssertEqual(record.body.count, BodyDisposition.previewBytes)
        XCTAssertEqual(loader.givenUp, 1)
        try loader.receiver.end(nil)
    }

    func testTheBodyOfAHEADIsDropped() throws {
        let id = try start("app:x", method: "HEAD")
        try loader.receiver.receive(head(length: 10))
        try loader.receiver.receive([1], taken: nil)
        try loader.receiver.end(nil)
        XCTAssertTrue(end(id).isFinished)
        XCTAssertEqual(recorder[id].body, [])
    }

    func testALoaderThatWasTakenOutRunsWhatItBeganAndNothingElse() throws {
        let first = try start("app:x")
        let url = try transport.parse("app:y")
        try loaders.set(nil, for: "app")
        try loader.receiver.end(Failure(.resolveFailed, "gone"))
        XCTAssertEqual(end(first).failure?.code, .resolveFailed)
        let late = TransferID(rawValue: 99)
        transport.start(late, TransportRequest(url: url, method: "GET", fields: [], body: nil, maximumHeaderBytes: 1))
        XCTAssertEqual(end(late).failure?.code, .unsupportedScheme)
        XCTAssertThrowsError(try transport.parse("app:x"))
        loaders.close()
        XCTAssertThrowsError(try loaders.set(loader, for: "app")) { XCTAssertEqual(($0 as? Failure)?.code, .shutDown) }
    }

    /// A host frees what it has after `end`: giving up must not be at work any more by then.
    func testAnEndWaitsForAGivingUpOnAnotherThread() throws {
        let hasReturned = Monitor(false)
        let result = Monitor(Bool?.none)
        loader.onGivenUp = { receiver in
            let isCalling = Monitor(false)
            Foundation.Thread.detachNewThread {
                isCalling.change { $0 = true }
                try? receiver.end(Failure(.connectionLost, ""))
                result.change { $0 = hasReturned.read { $0 } }
            }
            _ = isCalling.wait(until: .patient) { $0 ? true : nil }
            Self.giveWay()
            // Inside of it there is nothing to wait for.
            try? receiver.receive(
                ResponseHead(status: 200, httpVersion: 0, fields: [], contentLength: nil, isEncoded: false))
            hasReturned.change { $0 = true }
        }
        transport.cancel(try start("app:x"))
        XCTAssertEqual(result.wait(until: .patient) { $0 }, true)
        XCTAssertEqual(loader.givenUp, 1)
    }

    /// The end comes just when the transfer is given up.
    func testNoControlBeginsOnceTheEndHasReturned() throws {
        let crossing = Crossing()
        loader.onGivenUp = { _ in crossing.control() }
        let ends = Foundation.Thread { crossing.endEach() }
        ends.start()
        // The thread that ends waits where this is above zero, the one that gives up where it is below.
        var lead = 100
        var (round, givenUp) = (0, 0)
        while round < 4_000 || (min(givenUp, round - givenUp) < 200 && round < 400_000) {
            round += 1
            let id = try start("app:x")
            crossing.begin(round, with: loader.receiver, after: max(0, lead))
            for _ in 0..<max(0, -lead) { sched_yield() }
            transport.cancel(id)
            crossing.wait(for: round)
            // So that each of the two is the first as often.
            let isFirst = loader.givenUp > givenUp
            givenUp = loader.givenUp
            lead += (isFirst ? -1 : 1) * (1 + abs(lead) / 32)
        }
        crossing.stop()
        XCTAssertEqual(crossing.lateCount, 0)
        XCTAssertGreaterThanOrEqual(min(givenUp, round - givenUp), 200)
    }

    func testCloseGivesUpWhatLoadersHave() throws {
        let ids = try (0..<3).map { try start("app:\($0)") }
        try loader.receiver.receive(head())
        transport.close()
        XCTAssertEqual(loader.givenUp, 3)
        try loader.receiver.end(nil)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertFalse(ids.contains { recorder[$0].hasEnded })
    }
}

/// A thread that ends transfers, each just when another thread gives it up: both spin until it is time.
private final class Crossing: @unchecked Sendable {
    private let round = Atomic(0)
    private let ended = Atomic(0)
    private let isInside = Atomic(false)
    private let late = Atomic(0)
    private let time = Atomic(0)
    /// Set before their round begins.
    private var receiver: (any LoadReceiver)?
    private var pause = 0

    var lateCount: Int { late.load(ordering: .sequentiallyConsistent) }

    private func passTime() { time.add(1, ordering: .relaxed) }

    func begin(_ number: Int, with receiver: any LoadReceiver, after pause: Int) {
        self.receiver = receiver
        self.pause = pause
        round.store(number, ordering: .sequentiallyConsistent)
    }

    func wait(for number: Int) {
        while ended.load(ordering: .sequentiallyConsistent) < number { sched_yield() }
    }

    func stop() { round.store(-1, ordering: .sequentiallyConsistent) }

    func endEach() {
        var last = 0
        var looks = 0
        while true {
            let number = round.load(ordering: .sequentiallyConsistent)
            if number < 0 { return }
            if number == last {
                looks += 1
                if looks % 1_000 == 0 { sched_yield() }
                continue
            }
            last = number
            for _ in 0..<pause { passTime() }
            try? receiver?.end(Failure(.connectionLost, ""))
            if isInside.load(ordering: .sequentiallyConsistent) { late.add(1, ordering: .relaxed) }
            ended.store(number, ordering: .sequentiallyConsistent)
        }
    }

    /// Takes longer than the end takes to return.
    func control() {
        let number = round.load(ordering: .sequentiallyConsistent)
        isInside.store(true, ordering: .sequentiallyConsistent)
        if ended.load(ordering: .sequentiallyConsistent) == number { late.add(1, ordering: .relaxed) }
        for _ in 0..<200 { passTime() }
        isInside.store(false, ordering: .sequentiallyConsistent)
    }
}
