import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Pages of the index that lie where others should be: each is sound, and what orders the entries contradicts them. The index is
/// found damaged by whoever would look for the same without end, or find no room for ever.
final class ExchangedPagesTests: StoreTestCase {
    private static let places = [
        "entries", "entries_by_key", "entries_by_use", "beginnings_by_use", "totals", "writers",
    ]
    private var index: String { path + "/index-1.sqlite" }

    private func store(_ count: Int) throws {
        configuration.maximumBytes = 100 << 20
        let cache = try open()
        for number in 0..<count {
            cache.put("k\(number)", bytes(1_000, seed: UInt64(number + 1)), keeps: number % 3 == 0)
        }
        try cache.flush()
        cache.close()
    }

    /// In the place of one the page of another.
    private func exchange(_ target: String, _ source: String) throws {
        let database = try Database(index, busyMilliseconds: 100)
        func page(_ name: String) throws -> Int {
            Int(try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'")) - 1
        }
        let (to, from) = (try page(target), try page(source))
        database.emptyLog(waiting: 1_000)
        var content = read(index)
        content.replaceSubrange(to * 4_096..<(to + 1) * 4_096, with: Array(content[from * 4_096..<(from + 1) * 4_096]))
        write(content, to: index)
    }

    private func check(_ count: Int, _ words: String) throws {
        // Some have to go at once.
        configuration.maximumBytes = 150_000
        let cache = try open()
        for number in 0..<count {
            if let found = cache.wait("k\(number)") {
                XCTAssertEqual(found.bytes, bytes(1_000, seed: UInt64(number + 1)), words)
            }
        }
        var found: FoundEntry?
        for _ in 0..<4 where found == nil {
            cache.put("after", bytes(70, seed: 9))
            try? cache.flush()
            try cache.finishBackgroundWork()
            clock.advance(seconds: 600)
            found = cache.wait("after")
        }
        XCTAssertEqual(found?.bytes, bytes(70, seed: 9), "\(words) \(log.all.map(\.message))")
        try cache.removeOlder(than: 60)
        try cache.clear()
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().entries, 0, words)
        XCTAssertEqual(files, [], words)
        XCTAssertTrue(try cache.statistics().isWritable, "\(words) \(log.all.map(\.message))")
        cache.close()
    }

    func testEachInThePlaceOfEach() throws {
        // Trees of one page, and of several.
        for (count, targets) in [(20, Self.places), (400, ["entries", "entries_by_use"])] {
            for target in targets {
                for source in Self.places where source != target {
                    try store(count)
                    try exchange(target, source)
                    let start = MonotonicClock().now()
                    try check(count, "\(count) entries, \(source) in the place of \(target)")
                    let time = MonotonicClock().now().milliseconds(since: start)
                    XCTAssertLessThan(time, 5_000, "\(count) entries, \(source) in the place of \(target)")
                    removeFolder(path)
                }
            }
        }
    }
}
