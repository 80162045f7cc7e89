import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

final class IndexFileTests: StoreTestCase {
    private var index: String { path + "/index-1.sqlite" }

    /// Whoever reads lets go of an index that is being moved aside: what the next one has in its log stays.
    func testALogIsNotRemovedByItsName() throws {
        mkdir(path, 0o700)
        for round in 0..<200 {
            var writer: Index? = try Index.open(index, steps: IndexSchema.steps)
            try writer?.database.execute("UPDATE totals SET bytes = 1")
            nonisolated(unsafe) var reader: Index? = try Index.openForReading(index)
            writer = nil
            let thread = try Thread.start(name: "reader") {
                withExtendedLifetime(reader) {}
                reader = nil
            }
            for end in ["", "-wal", "-shm"] { rename(index + end, index + "-aside" + end) }
            let next = try Index.open(index, steps: IndexSchema.steps)
            try next.database.execute("UPDATE totals SET bytes = 7")
            thread.join()
            let another = try Index.openForReading(index)
            XCTAssertEqual(try another.database.integer("SELECT bytes FROM totals WHERE kind = 0"), 7, "round \(round)")
            for end in ["", "-wal", "-shm"] {
                unlink(index + end)
                unlink(index + "-aside" + end)
            }
        }
    }

    /// Many look up at the moment when the index is found damaged and moved aside: whoever opens the one of before at that
    /// moment must not take the next one's log and shared memory for its own.
    func testManyLookUpWhileTheIndexIsReplaced() throws {
        for round in 0..<60 {
            var cache = try open()
            for number in 0..<60 { cache.put("k\(number)", bytes(100, seed: UInt64(number + 1))) }
            try cache.flush()
            cache.close()
            var content = read(index)
            let pages = content.count / 4_096
            for page in 3..<max(4, pages) where page % 2 == round % 2 {
                content.replaceSubrange(page * 4_096..<(page + 1) * 4_096, with: Array(content[8_192..<12_288]))
            }
            write(content, to: index)
            cache = try open()
            let found = cache
            let threads = try (0..<4).map { _ in
                try Thread.start(name: "reader") {
                    for number in 0..<60 {
                        if let entry = found.wait("k\(number)") {
                            XCTAssertEqual(entry.bytes, bytes(100, seed: UInt64(number + 1)), "round \(round)")
                        }
                    }
                }
            }
            for number in 0..<8 {
                cache.put("new\(number)", bytes(10))
                try? cache.flush()
            }
            for thread in threads { thread.join() }
            cache.put("after", bytes(70, seed: 9))
            try? cache.flush()
            cache.put("after", bytes(70, seed: 9))
            try cache.flush()
            XCTAssertEqual(cache.wait("after")?.bytes, bytes(70, seed: 9), "round \(round)")
            cache.close()
            removeFolder(path)
        }
    }
}
