import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// How a lock that somebody else has is waited for.
final class FileLockTests: StoreTestCase {
    override func setUp() {
        super.setUp()
        XCTAssertEqual(mkdir(path, 0o700), 0)
    }

    /// What it waits in all, where each sleep takes `excess` longer than it was asked to.
    private func waited(_ milliseconds: Int, excess: Int64) throws -> Int64 {
        let taken = try XCTUnwrap(FileLock(path + "/lock", .exclusive))
        defer { withExtendedLifetime(taken) {} }
        let start = clock.now()
        let lock = try FileLock.waiting(path + "/lock", .shared, milliseconds: milliseconds, clock: clock) { moment in
            clock.advance(milliseconds: moment + excess)
        }
        XCTAssertNil(lock)
        return clock.now().milliseconds(since: start)
    }

    /// A machine that is busy lets it sleep for longer: it does not wait longer for that, but for the last moment.
    func testTimeThatPassedCounts() throws {
        XCTAssertEqual(try waited(0, excess: 0), 0)
        for excess: Int64 in [0, 1, 5, 40] {
            let all = try waited(100, excess: excess)
            XCTAssertGreaterThanOrEqual(all, 100)
            XCTAssertLessThanOrEqual(all, 100 + excess)
        }
    }

    func testItIsTakenOnceTheOtherLetsGo() throws {
        var taken = try FileLock(path + "/lock", .exclusive)
        XCTAssertNotNil(taken)
        var rests = 0
        let lock = try FileLock.waiting(path + "/lock", .shared, milliseconds: 100, clock: clock) { moment in
            clock.advance(milliseconds: moment)
            rests += 1
            if rests == 3 { taken = nil }
        }
        XCTAssertNotNil(lock)
        XCTAssertEqual(rests, 3)
    }
}
