import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Removals that wait for a disk that does not work: they are bounded by what they take, and by nothing else.
final class RetainedRemovalsTests: StoreTestCase {
    private let failing = FailingDisk()

    override func setUp() {
        super.setUp()
        tuning.disk = failing
    }

    private func fail(_ cache: Cache) {
        failing.fail(.write, ENOSPC)
        cache.put("lost", bytes(100))
        XCTAssertThrowsError(try cache.flush())
    }

    /// What came meanwhile is lost, and the flush says so.
    private func mend(_ cache: Cache) throws {
        failing.fail(.write, nil)
        try? cache.flush()
        try cache.flush()
    }

    private func checkThatNothingWaits(_ cache: Cache) throws {
        let disk = try XCTUnwrap(cache.disk)
        XCTAssertTrue(disk.withState { $0.changes.isEmpty }, "nothing is pending")
        XCTAssertEqual(disk.withState { $0.queued }, QueuedMemory())
        XCTAssertTrue(try disk.onWriter { $0.batch.isEmpty })
    }

    func testManyRemovalsThatHaveRoomRemoveNothingElse() throws {
        let cache = try open()
        for key in ["u1", "u2", "kept"] { cache.put(key, bytes(100)) }
        try cache.flush()
        let updated = try XCTUnwrap(cache.wait("u2")).entry.id
        fail(cache)
        cache.update(updated, response(at: 300))
        for number in 0..<10_100 { cache.remove(key: "u\(number)") }
        XCTAssertThrowsError(try cache.flush())
        try mend(cache)
        XCTAssertEqual(cache.wait("kept")?.bytes, bytes(100), "nobody has removed it")
        XCTAssertNil(cache.wait("u1"))
        cache.put("u1", bytes(100))
        try cache.flush()
        XCTAssertEqual(cache.wait("u1")?.bytes, bytes(100))
        try checkThatNothingWaits(cache)
        cache.close()
    }

    func testMoreRemovalsThanHaveRoomRemoveEverythingOnce() throws {
        tuning.removalBytes = 1 << 18
        let cache = try open()
        for key in ["u1", "other"] { cache.put(key, bytes(100)) }
        try cache.flush()
        fail(cache)
        for number in 0..<5_000 {
            cache.remove(key: "u\(number)")
            if number % 500 == 0 { XCTAssertThrowsError(try cache.flush()) }
        }
        XCTAssertLessThanOrEqual(try XCTUnwrap(cache.disk).withState { $0.queued.removals }, 1 << 18)
        XCTAssertNil(cache.wait("other"), "everything goes")
        try mend(cache)
        for key in ["u1", "other"] {
            XCTAssertNil(cache.wait(key))
            cache.put(key, bytes(100))
            try cache.flush()
            XCTAssertEqual(cache.wait(key)?.bytes, bytes(100), "what comes later is found")
        }
        try checkThatNothingWaits(cache)
        cache.close()
    }

    /// Each makes a removal of what it cannot write.
    func testValidationsWhileTheDiskFailsTakeNoMoreThanRemovalsMay() throws {
        tuning.removalBytes = 20 * DiskCommand.memory(ofRemoving: "")
        let cache = try open()
        for number in 0..<100 { cache.put("k\(number)", bytes(100)) }
        try cache.flush()
        let ids = try (0..<100).map { try XCTUnwrap(cache.wait("k\($0)")).entry.id }
        fail(cache)
        let disk = try XCTUnwrap(cache.disk)
        func write() throws { try disk.onWriter { _ = $0.commit() } }
        for time in 0..<100 {
            cache.update(ids[0], response(at: 300 + Int64(time)))
            cache.remove(key: "same")
            try write()
        }
        let least = DiskCommand.memory(ofRemoving: "") + DiskCommand.memory(ofRemoving: "same")
        XCTAssertEqual(disk.withState { $0.queued }, QueuedMemory(stores: 0, removals: least), "of each one is enough")
        for id in ids {
            cache.update(id, response(at: 500))
            try write()
        }
        try write()
        XCTAssertLessThanOrEqual(disk.withState { $0.queued.removals }, tuning.removalBytes)
        try mend(cache)
        XCTAssertNil(cache.wait("k0"))
        try checkThatNothingWaits(cache)
        cache.close()
    }

    /// They may be another program's, and nobody has asked for that.
    func testBodiesStayWhereTooManyRemovalsWaitUntilTheCacheIsClosed() throws {
        tuning.closingMilliseconds = 1
        tuning.closingRemovalMilliseconds = 1
        tuning.removalBytes = 1 << 16
        let other = try open()
        other.put("other", bytes(100))
        try other.flush()
        let lock = try Database(path + "/index-1.sqlite", busyMilliseconds: 5_000)
        func closeWhileAnotherWrites(_ work: (Cache) throws -> Void) throws {
            let cache = try open()
            XCTAssertNotNil(cache.wait("other"))
            try lock.execute("BEGIN IMMEDIATE")
            try work(cache)
            cache.close()
            try lock.execute("ROLLBACK")
            // What is announced hides everything for some seconds, and no longer.
            unlink(path + "/changes-1")
        }
        try closeWhileAnotherWrites { cache in for number in 0..<1_000 { cache.remove(key: "u\(number)") } }
        XCTAssertEqual(files.count, 1)
        XCTAssertEqual(other.wait("other")?.bytes, bytes(100))
        // Who asks for it gets it.
        try closeWhileAnotherWrites { cache in
            cache.disk?.removeAll(isAsked: true)
            for number in 0..<1_000 { cache.remove(key: "u\(number)") }
        }
        XCTAssertEqual(files, [])
        other.close()
    }
}
