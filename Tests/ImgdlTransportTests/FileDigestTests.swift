import Foundation
import XCTest

@testable import ImgdlTransport

/// What is in a file that options name.
final class FileDigestTests: XCTestCase {
    func testItIsOfWhatIsInIt() throws {
        let file = NSTemporaryDirectory() + "imgdl-digest-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        XCTAssertNil(FileDigest.of(file))
        var seen: [[UInt8]] = []
        for text in ["a", "b", "a"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
            seen.append(try XCTUnwrap(FileDigest.of(file)))
        }
        XCTAssertEqual(seen[0], seen[2])
        XCTAssertNotEqual(seen[0], seen[1])
        XCTAssertNil(FileDigest.of(NSTemporaryDirectory()), "a folder")
    }

    /// Nothing is remembered of a file that may have changed within the same moment.
    func testAFreshFileIsReadAgain() {
        for (changed, isSettled) in [(100, false), (99, false), (98, false), (97, true), (101, false), (-5, true)] {
            XCTAssertEqual(FileDigest.isSettled(changed: Int64(changed), now: 100), isSettled, "\(changed)")
        }
    }

    /// The same bytes are held once, as long as somebody goes by them.
    func testContentsAreSharedAndLetGo() throws {
        let file = NSTemporaryDirectory() + "imgdl-contents-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        XCTAssertNil(FileDigest.contents(of: file))
        XCTAssertNil(FileDigest.contents(of: NSTemporaryDirectory()), "a folder")
        try Data("abc".utf8).write(to: URL(fileURLWithPath: file))
        var one = FileDigest.contents(of: file)
        weak var held = one
        XCTAssertEqual(one.map { Array($0.bytes) }, Array("abc".utf8))
        XCTAssertEqual(one?.digest, FileDigest.of(file))
        XCTAssertTrue(FileDigest.contents(of: file) === one)
        try Data("abd".utf8).write(to: URL(fileURLWithPath: file))
        let other = try XCTUnwrap(FileDigest.contents(of: file))
        XCTAssertNotEqual(other, one)
        XCTAssertEqual(one.map { Array($0.bytes) }, Array("abc".utf8), "it stays as it was")
        one = nil
        XCTAssertNil(held)
        // One that nobody has written to for long is not read again.
        let shell = try XCTUnwrap(FileDigest.contents(of: "/bin/sh"))
        XCTAssertTrue(FileDigest.contents(of: "/bin/sh") === shell)
        XCTAssertEqual(shell.digest, FileDigest.of("/bin/sh"))
        XCTAssertEqual(truncate(file, off_t(FileDigest.maximumBytes)), 0)
        XCTAssertEqual(FileDigest.contents(of: file)?.bytes.count, FileDigest.maximumBytes)
        XCTAssertEqual(truncate(file, off_t(FileDigest.maximumBytes + 1)), 0)
        XCTAssertNil(FileDigest.contents(of: file))
    }
}
