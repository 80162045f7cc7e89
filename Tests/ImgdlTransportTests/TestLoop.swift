import CSystem
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// The engine's part of a transport's life, on the test's thread: epoll, a deadline, and work from other threads. As the
/// engine's, the thread counts as at work, but while it sleeps: what it takes of the processor would be the host's else, and
/// no turn of curl too long.
final class TestLoop: TransportLoop, @unchecked Sendable {
    private let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    private let wake = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    private let lock = Lock()
    private var work: [@Sendable () -> Void] = []
    private(set) var watched: Set<Int32> = []
    /// Work that has been asked of it so far.
    private(set) var works = 0
    private let clock = MonotonicClock()
    /// Milliseconds that it is ahead of the machine's clock.
    private var lead: Int64 = 0

    var now: Instant { clock.now().advanced(byMilliseconds: lead) }

    func advance(milliseconds: Int64) { lead += milliseconds }

    init() {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = wake
        epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event)
    }

    deinit {
        Glibc.close(epoll)
        Glibc.close(wake)
    }

    func watch(_ descriptor: Int32, readable: Bool, writable: Bool) {
        var event = epoll_event()
        event.events = (readable ? EPOLLIN.rawValue : 0) | (writable ? EPOLLOUT.rawValue : 0)
        event.data.fd = descriptor
        watched.insert(descriptor)
        if epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event) != 0 {
            XCTAssertEqual(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event), 0)
        }
    }

    func unwatch(_ descriptor: Int32) {
        watched.remove(descriptor)
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    func perform(_ work: @escaping @Sendable () -> Void) {
        lock.withLock {
            self.work.append(work)
            works += 1
        }
        var one: UInt64 = 1
        _ = write(wake, &one, 8)
    }

    /// Until the condition holds; a test fails after 20 seconds.
    func run(_ transport: any Transport, until isDone: () -> Bool, file: StaticString = #filePath, line: UInt = #line) {
        let before = ImgdlCore.Thread.beginWork()
        defer { ImgdlCore.Thread.restore(before) }
        let end = now.advanced(byMilliseconds: 20_000)
        while true {
            runWork()
            if isDone() { return }
            let now = self.now
            guard now < end else { return XCTFail("did not come about", file: file, line: line) }
            if let deadline = transport.deadline, deadline <= now { transport.deadlineReached(now) }
            transport.reportEnds()
            if isDone() { return }
            let next = min(end, transport.deadline ?? end)
            step(transport, milliseconds: max(0, (next.nanoseconds - self.now.nanoseconds + 999_999) / 1_000_000))
        }
    }

    /// One turn that does not wait.
    func turn(_ transport: any Transport) {
        let before = ImgdlCore.Thread.beginWork()
        defer { ImgdlCore.Thread.restore(before) }
        runWork()
        // Asked first, as the engine does: what is due at once would else be due later than now, and again in each turn.
        if let deadline = transport.deadline { transport.deadlineReached(max(deadline, now)) }
        step(transport, milliseconds: 0)
    }

    private func runWork() {
        let pending = lock.withLock {
            defer { work = [] }
            return work
        }
        for item in pending { item() }
    }

    private func step(_ transport: any Transport, milliseconds: Int64) {
        var events = [epoll_event](repeating: epoll_event(), count: 16)
        let count = ImgdlCore.Thread.resting { epoll_wait(epoll, &events, 16, Int32(clamping: milliseconds)) }
        for event in events.prefix(Int(max(0, count))) {
            if event.data.fd == wake {
                var value: UInt64 = 0
                _ = read(wake, &value, 8)
                continue
            }
            let failed = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
            transport.descriptorReady(
                event.data.fd, readable: event.events & EPOLLIN.rawValue != 0 || failed,
                writable: event.events & EPOLLOUT.rawValue != 0 || failed)
        }
        transport.reportEnds()
    }
}
