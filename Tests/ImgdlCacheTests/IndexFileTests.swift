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
            let thread = try Thread.start(name: "reader") { reader = nil }
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
}
