import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Everything goes at once, however much there is.
final class ClearingTests: StoreTestCase {
    /// So many more entries like the one under that key, the first of which have files.
    private func addEntries(_ count: Int, like id: EntryID, files fileCount: Int) throws {
        let folder = Folder(path: path)
        let index = try Index.openForReading("\(path)/index-1.sqlite")
        try index.database.execute(
            """
            PRAGMA query_only = OFF;
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count))
            INSERT INTO entries SELECT
                id + 64 * n, key_hash + n, key || n, kind, length, cost, row_cost, checksum, stored, used - n / 1000,
                response FROM entries, numbers WHERE id = \(id.rawValue)
            """)
        for number in 1...fileCount {
            let other = EntryID(rawValue: id.rawValue + 64 * Int64(number))
            try? folder.makeShard(folder.shard(of: other))
            XCTAssertEqual(link(folder.body(id).description, folder.body(other).description), 0)
        }
    }

    private var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    func testAHundredThousandEntriesGoAtOnce() throws {
        configuration.maximumBytes = 1 << 40
        let cache = try open()
        cache.put("k", bytes(1_000))
        try cache.flush()
        let other = try open()
        let id = try XCTUnwrap(other.wait("k")).entry.id
        let cost = try cache.statistics().bytes
        try addEntries(100_000, like: id, files: 1_000)
        XCTAssertEqual(try cache.statistics().entries, 100_001)
        XCTAssertEqual(files.count, 1_001)
        let start = processorSeconds
        try cache.clear()
        XCTAssertLessThan(processorSeconds - start, 1, "whatever else the machine does meanwhile")
        var status = stat()
        XCTAssertEqual(stat("\(path)/index-1.sqlite-wal", &status), 0)
        XCTAssertLessThan(status.st_size, off_t(StorageLog.lastBytes), "a reader that stays does not make it long")
        XCTAssertEqual(try cache.statistics().entries, 0)
        XCTAssertEqual(try cache.statistics().bytes, 0)
        XCTAssertEqual(files, [])
        XCTAssertNil(other.wait("k"))
        XCTAssertNil(other.findInMemory("k") { _ in .entry(0, withBody: true) })
        // What comes next is counted, and what goes one by one.
        cache.put("k", bytes(1_000))
        cache.put("j", bytes(1_000))
        try cache.flush()
        try cache.removeAndWait(key: "j")
        XCTAssertNotNil(other.wait("k"))
        XCTAssertEqual(try cache.statistics().entries, 1)
        XCTAssertEqual(try cache.statistics().bytes, cost)
        XCTAssertEqual(files.count, 1)
        let index = try Index.openForReading("\(path)/index-1.sqlite")
        let verdict = try index.database.prepare("PRAGMA integrity_check")
        XCTAssertTrue(try verdict.step())
        XCTAssertEqual(verdict.bytes(0) { String(decoding: $0, as: UTF8.self) }, "ok")
        cache.close()
        other.close()
    }

    func testWhatIsTooMuchForOnceGoesInSteps() throws {
        tuning.clearedAtOnce = 300
        let cache = try open()
        cache.put("k", bytes(1_000))
        try cache.flush()
        let id = try XCTUnwrap(cache.wait("k")).entry.id
        try addEntries(1_000, like: id, files: 1_000)
        try cache.clear()
        XCTAssertEqual(try cache.statistics().entries, 0)
        XCTAssertEqual(try cache.statistics().bytes, 0)
        XCTAssertEqual(files, [])
        cache.close()
    }
}
