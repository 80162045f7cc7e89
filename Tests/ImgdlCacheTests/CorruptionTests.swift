import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: files of the cache are damaged at random, while it is closed and while it is open. Nothing wrong is served,
/// nobody crashes, and the cache works again. A seed is printed; IMGDL_SEED plays it again, IMGDL_LONG plays a hundred.
final class CorruptionTests: StoreTestCase {
    private enum Manner: CaseIterable {
        case flipped, zeroed, shortened, lengthened, emptied, removed, exchanged, shifted, pipe, link, folder
    }

    private var random = SeededRandom(state: 1)

    func testRandomCorruptions() throws {
        let environment = { (name: String) in getenv(name).map { String(cString: $0) } }
        let seed = environment("IMGDL_SEED").flatMap { UInt64($0) } ?? .random(in: 1..<1_000_000)
        let rounds = environment("IMGDL_LONG") == nil ? 6 : 100
        print("corruptions: \(rounds) rounds, seed \(seed): IMGDL_SEED=\(seed) plays them again")
        // It is wanted most where the run is killed.
        fflush(nil)
        var applied = 0
        for round in 0..<rounds {
            random = SeededRandom(state: seed &* 1_000 &+ UInt64(round))
            applied += try play("seed \(seed), round \(round)")
            removeFolder(path)
        }
        XCTAssertGreaterThanOrEqual(applied, rounds, "something was damaged in each")
    }

    /// Two trees of the index have a page in common, which SQLite does not notice while it reads and writes.
    func testASharedPageIsFoundBeforeAnythingIsStored() throws {
        random = SeededRandom(state: 521_560_010)
        XCTAssertGreaterThan(try play("a page of two trees"), 0)
        XCTAssertEqual(log.kinds, [.movedAside])
    }

    private func play(_ words: String) throws -> Int {
        configuration.maximumMemoryBytes = Bool.random(using: &random) ? 1 << 20 : 0
        var cache = try open()
        store(in: cache)
        try cache.flush()
        // Open: SQLite's log has what is stored, and is damaged, too.
        let isOpen = Int.random(in: 0..<3, using: &random) == 0
        if !isOpen { cache.close() }
        var applied = 0
        var manners: [String] = []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            guard let (name, manner) = corrupt(isOpen: isOpen) else { continue }
            manners.append("\(manner) \(name)")
            applied += 1
        }
        let words = "\(words): \(manners)"
        if isOpen {
            check(cache, words)
            cache.close()
        }
        cache = try open()
        check(cache, words)
        try checkWorks(cache, words)
        cache.close()
        cache = try open()
        XCTAssertEqual(cache.wait("after")?.bytes, bytes(70, seed: 9), words)
        check(cache, words)
        try cache.clear()
        try cache.finishBackgroundWork()
        XCTAssertEqual(files.filter(isFile), [], words)
        cache.close()
        return applied
    }

    // MARK: What is stored

    private func content(_ number: Int) -> [UInt8] {
        bytes([0, 1, 100, 5_000, 70_000][number % 5], seed: UInt64(number + 1))
    }

    private func response(_ number: Int) -> StoredResponse {
        let extent: StoredResponse.Extent =
            number % 7 == 3 ? .beginning(total: 100_000) : number % 7 == 5 ? .headAlone : .whole
        return ImgdlCacheTests.response(
            [HeaderField("X", "\(number)")], at: Int64(number),
            varying: number % 3 == 0 ? [VaryingField(name: "accept", value: "\(number)")] : [], extent: extent)
    }

    private func store(in cache: Cache) {
        for number in 0..<60 {
            cache.put("k\(number)", content(number), response(number), keeps: number % 7 == 3)
        }
    }

    /// Whatever is served is what was stored under its key.
    private func check(_ cache: Cache, _ words: String) {
        for number in 0..<60 {
            guard let found = cache.wait("k\(number)") else { continue }
            var expected = response(number)
            expected.bodyLength = Int64(content(number).count)
            XCTAssertTrue(found.entry.response == expected, "\(words): k\(number)")
            XCTAssertTrue(found.bytes == content(number), "\(words): k\(number)")
        }
    }

    /// Damage may be found only now; what was being stored then goes with the index.
    private func checkWorks(_ cache: Cache, _ words: String) throws {
        var found: FoundEntry?
        for _ in 0..<4 where found == nil {
            cache.put("after", bytes(70, seed: 9))
            try? cache.flush()
            clock.advance(seconds: 600)
            found = cache.wait("after")
        }
        XCTAssertEqual(found?.bytes, bytes(70, seed: 9), "\(words) \(log.all.map(\.message))")
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertTrue(try cache.statistics().isWritable, words)
    }

    // MARK: Damage

    /// SQLite's shared memory and the counters are mapped: a file that is cut off ends whoever looks at it, and that is left
    /// to programs of the same user.
    private func corrupt(isOpen: Bool) -> (String, Manner)? {
        let mapped = [path + "/index-1.sqlite-shm", path + "/changes-1"]
        let index = [path + "/index-1.sqlite", path + "/index-1.sqlite-wal"]
        let others = [path + "/key", path + "/lock-1"] + (isOpen ? [] : mapped)
        let kind = Int.random(in: 0..<10, using: &random)
        let candidates = (kind < 5 ? index : kind < 9 ? files.sorted() : others).filter { access($0, F_OK) == 0 }
        guard let name = candidates.randomElement(using: &random),
            let manner = Manner.allCases.randomElement(using: &random)
        else { return nil }
        apply(manner, to: name)
        return (String(name.dropFirst(path.count)), manner)
    }

    private func apply(_ manner: Manner, to name: String) {
        var content = isFile(name) ? read(name) : []
        switch manner {
        case .removed: return remove(name)
        case .pipe:
            remove(name)
            mkfifo(name, 0o600)
            return
        case .link:
            remove(name)
            symlink("/etc/hostname", name)
            return
        case .folder:
            remove(name)
            mkdir(name, 0o700)
            return
        case .exchanged:
            guard let other = files.sorted().randomElement(using: &random), isFile(other) else { return remove(name) }
            content = read(other)
        case .emptied: content = []
        case .shortened: content.removeLast(content.isEmpty ? 0 : Int.random(in: 1...content.count, using: &random))
        case .lengthened: content += bytes(Int.random(in: 1...5_000, using: &random), seed: 3)
        case .flipped:
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                guard let place = content.indices.randomElement(using: &random) else { break }
                content[place] ^= UInt8.random(in: 1...255, using: &random)
            }
        case .zeroed:
            guard let place = content.indices.randomElement(using: &random) else { break }
            for index in place..<min(place + 4_096, content.count) { content[index] = 0 }
        case .shifted:
            // A page of the index where another one should be.
            let pages = content.count / 4_096
            guard pages > 1 else { break }
            let (from, to) = (Int.random(in: 0..<pages, using: &random), Int.random(in: 0..<pages, using: &random))
            content.replaceSubrange(
                to * 4_096..<(to + 1) * 4_096, with: Array(content[from * 4_096..<(from + 1) * 4_096]))
        }
        remove(name)
        write(content, to: name)
        chmod(name, 0o600)
    }

    private func isFile(_ name: String) -> Bool {
        var status = stat()
        return lstat(name, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    private func remove(_ name: String) {
        unlink(name)
        rmdir(name)
    }
}
