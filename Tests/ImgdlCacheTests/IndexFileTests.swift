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
        for round in 0..<20 {
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

    private func number(_ path: String) -> UInt64 {
        var status = stat()
        return lstat(path, &status) == 0 ? UInt64(status.st_ino) : 0
    }

    /// The log and the memory of an index whose file was taken away or replaced are not the next one's: who has them open
    /// goes on with them until it looks, and nobody cuts them off.
    func testSideFilesOfAnotherIndexAreNotTaken() throws {
        let damages: [(String, () -> Void)] = [
            ("removed", { unlink(self.index) }),
            (
                "replaced by a copy",
                {
                    self.write(self.read(self.index), to: self.index + "-copy")
                    chmod(self.index + "-copy", 0o600)
                    rename(self.index + "-copy", self.index)
                }
            ),
        ]
        for (words, damage) in damages {
            let one = try open()
            one.put("old", bytes(100, seed: 1))
            try one.flush()
            let before = [number(index + "-wal"), number(index + "-shm")]
            XCTAssertFalse(before.contains(0))
            damage()
            let two = try open()
            two.put("new", bytes(100, seed: 2))
            try two.flush()
            let after = [number(index + "-wal"), number(index + "-shm")]
            for (old, new) in zip(before, after) { XCTAssertNotEqual(old, new, words) }
            one.put("third", bytes(100, seed: 3))
            try one.flush()
            for cache in [one, two] {
                XCTAssertEqual(cache.wait("new")?.bytes, bytes(100, seed: 2), words)
                XCTAssertEqual(cache.wait("third")?.bytes, bytes(100, seed: 3), words)
            }
            XCTAssertEqual(after, [number(index + "-wal"), number(index + "-shm")], words)
            one.close()
            two.close()
            let three = try open()
            XCTAssertEqual(three.wait("third")?.bytes, bytes(100, seed: 3), words)
            three.close()
            removeFolder(path)
        }
    }

    /// Its name is another file's at the very moment when it is opened.
    func testTheIndexIsTakenAwayWhileItIsOpened() throws {
        for isReplaced in [false, true] {
            let one = try open()
            one.put("old", bytes(100, seed: 1))
            try one.flush()
            let content = read(index)
            let before = [number(index + "-wal"), number(index + "-shm")]
            var attempts = 0
            let found = try IndexPlace(folder: Folder(path: path)).whileInPlace(milliseconds: 1_000) {
                (check) throws(IndexProblem) in
                attempts += 1
                if attempts <= 2 {
                    unlink(self.index)
                    if isReplaced {
                        self.write(content, to: self.index)
                        chmod(self.index, 0o600)
                    }
                }
                return try Index.open(self.index, steps: IndexSchema.steps, check)
            }
            try XCTUnwrap(found).database.execute("UPDATE totals SET bytes = 7")
            let after = [number(index + "-wal"), number(index + "-shm")]
            for (old, new) in zip(before, after) { XCTAssertNotEqual(old, new, "replaced: \(isReplaced)") }
            // Its memory was not cut off.
            one.put("new", bytes(100, seed: 2))
            try one.flush()
            XCTAssertEqual(one.wait("new")?.bytes, bytes(100, seed: 2))
            XCTAssertEqual(after, [number(index + "-wal"), number(index + "-shm")])
            one.close()
            removeFolder(path)
        }
    }

    /// A copy of the whole folder has its own.
    func testTheLogOfACopiedFolderIsItsOwn() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        XCTAssertGreaterThan(bytesOnDisk(index + "-wal"), 0)
        let copy = path + "-copy"
        mkdir(copy, 0o700)
        for name in Folder.names(in: path) where name.contains("-1") {
            if name == "bodies-1" {
                mkdir("\(copy)/\(name)", 0o700)
                for shard in Folder.names(in: "\(path)/\(name)") {
                    mkdir("\(copy)/\(name)/\(shard)", 0o700)
                    for body in Folder.names(in: "\(path)/\(name)/\(shard)") {
                        write(read("\(path)/\(name)/\(shard)/\(body)"), to: "\(copy)/\(name)/\(shard)/\(body)")
                    }
                }
            } else if name != "writers-1" {
                write(read("\(path)/\(name)"), to: "\(copy)/\(name)")
                chmod("\(copy)/\(name)", 0o600)
            }
        }
        write(read(path + "/key"), to: copy + "/key")
        chmod(copy + "/key", 0o600)
        cache.close()
        configuration.directory = copy
        let other = try open()
        XCTAssertEqual(other.wait("k")?.bytes, bytes(100))
        other.close()
        removeFolder(copy)
    }

    /// Again and again, while others look up and store: nobody is ended by it.
    func testTheIndexIsTakenAwayUnderThreeCaches() throws {
        tuning.batchMilliseconds = 5
        let caches = [try open(), try open(), try open()]
        nonisolated(unsafe) var isDone = false
        nonisolated(unsafe) var rounds = 0
        let lock = Lock()
        let goesOn = Condition(lock)
        let threads = try caches.enumerated().map { number, cache in
            try ImgdlCore.Thread.start(name: "user") {
                var round = 0
                while !lock.withLock({ isDone }) {
                    round += 1
                    cache.put("\(number)-\(round % 20)", bytes(300, seed: UInt64(number * 20 + round % 20)))
                    if let found = cache.wait("\(number)-\(round * 7 % 20)") {
                        XCTAssertEqual(found.bytes, bytes(300, seed: UInt64(number * 20 + round * 7 % 20)))
                    }
                    if round % 5 == 0 { try? cache.flush() }
                    lock.withLock {
                        rounds += 1
                        goesOn.signal()
                    }
                }
            }
        }
        for _ in 0..<40 {
            lock.withLock {
                let begun = rounds
                while rounds < begun + 12 { goesOn.wait() }
            }
            unlink(index)
        }
        lock.withLock { isDone = true }
        for thread in threads { thread.join() }
        for cache in caches { try? cache.flush() }
        caches[0].put("after", bytes(70))
        try caches[0].flush()
        for cache in caches {
            XCTAssertEqual(cache.wait("after")?.bytes, bytes(70))
            cache.close()
        }
    }
}
