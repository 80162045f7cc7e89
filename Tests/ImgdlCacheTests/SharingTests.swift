import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5: several caches on one folder. (Processes: Tests/Crash.)
final class SharingTests: StoreTestCase {
    func testTheOtherSeesABatchWhenItIsWritten() throws {
        let one = try open()
        let other = try open()
        one.put("k", bytes(100))
        XCTAssertNotNil(one.wait("k"))
        XCTAssertNil(other.wait("k"))
        try one.flush()
        XCTAssertEqual(other.wait("k")?.bytes, bytes(100))
        other.remove(key: "k")
        try other.flush()
        XCTAssertNil(one.wait("k"))
        XCTAssertEqual(try one.statistics().damaged, 0)
        one.close()
        other.put("k", bytes(10))
        try other.flush()
        XCTAssertEqual(other.wait("k")?.bytes, bytes(10))
        other.close()
        XCTAssertEqual(log.all, [])
    }

    func testAnIndexThatAnotherIsMakingIsWaitedFor() throws {
        let other = try Database(path + ".sqlite", busyMilliseconds: 0)
        // It has not made it one with a log yet.
        try other.execute("BEGIN IMMEDIATE")
        var asked = 0
        let index = try Index.open(other.path, steps: IndexSchema.steps) {
            asked += 1
            if asked == 3 { try? other.execute("COMMIT") }
            return true
        }
        XCTAssertEqual(asked, 3)
        XCTAssertEqual(try index.database.integer("PRAGMA user_version"), Int64(IndexSchema.steps.count))
    }

    func testAnIndexThatAnotherKeepsLockedIsUnavailable() throws {
        let other = try Database(path + ".sqlite", busyMilliseconds: 0)
        try other.execute("BEGIN IMMEDIATE")
        XCTAssertThrowsError(try Index.open(other.path, steps: IndexSchema.steps) { false }) { error in
            guard case IndexProblem.unavailable(let failure) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failure.code, .cacheBusy)
            XCTAssertTrue(
                failure.message.hasSuffix("/cache.sqlite: another program has been writing to it for some seconds"),
                failure.message)
        }
    }

    func testAFileThatVanishesIsAMiss() throws {
        let one = try open()
        one.put("k", bytes(100))
        try one.flush()
        let other = try open()
        nonisolated(unsafe) var asked = 0
        // Removed by the other between the look at the index and the file.
        let found = one.wait("k") { entries in
            asked += 1
            if asked == 1 {
                other.remove(entries[0].id)
                try? other.flush()
            }
            return entries.isEmpty ? .nothing : .entry(0, withBody: true)
        }
        XCTAssertNil(found)
        try one.flush()
        XCTAssertEqual(try one.statistics().damaged, 0)
        one.close()
        other.close()
    }

    func testBothWriteAtTheSameTime() throws {
        tuning.batchMilliseconds = 5
        let caches = [try open(), try open(), try open()]
        let threads = try caches.enumerated().map { number, cache in
            try ImgdlCore.Thread.start(name: "writer") {
                for i in 0..<60 { cache.put("\(number)-\(i)", bytes(200, seed: UInt64(number * 100 + i))) }
            }
        }
        for thread in threads { thread.join() }
        for cache in caches { try cache.flush() }
        for cache in caches {
            for number in 0..<3 {
                for i in 0..<60 {
                    XCTAssertEqual(cache.wait("\(number)-\(i)")?.bytes, bytes(200, seed: UInt64(number * 100 + i)))
                }
            }
            XCTAssertEqual(try cache.statistics().entries, 180)
        }
        for cache in caches { cache.close() }
        XCTAssertEqual(log.all, [])
    }

    func testALongWriterIsWaitedForAndNothingIsLost() throws {
        let cache = try open()
        try cache.flush()
        let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        try database.execute("BEGIN IMMEDIATE")
        cache.put("k", bytes(100))
        nonisolated(unsafe) var attempts = 0
        try cache.disk?.onWriter { if case .othersWrite = $0.commit() { attempts += 1 } }
        XCTAssertEqual(attempts, 1)
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
        try database.execute("COMMIT")
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
        XCTAssertEqual(try cache.statistics().stored, 1)
        XCTAssertEqual(log.all, [])
        cache.close()
    }

    func testTheIndexIsReplacedByTheOther() throws {
        let one = try open()
        one.put("k", bytes(100))
        try one.flush()
        for name in Folder.names(in: path) where name.hasPrefix("index") {
            rename("\(path)/\(name)", "\(path)/old-\(name)")
        }
        let other = try open()
        other.put("l", bytes(100))
        try other.flush()
        one.put("m", bytes(100))
        try one.flush()
        XCTAssertEqual(one.wait("l")?.bytes, bytes(100))
        XCTAssertEqual(other.wait("m")?.bytes, bytes(100))
        XCTAssertNil(one.wait("k"))
        one.close()
        other.close()
    }

    /// A descriptor of the index that is closed takes SQLite's locks with it: the next program that closes the index would
    /// believe that it is the last one, and remove the log.
    func testAFlushLeavesSQLitesLocks() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        XCTAssertGreaterThanOrEqual(try cache.statistics().entries, 0, "it is open")
        XCTAssertGreaterThan(try locks(), 0)
        try cache.flush()
        cache.put("l", bytes(100))
        try cache.flush()
        XCTAssertGreaterThan(try locks(), 0)
        cache.close()
    }

    /// Of this process, on the index.
    private func locks() throws -> Int {
        var status = stat()
        guard stat(path + "/index-1.sqlite", &status) == 0 else { return 0 }
        return String(decoding: read("/proc/locks"), as: UTF8.self).split(separator: "\n").filter { line in
            line.contains("POSIX") && line.contains(" \(getpid()) ") && line.contains(":\(status.st_ino) ")
        }.count
    }

    func testALivingWritersFilesStay() throws {
        let one = try open()
        let writer = try XCTUnwrap(one.write("k", response()))
        writer.append(slices(bytes(100)))
        _ = try one.disk?.onWriter { _ in }
        XCTAssertEqual(temporaries.count, 1)
        mkdir(path + "/writers-1/dead", 0o700)
        let other = try open()
        try other.finishBackgroundWork()
        XCTAssertEqual(temporaries.count, 1)
        writer.finish(response())
        try one.flush()
        XCTAssertEqual(other.wait("k")?.bytes, bytes(100))
        XCTAssertEqual(Folder.names(in: path + "/writers-1").count, 2)
        one.close()
        other.close()
    }
}
