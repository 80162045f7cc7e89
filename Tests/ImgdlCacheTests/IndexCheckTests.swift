import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Damage of the index that SQLite does not meet while it reads and writes: two places of it have a page in common. What is
/// stored in one of them is written over by the other.
final class IndexCheckTests: StoreTestCase {
    private var index: String { path + "/index-1.sqlite" }

    /// An index of so many entries, made by SQLite alone. With a page that is two leaves of one tree, or none.
    private func makeIndex(entries: Int, isDamaged: Bool) throws {
        let cache = try open()
        cache.put("before", bytes(70))
        try cache.flush()
        cache.close()
        let database = try Database(index, busyMilliseconds: 100)
        try database.execute(
            """
            INSERT INTO entries (id, key_hash, key, kind, length, cost, row_cost, checksum, stored, used, response)
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(entries))
                SELECT n, n * 7919, 'k' || n, 0, 0, 512, 512, n, 1600000000, 1700000000, zeroblob(300) FROM numbers
            """)
        database.emptyLog(waiting: 1_000)
        guard isDamaged else { return }
        let root = Int(try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'entries'")) - 1
        var page = try content(ofPage: root)
        // An inner page of a table: two of its children become the same one.
        XCTAssertEqual(page[0], 5)
        let cells = [0, 1].map { 12 + 2 * $0 }.map { Int(page[$0]) << 8 | Int(page[$0 + 1]) }
        for byte in 0..<4 { page[cells[0] + byte] = page[cells[1] + byte] }
        try change(page: root, to: page)
    }

    private func content(ofPage number: Int) throws -> [UInt8] {
        let file = try XCTUnwrap(fopen(index, "r"))
        defer { fclose(file) }
        var page = [UInt8](repeating: 0, count: 4_096)
        fseek(file, number * 4_096, SEEK_SET)
        XCTAssertEqual(fread(&page, 1, page.count, file), page.count)
        return page
    }

    private func change(page number: Int, to content: [UInt8]) throws {
        let file = try XCTUnwrap(fopen(index, "r+"))
        defer { fclose(file) }
        fseek(file, number * 4_096, SEEK_SET)
        XCTAssertEqual(fwrite(content, 1, content.count, file), content.count)
    }

    func testOfAShortIndexItIsFoundBeforeTheFirstChange() throws {
        try makeIndex(entries: 2_000, isDamaged: true)
        let cache = try open()
        XCTAssertTrue(log.wait(for: .movedAside))
        cache.put("after", bytes(50))
        try cache.flush()
        cache.close()
        let again = try open()
        XCTAssertEqual(again.wait("after")?.bytes, bytes(50))
        XCTAssertEqual(log.kinds, [.movedAside])
        again.close()
    }

    func testOfALongIndexItIsFoundWhenThereIsTime() throws {
        try makeIndex(entries: 20_000, isDamaged: true)
        let cache = try open()
        XCTAssertTrue(log.wait(for: .movedAside))
        XCTAssertEqual(log.kinds, [.movedAside])
        XCTAssertNil(cache.wait("before"))
        cache.put("after", bytes(50))
        try cache.flush()
        cache.close()
        let again = try open()
        XCTAssertEqual(again.wait("after")?.bytes, bytes(50))
        again.close()
    }

    func testASoundIndexStays() throws {
        for entries in [2_000, 20_000] {
            try makeIndex(entries: entries, isDamaged: false)
            let cache = try open()
            try cache.finishBackgroundWork()
            XCTAssertEqual(cache.wait("before")?.bytes, bytes(70))
            XCTAssertEqual(log.kinds, [])
            XCTAssertEqual(try cache.statistics().entries, Int64(entries) + 1)
            cache.close()
            removeFolder(path)
        }
    }

    /// What could be read and not written is not looked through: there is nothing to lose.
    func testAnIndexThatCanOnlyBeReadIsLeft() throws {
        try makeIndex(entries: 2_000, isDamaged: true)
        let index = try Index.openUnwritable(index, version: IndexSchema.steps.count)
        XCTAssertTrue(try index.contains(EntryID(rawValue: 1_999)))
    }

    // MARK: Who ends it

    func testItIsEndedAtAnyMoment() throws {
        try makeIndex(entries: 200_000, isDamaged: false)
        let database = try Database(index, busyMilliseconds: 100)
        var start = MonotonicClock().now()
        XCTAssertTrue(try database.check())
        let whole = MonotonicClock().now().milliseconds(since: start)
        // Before its first page.
        start = MonotonicClock().now()
        XCTAssertFalse(
            try database.check { interrupt in
                interrupt()
                return true
            })
        XCTAssertLessThan(MonotonicClock().now().milliseconds(since: start), max(whole / 2, 5))
        // Between two, as far as the other thread has come to it by then.
        for milliseconds in 1...4 {
            nonisolated(unsafe) var time: Instant?
            var thread: ImgdlCore.Thread?
            let isWhole = try database.check { interrupt in
                thread = try? ImgdlCore.Thread.start(name: "test") {
                    usleep(UInt32(milliseconds) * 1_000)
                    interrupt()
                    time = MonotonicClock().now()
                }
                return thread != nil
            }
            let end = MonotonicClock().now()
            thread?.join()
            if let time, time < end.advanced(byMilliseconds: -20) { XCTAssertFalse(isWhole) }
        }
        XCTAssertTrue(try database.check(), "the next one is not ended by what ended the one before")
        XCTAssertFalse(try database.check { _ in false })
    }

    /// Whoever has something for the writing thread to do.
    func testStoringFlushingAndClosingEndIt() throws {
        try makeIndex(entries: 20_000, isDamaged: false)
        let database = try Database(index, busyMilliseconds: 100)
        configuration.directory = path + "/another"
        let cache = try open()
        try cache.finishBackgroundWork()
        let store = try XCTUnwrap(cache.disk)
        for act in [
            { cache.put("key", bytes(10)) }, { cache.remove(key: "key") }, { (try? cache.flush()) != nil },
            { cache.close() },
        ] as [() -> Any] {
            let isWhole = try database.check { interrupt in
                // It begins once nothing else is to be done.
                while !store.beginCheck(interrupt) { sched_yield() }
                _ = act()
                return true
            }
            store.endCheck()
            XCTAssertFalse(isWhole)
        }
        XCTAssertFalse(try database.check { store.beginCheck($0) }, "it is closed")
    }

    /// Others could not empty the log meanwhile, and would store nothing once it is full.
    func testItIsEndedWhereTheLogBecomesLong() throws {
        try makeIndex(entries: 200_000, isDamaged: false)
        let index = try Index.open(index, steps: IndexSchema.steps)
        let other = try Database(self.index, busyMilliseconds: 1_000)
        try other.execute("PRAGMA wal_autocheckpoint = 0")
        var watch: CheckWatch?
        let isWhole = try index.database.check { interrupt in
            watch = CheckWatch(index.log, interrupt)
            let change: Void? = try? other.execute("UPDATE entries SET response = zeroblob(301) WHERE id < 20000")
            XCTAssertNotNil(change)
            return watch != nil
        }
        watch?.end()
        XCTAssertTrue(index.log.isLong)
        XCTAssertFalse(isWhole)
    }

    /// It is tried again a second later.
    func testWhatWasEndedIsDoneLater() throws {
        try makeIndex(entries: 20_000, isDamaged: true)
        let reader = try Database(index, busyMilliseconds: 1_000)
        // It reads, so that the log stays long.
        let statement = try reader.prepare("SELECT id FROM entries")
        XCTAssertTrue(try statement.step())
        let other = try Database(index, busyMilliseconds: 1_000)
        try other.execute("PRAGMA wal_autocheckpoint = 0")
        try other.execute("UPDATE entries SET response = zeroblob(301) WHERE id < 20000 AND id > 10000")
        let cache = try open()
        try cache.finishBackgroundWork()
        XCTAssertEqual(log.kinds, [])
        statement.reset()
        XCTAssertTrue(log.wait(for: .movedAside))
        cache.close()
    }
}
