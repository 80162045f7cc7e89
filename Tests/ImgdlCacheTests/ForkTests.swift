import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// DESIGN section 3: the child of a fork never touches the parent's database. Counted on by hand: this process does not
/// fork, and what it has open stays so for its life.
final class ForkTests: StoreTestCase {
    func testAnInheritedCacheDoesNothingAndItsFolderIsNotOpenedAgain() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        let writer = try XCTUnwrap(cache.write("l", response()))
        writer.append(slices(bytes(10)))
        ProcessGeneration.advance()
        writer.append(slices(bytes(10)))
        writer.finish(response())
        XCTAssertNil(cache.findInMemory("k") { _ in .entry(0, withBody: true) })
        XCTAssertNil(cache.wait("k"))
        XCTAssertNil(cache.write("k", response()))
        cache.remove(key: "k")
        for call in [{ try cache.flush() }, { try cache.clear() }, { _ = try cache.query("k") }] {
            XCTAssertThrowsError(try call()) { XCTAssertEqual(($0 as? Failure)?.code, .forked) }
        }
        cache.close()
        XCTAssertEqual(files.count, 1)

        let child = try open()
        XCTAssertThrowsError(try child.flush())
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertTrue(log.all[0].message.contains("forked"))
        XCTAssertFalse(child.put("k", bytes(10)))
        child.close()

        configuration.directory = path + "/of-the-child"
        let own = try open()
        own.put("k", bytes(10))
        try own.flush()
        XCTAssertEqual(own.wait("k")?.bytes, bytes(10))
        own.close()
    }
}
