import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Many writers that were killed, and a process that may have few descriptors.
final class DeadWriterTests: StoreTestCase {
    private static let deadCount = 60

    private var writers: [String] { Folder.names(in: "\(path)/writers-1") }

    private func makeStored() throws {
        let cache = try open()
        cache.put("k", bytes(1_000))
        try cache.flush()
        cache.close()
    }

    /// Each with a body that it has not told the index of.
    private func leaveDeadWriters() {
        for number in 1...Self.deadCount {
            XCTAssertEqual(mkdir("\(path)/writers-1/dead\(number)", 0o700), 0)
            write(bytes(10), to: "\(path)/writers-1/dead\(number)/0000000000000001")
        }
    }

    /// So many more descriptors may be open than there are.
    private func withDescriptors<Result>(_ free: Int32, _ body: () throws -> Result) throws -> Result {
        var limit: Int32 = 0
        var left = free
        while fcntl(limit, F_GETFD) >= 0 || left > 0 {
            if fcntl(limit, F_GETFD) < 0 { left -= 1 }
            limit += 1
        }
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var usual = rlimit()
        XCTAssertEqual(getrlimit(resource, &usual), 0)
        var low = usual
        low.rlim_cur = rlim_t(limit)
        XCTAssertEqual(setrlimit(resource, &low), 0)
        defer { XCTAssertEqual(setrlimit(resource, &usual), 0) }
        return try body()
    }

    func testManyDeadWritersNeedNoMoreDescriptorsThanOne() throws {
        try makeStored()
        leaveDeadWriters()
        XCTAssertEqual(writers.count, Self.deadCount)
        let cache = try withDescriptors(24) {
            let cache = try open()
            try cache.finishBackgroundWork()
            return cache
        }
        XCTAssertEqual(writers.count, 1, "what is left is the living one's")
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(1_000))
        cache.close()
        XCTAssertEqual(writers, [])
    }

    /// A search that cannot look has seen nothing, and goes on later.
    func testWithoutADescriptorNothingIsTakenForSearched() throws {
        try makeStored()
        let cache = try open()
        try cache.finishBackgroundWork()
        let shard = files[0].split(separator: "/").dropLast().joined(separator: "/")
        let orphan = "/\(shard)/00000000000000aa"
        for isKnown in [false, true] {
            // On its own thread, where it does nothing else meanwhile.
            _ = try cache.disk?.onWriter { [self] writer in
                leaveDeadWriters()
                write([1], to: orphan)
                writer.orphans = OrphanSearch(isKnown ? try? WriterFolder.dead(in: writer.folder) : nil)
                try? withDescriptors(0) { while writer.backgroundStep() {} }
                XCTAssertEqual(writers.count, Self.deadCount + 1)
                XCTAssertEqual(access(orphan, F_OK), 0)
                XCTAssertFalse(writer.orphans?.isAtEnd ?? true)
            }
            try cache.finishBackgroundWork()
            XCTAssertEqual(writers.count, 1)
            XCTAssertNotEqual(access(orphan, F_OK), 0)
        }
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(1_000))
        cache.close()
    }

    /// Its folder cannot be opened: the file goes later.
    func testABodyThatIsRemovedWithoutDescriptorsGoesLater() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        try cache.finishBackgroundWork()
        try withDescriptors(0) { try cache.removeAndWait(key: "k") }
        XCTAssertEqual(files.count, 1)
        try cache.finishBackgroundWork()
        XCTAssertEqual(files, [])
        cache.close()
        XCTAssertEqual(log.all, [])
    }

    func testADeadWriterThatSomebodyElseCleansUpAfterIsLeftToThem() throws {
        mkdir(path, 0o700)
        let folder = Folder(path: path)
        mkdir(folder.writers.description, 0o700)
        mkdir(folder.writers.description + "/dead", 0o700)
        XCTAssertEqual(try WriterFolder.dead(in: folder), ["dead"])
        let other = try XCTUnwrap(try WriterFolder.claim("dead", in: folder))
        XCTAssertEqual(try WriterFolder.dead(in: folder), [])
        XCTAssertNil(try WriterFolder.claim("dead", in: folder))
        try other.remove()
        XCTAssertNil(try WriterFolder.claim("dead", in: folder), "it is gone")
        mkdir(folder.writers.description + "/dead", 0o700)
        try withDescriptors(0) {
            XCTAssertThrowsError(try WriterFolder.dead(in: folder))
            XCTAssertThrowsError(try WriterFolder.claim("dead", in: folder))
        }
    }
}
