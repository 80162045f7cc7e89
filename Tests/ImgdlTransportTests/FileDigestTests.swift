import Foundation
import ImgdlCore
import Synchronization
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
        assertUnreadable(file, "No such file or directory")
        assertUnreadable(NSTemporaryDirectory(), "it is not a file")
        try Data("abc".utf8).write(to: URL(fileURLWithPath: file))
        var one: FileContents? = try FileDigest.contents(of: file)
        weak var held = one
        XCTAssertEqual(one.map { Array($0.bytes) }, Array("abc".utf8))
        XCTAssertEqual(one?.digest, FileDigest.of(file))
        XCTAssertTrue(try FileDigest.contents(of: file) === one)
        try Data("abd".utf8).write(to: URL(fileURLWithPath: file))
        let other = try FileDigest.contents(of: file)
        XCTAssertNotEqual(other, one)
        XCTAssertEqual(one.map { Array($0.bytes) }, Array("abc".utf8), "it stays as it was")
        one = nil
        XCTAssertNil(held)
        // One that nobody has written to for long is not read again.
        let shell = try FileDigest.contents(of: "/bin/sh")
        XCTAssertTrue(try FileDigest.contents(of: "/bin/sh") === shell)
        XCTAssertEqual(shell.digest, FileDigest.of("/bin/sh"))
        XCTAssertEqual(truncate(file, off_t(FileDigest.maximumBytes)), 0)
        XCTAssertEqual(try FileDigest.contents(of: file).bytes.count, FileDigest.maximumBytes)
        XCTAssertEqual(truncate(file, off_t(FileDigest.maximumBytes + 1)), 0)
        assertUnreadable(file, "it is larger than \(FileDigest.maximumBytes) bytes")
    }

    /// With the one cause that there is.
    private func assertUnreadable(_ file: String, _ cause: String, line: UInt = #line) {
        XCTAssertThrowsError(try FileDigest.contents(of: file), line: line) { error in
            XCTAssertEqual(error as? FileDigest.Refusal, .unreadable(cause), line: line)
        }
    }

    /// What is in them is looked for once, however many requests name them and whoever went by others meanwhile.
    func testWhatIsInThemIsLookedForOnce() throws {
        let file = NSTemporaryDirectory() + "imgdl-found-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try Data("abc".utf8).write(to: URL(fileURLWithPath: file))
        let contents = try FileDigest.contents(of: file)
        let found: [PEMFinding] = [.something, .nothing, .broken, .something]
        for round in 0..<2 {
            for (kind, finding) in zip(PEMKind.allCases, found) {
                let again = contents.finding(kind) { bytes in
                    XCTAssertEqual(round, 0, "\(kind)")
                    XCTAssertEqual(Array(bytes), Array("abc".utf8))
                    return finding
                }
                XCTAssertEqual(again, finding, "\(kind)")
            }
        }
    }

    /// However many files there are: each is held once, by all that go by it.
    func testContentsAreSharedAmongMany() throws {
        let folder = NSTemporaryDirectory() + "imgdl-many-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = (0..<200).map { "\(folder)/\($0)" }
        for file in files { try Data(file.utf8).write(to: URL(fileURLWithPath: file)) }
        let held = try files.map { try FileDigest.contents(of: $0) }
        for (file, contents) in zip(files, held) {
            XCTAssertTrue(try FileDigest.contents(of: file) === contents, file)
            XCTAssertEqual(Array(contents.bytes), Array(file.utf8))
        }
        // Under another name, too.
        try FileManager.default.copyItem(atPath: files[199], toPath: folder + "/copy")
        XCTAssertTrue(try FileDigest.contents(of: folder + "/copy") === held[199])
    }

    /// What differs is held up to a bound, and no further; what is let go of makes room.
    func testContentsThatDifferHaveABound() throws {
        let file = NSTemporaryDirectory() + "imgdl-large-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        func read(_ number: Int) throws -> FileContents {
            try Data("\(number)".utf8).write(to: URL(fileURLWithPath: file))
            XCTAssertEqual(truncate(file, off_t(FileDigest.maximumBytes)), 0)
            return try FileDigest.contents(of: file)
        }
        var held: [FileContents] = []
        while held.count < 100 {
            do {
                held.append(try read(held.count))
            } catch {
                XCTAssertEqual(error as? FileDigest.Refusal, .outOfMemory)
                break
            }
        }
        var options = TLSOptions()
        options.certificateAuthorities = file
        XCTAssertThrowsError(try options.readFiles()) { error in
            XCTAssertEqual((error as? Failure)?.code, .outOfMemory)
            let message = (error as? Failure)?.message ?? ""
            XCTAssertTrue(message.hasPrefix("ca_file “\(file)”") && message.contains("128 MiB"), message)
            let advice = "; imgdl_trim (CONNECTIONS) lets go of what idle connections hold"
            XCTAssertTrue(message.hasSuffix(advice), message)
        }
        XCTAssertEqual(held.count, HeldContents.maximumBytes / (FileDigest.maximumBytes + HeldContents.bytesBesides))
        XCTAssertTrue(try read(0) === held[0], "what is held already needs no room")
        XCTAssertThrowsError(try read(100))
        held.removeLast()
        held.append(try read(100))
        XCTAssertThrowsError(try read(101))
        held = []
        XCTAssertNoThrow(try read(101))
    }

    /// Many threads take and let go of the same ones: what they see is whole, and in the end nothing is held.
    func testContentsAreTakenAndLetGoByManyThreads() throws {
        let folder = NSTemporaryDirectory() + "imgdl-threads-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // Two that are read again each time, as they were written a moment ago, and two that are known.
        let files = ["\(folder)/a", "\(folder)/b", "/bin/sh", "/etc/passwd"]
        for file in files.prefix(2) { try Data(file.utf8).write(to: URL(fileURLWithPath: file)) }
        let digests = try files.map { try XCTUnwrap(FileDigest.of($0)) }
        let before = FileDigest.bytesHeld
        let wrong = Atomic(0)
        let threads = try (0..<4).map { first in
            try ImgdlCore.Thread.start(name: "taker") {
                for round in 0..<200 {
                    let index = (first + round) % files.count
                    let one = try? FileDigest.contents(of: files[index])
                    let same = try? FileDigest.contents(of: files[index])
                    if one?.digest != digests[index] || one !== same { wrong.add(1, ordering: .relaxed) }
                }
            }
        }
        for thread in threads { thread.join() }
        XCTAssertEqual(wrong.load(ordering: .relaxed), 0)
        XCTAssertLessThanOrEqual(FileDigest.bytesHeld, before)
    }
}
