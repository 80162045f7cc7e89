import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Rules of what is held of files, without files.
final class HeldContentsTests: XCTestCase {
    private func contents(_ count: Int, _ digest: UInt8) throws -> FileContents {
        FileContents(taking: try XCTUnwrap(malloc(count + 1)), count: count, digest: [digest])
    }

    func testTheSameBytesAreHeldOnce() throws {
        var held = HeldContents(maximumBytes: 10_000)
        let (one, same) = (try contents(100, 1), try contents(100, 1))
        XCTAssertNil(held.contents(of: [1]))
        XCTAssertTrue(held.hold(one) === one)
        XCTAssertTrue(held.hold(same) === one)
        XCTAssertTrue(held.contents(of: [1]) === one)
        XCTAssertEqual(held.bytes, 100 + HeldContents.bytesBesides)
        held.forget(same.bytes, same.digest)
        XCTAssertTrue(held.contents(of: [1]) === one, "that one was never held")
        held.forget(one.bytes, one.digest)
        XCTAssertNil(held.contents(of: [1]))
        XCTAssertEqual(held.bytes, 0)
        held.forget(one.bytes, one.digest)
        XCTAssertEqual(held.bytes, 0)
    }

    /// The bound counts bytes, and each file besides: also empty ones end somewhere.
    func testWhatDiffersHasABound() throws {
        for count in [0, 100] {
            let each = count + HeldContents.bytesBesides
            var held = HeldContents(maximumBytes: 10 * each)
            var kept: [FileContents] = []
            for number in 0..<UInt8(10) {
                kept.append(try contents(count, number))
                XCTAssertTrue(held.hold(kept[Int(number)]) === kept[Int(number)])
            }
            let more = try contents(count, 10)
            XCTAssertNil(held.hold(more))
            XCTAssertNil(held.contents(of: [10]))
            XCTAssertTrue(held.hold(try contents(count, 3)) === kept[3])
            held.forget(kept[3].bytes, kept[3].digest)
            XCTAssertTrue(held.hold(more) === more)
            XCTAssertEqual(held.bytes, 10 * each)
        }
    }

    /// Their end is told a moment after nobody holds them any more: others of the same bytes may have come by then.
    func testAnEndThatIsToldLate() throws {
        var held = HeldContents(maximumBytes: 1_000)
        var first: FileContents? = try contents(300, 1)
        // Its memory outlives it, as it does when it ends on another thread.
        let bytes = try XCTUnwrap(first).bytes
        XCTAssertNotNil(first.flatMap { held.hold($0) })
        let next = try contents(300, 1)
        first = nil
        XCTAssertNil(held.contents(of: [1]))
        XCTAssertEqual(held.bytes, 300 + HeldContents.bytesBesides)
        XCTAssertTrue(held.hold(next) === next)
        XCTAssertEqual(held.bytes, 300 + HeldContents.bytesBesides)
        held.forget(bytes, [1])
        XCTAssertTrue(held.contents(of: [1]) === next)
        XCTAssertEqual(held.bytes, 300 + HeldContents.bytesBesides)
    }
}
