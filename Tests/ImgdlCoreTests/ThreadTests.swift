import CSystem
import Glibc
import XCTest

@testable import ImgdlCore

final class ThreadTests: XCTestCase {
    func testBodyRunsOnANamedThreadWithAllSignalsBlocked() throws {
        let lock = Lock()
        var name = ""
        var blocked: [Int32: Bool] = [:]
        let thread = try ImgdlCore.Thread.start(name: "a name that is too long") {
            var buffer = [CChar](repeating: 0, count: 32)
            system_thread_get_name(&buffer, buffer.count)
            var mask = sigset_t()
            pthread_sigmask(SIG_SETMASK, nil, &mask)
            lock.withLock {
                name = String(cString: buffer)
                for signal in [SIGTERM, SIGINT, SIGPIPE, SIGCHLD, SIGALRM] {
                    blocked[signal] = sigismember(&mask, signal) == 1
                }
            }
        }
        XCTAssertFalse(thread.isCurrent)
        thread.join()
        XCTAssertEqual(name, "a name that is ")
        XCTAssertEqual(blocked.values.filter { $0 }.count, 5)
    }

    func testTheStartersMaskIsAsBefore() throws {
        var before = sigset_t()
        var after = sigset_t()
        pthread_sigmask(SIG_SETMASK, nil, &before)
        try ImgdlCore.Thread.start(name: "mask") {}.join()
        pthread_sigmask(SIG_SETMASK, nil, &after)
        for signal in 1..<Int32(32) {
            XCTAssertEqual(sigismember(&before, signal), sigismember(&after, signal))
        }
    }

    func testAThreadKnowsItself() throws {
        let lock = Lock()
        let known = Condition(lock)
        var thread: ImgdlCore.Thread?
        var answer: Bool?
        let started = try ImgdlCore.Thread.start(name: "self") {
            lock.withLock {
                while thread == nil { known.wait() }
                answer = thread!.isCurrent
            }
        }
        lock.withLock {
            thread = started
            known.signal()
        }
        started.join()
        XCTAssertEqual(answer, true)
    }

    func testADetachedThreadRuns() throws {
        let lock = Lock()
        let changed = Condition(lock)
        var ran = false
        try ImgdlCore.Thread.start(name: "detached") {
            lock.withLock {
                ran = true
                changed.broadcast()
            }
        }.detach()
        lock.withLock { while !ran { changed.wait() } }
    }
}
