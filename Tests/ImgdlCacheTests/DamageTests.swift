import CStore
import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5: damage of files and of the index. What is damaged is never given, and the store always opens.
final class DamageTests: StoreTestCase {
    private func makeStored(_ keys: [String]) throws {
        let cache = try open()
        for key in keys { cache.put(key, bytes(10_000)) }
        try cache.flush()
        cache.close()
    }

    private func corrupt(_ file: String, at offset: Int, with byte: UInt8 = 0xA5) {
        var content = read(file)
        content[offset] ^= byte
        write(content, to: file)
    }

    func testADamagedBodyIsRemovedAndTheNextOneIsChosen() throws {
        for damage in ["flipped", "short", "long", "missing", "folder", "link"] {
            let cache = try open()
            cache.put("k", bytes(10_000, seed: 1), response(at: 1, varying: [VaryingField(name: "a", value: nil)]))
            try cache.flush()
            let older = Set(files)
            cache.put("k", bytes(10_000, seed: 2), response(at: 2))
            try cache.flush()
            let file = try XCTUnwrap(files.first { !older.contains($0) })
            switch damage {
            case "flipped": corrupt(file, at: 5_000)
            case "short": XCTAssertEqual(truncate(file, 9_999), 0)
            case "long": write(bytes(10_000, seed: 2) + [0], to: file)
            case "folder":
                unlink(file)
                mkdir(file, 0o700)
            case "link":
                unlink(file)
                symlink("/etc/hostname", file)
            default: unlink(file)
            }
            let found = try XCTUnwrap(cache.wait("k"), damage)
            XCTAssertEqual(found.bytes, bytes(10_000, seed: 1), damage)
            try cache.flush()
            XCTAssertEqual(try cache.statistics().damaged, 1, damage)
            XCTAssertEqual(try cache.statistics().entries, 1, damage)
            rmdir(file)
            cache.remove(key: "k")
            cache.close()
        }
        XCTAssertEqual(log.all, [])
    }

    func testADamagedRowIsRemoved() throws {
        try makeStored(["k", "other"])
        let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        for column in ["length = length + 1", "checksum = 1", "response = x'00'", "response = x''"] {
            try database.execute("UPDATE entries SET \(column) WHERE key = 'k'")
            let cache = try open()
            XCTAssertNil(cache.wait("k"), column)
            XCTAssertEqual(cache.wait("other")?.bytes, bytes(10_000), column)
            try cache.flush()
            XCTAssertEqual(try cache.statistics().damaged, 1, column)
            cache.put("k", bytes(10_000))
            cache.close()
        }
    }

    /// The seal is no secret: whoever may write the index can make rows that agree with themselves. Such a row is passed over
    /// and removed.
    func testAForgedRowIsPassedOver() throws {
        let forged: [(Int64, StoredResponse.Extent, Int64)] = [
            (.max, .whole, 1), (.min, .whole, 1), (-1, .whole, 1), (1 << 60, .whole, 1), (0, .whole, .min),
            (0, .whole, .max), (7, .part(Int64.max - 7..<Int64.max, total: .max), 1),
            (10_000, .part(0..<20_000, total: nil), 1), (.max, .part(0..<Int64.max, total: nil), 1),
            (10_000, .beginning(total: 5), 1), (.max, .beginning(total: .max), 1), (0, .beginning(total: .min), 1),
        ]
        for (length, extent, time) in forged {
            try makeStored(["k", "other"])
            let index = try Index.openForReading(path + "/index-1.sqlite")
            let row = try XCTUnwrap(index.rows("k", damaged: { _ in }).first)
            var response = row.entry.response
            (response.bodyLength, response.extent, response.responseTime) = (length, extent, time)
            let identity = RowIdentity(id: row.entry.id, key: "k", length: length, checksum: row.checksum)
            let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
            let statement = try database.prepare("UPDATE entries SET length = ?1, response = ?2 WHERE key = 'k'")
            statement.bind(1, length)
            statement.bind(2, ResponseCoding.encode(response, identity))
            try statement.run()
            let cache = try open()
            XCTAssertNil(cache.wait("k"), "\(length) \(extent)")
            XCTAssertEqual(cache.wait("other")?.bytes, bytes(10_000), "\(length) \(extent)")
            try cache.flush()
            XCTAssertEqual(try cache.statistics().damaged, 1, "\(length) \(extent)")
            cache.close()
            removeFolder(path)
        }
    }

    /// Versions that no library writes: the index is moved aside and begun anew.
    func testAForgedVersion() throws {
        for version in [-1, Int(Int32.min)] {
            try makeStored(["k"])
            let before = log.kinds.count
            do {
                let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
                try database.execute("PRAGMA user_version = \(version)")
            }
            let cache = try open()
            XCTAssertNil(cache.wait("k"))
            cache.put("new", bytes(10))
            try cache.flush()
            XCTAssertEqual(cache.wait("new")?.bytes, bytes(10))
            XCTAssertEqual(log.kinds.dropFirst(before), [.movedAside])
            let message = try XCTUnwrap(log.all.last).message
            XCTAssertTrue(message.contains("it was renamed to \(path)/index-1.sqlite.aside-"), message)
            XCTAssertTrue(try XCTUnwrap(log.all.last).message.contains("version \(version)"))
            cache.close()
            removeFolder(path)
        }
    }

    /// Columns of other types than the library's: what is no response is passed over.
    func testForgedTypes() throws {
        for column in [
            "response = NULL", "response = 5", "response = 1e300", "response = 'text'", "response = zeroblob(100000)",
            "length = 'text'", "length = NULL", "length = 1e300", "length = x'00'", "checksum = 'text'", "id = -1",
            "id = -9223372036854775808", "stored = 'text'", "used = x'00'", "kind = 99",
        ] {
            try makeStored(["k", "other"])
            let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
            // The library's own table allows no NULL.
            try? database.execute("UPDATE entries SET \(column) WHERE key = 'k'")
            let cache = try open()
            if let found = cache.wait("k") { XCTAssertEqual(found.bytes, bytes(10_000), column) }
            XCTAssertEqual(cache.wait("other")?.bytes, bytes(10_000), column)
            try cache.flush()
            try cache.finishBackgroundWork()
            cache.put("k", bytes(10))
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(10), column)
            try cache.flush()
            cache.close()
            removeFolder(path)
        }
    }

    func testForgedTotalsEndNobody() throws {
        for bytes in ["9223372036854775807", "-9223372036854775808", "1e300", "'much'", "x'00'"] {
            for (column, other) in [("bytes", "entries"), ("entries", "bytes")] {
                try makeStored(["k"])
                let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
                try database.execute("UPDATE totals SET \(column) = \(bytes), \(other) = 9223372036854775807")
                try database.execute("UPDATE entries SET length = 9223372036854775807")
                let cache = try open()
                try cache.finishBackgroundWork()
                let statistics = try cache.statistics()
                XCTAssertTrue((0...Index.Totals.greatest).contains(statistics.bytes), "\(statistics.bytes)")
                XCTAssertTrue((0...Index.Totals.greatest).contains(statistics.entries), "\(statistics.entries)")
                cache.put("new", ImgdlCacheTests.bytes(100))
                XCTAssertEqual(cache.wait("new")?.bytes.count, 100)
                try cache.flush()
                try cache.finishBackgroundWork()
                try cache.clear()
                cache.close()
                removeFolder(path)
            }
        }
    }

    func testAnIndexOfRubbishIsMovedAsideAndBegunAnew() throws {
        for content in [bytes(20_000), Array("SQLite format 3\0".utf8) + bytes(8_192), bytes(10)] {
            try makeStored(["k"])
            let before = log.all.count
            let orphan = files[0]
            write(content, to: path + "/index-1.sqlite")
            unlink(path + "/index-1.sqlite-wal")
            let cache = try open()
            XCTAssertNil(cache.wait("k"))
            cache.put("new", bytes(10))
            try cache.flush()
            XCTAssertEqual(cache.wait("new")?.bytes, bytes(10))
            XCTAssertEqual(log.kinds.dropFirst(before), [.movedAside])
            XCTAssertTrue(try XCTUnwrap(log.all.last).message.contains(path + "/index-1.sqlite"))
            let aside = Folder.names(in: path).filter {
                $0.contains("aside") && !$0.contains("-wal") && !$0.contains("-shm")
            }
            XCTAssertEqual(aside.count, 1, "the last one alone is kept")
            XCTAssertEqual(read("\(path)/\(aside[0])"), content)
            try cache.finishBackgroundWork()
            XCTAssertFalse(files.contains(orphan), "its bodies go")
            XCTAssertEqual(files.count, 1)
            cache.close()
        }
    }

    /// Damage may be found only now, in pages that nobody has looked at before: what is being stored goes with the index then,
    /// and there is an event.
    private func assertStores(_ key: String, _ count: Int, in cache: Cache, _ words: String) throws {
        let before = log.kinds.count
        cache.put(key, bytes(count))
        try cache.flush()
        if cache.wait(key) == nil {
            // The look-up that found it has asked for another index.
            try cache.flush()
            XCTAssertTrue(log.kinds.dropFirst(before).contains(.movedAside), "\(words) \(log.all.map(\.message))")
            cache.put(key, bytes(count))
            try cache.flush()
        }
        XCTAssertEqual(cache.wait(key)?.bytes, bytes(count), words)
        XCTAssertTrue(try cache.statistics().isWritable, "\(words) \(log.all.map(\.message))")
    }

    func testATruncatedOrDamagedIndexNeverServesWrongBytes() throws {
        try makeStored((0..<200).map { "k\($0)" })
        let image = read(path + "/index-1.sqlite")
        let shards = files.map { ($0, read($0)) }
        for round in 0..<40 {
            var damaged = image
            if round % 4 == 0 {
                damaged.removeLast(damaged.count * (round + 1) / 50)
            } else {
                for i in 0..<(round * 3) {
                    damaged[(round * 7919 + i * 104_729) % damaged.count] ^= UInt8(truncatingIfNeeded: i + 1)
                }
            }
            for name in Folder.names(in: path) where name.hasPrefix("index") { unlink("\(path)/\(name)") }
            write(damaged, to: path + "/index-1.sqlite")
            for (name, content) in shards { write(content, to: name) }
            let cache = try open()
            for i in stride(from: 0, to: 200, by: 7) {
                if let found = cache.wait("k\(i)") { XCTAssertEqual(found.bytes, bytes(10_000), "round \(round)") }
            }
            try assertStores("new", 50, in: cache, "round \(round)")
            try assertStores("newer", 60, in: cache, "round \(round)")
            cache.close()
        }
    }

    func testTheDatabaseOfAnotherProgramIsMovedAside() throws {
        mkdir(path, 0o700)
        do {
            let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
            try database.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY); PRAGMA user_version = 1")
        }
        // Whoever made it let others read it: what lies there aside is this user's alone.
        chmod(path + "/index-1.sqlite", 0o644)
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        XCTAssertEqual(log.kinds, [.movedAside])
        XCTAssertTrue(log.all[0].message.contains("another program"))
        let asides = Folder.names(in: path).filter { $0.contains(".aside-") }
        XCTAssertFalse(asides.isEmpty)
        for name in asides {
            var status = stat()
            XCTAssertEqual(lstat("\(path)/\(name)", &status), 0)
            XCTAssertEqual(status.st_mode & 0o777, 0o600, name)
        }
        cache.close()
    }

    func testAnOlderIndexIsMigratedAndANewerOneMovedAside() throws {
        try makeStored(["k"])
        tuning.steps =
            IndexSchema.steps + ["ALTER TABLE totals ADD COLUMN remark TEXT", "UPDATE totals SET remark = 'v3'"]
        var cache = try open()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10_000))
        try cache.flush()
        XCTAssertEqual(log.all, [])
        cache.close()
        let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        XCTAssertEqual(try database.integer("PRAGMA user_version"), 3)
        XCTAssertEqual(try database.integer("SELECT count(*) FROM totals WHERE remark = 'v3'"), 3)
        tuning.steps = IndexSchema.steps
        cache = try open()
        XCTAssertNil(cache.wait("k"))
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertEqual(log.kinds, [.movedAside])
        XCTAssertTrue(log.all[0].message.contains("version 3"))
        cache.close()
    }

    /// Libraries of one version have one folder's index in common. One step more, and the older ones move it aside: what adds
    /// a step to a version that was released takes another version, and its names.
    func testTheStepsOfAVersionDoNotGrow() {
        XCTAssertEqual(Folder.version, 1)
        XCTAssertEqual(IndexSchema.steps.count, 1)
    }

    func testWhatALibraryOfAnotherVersionKeepsBesideItStays() throws {
        try makeStored(["k"])
        for name in ["bodies-2", "bodies-2/00", "writers-2", "writers-2/1"] { mkdir("\(path)/\(name)", 0o700) }
        let names = [
            "index-2.sqlite", "index-2.sqlite-wal", "lock-2", "changes-2", "opening-2", "bodies-2/00/0000000000000001",
            "writers-2/1/0000000000000002",
        ]
        for name in names { write([1, 2], to: "\(path)/\(name)") }
        let cache = try open()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10_000))
        try cache.finishBackgroundWork()
        try cache.clear()
        cache.put("new", bytes(10))
        try cache.flush()
        XCTAssertEqual(cache.wait("new")?.bytes, bytes(10))
        cache.close()
        XCTAssertEqual(log.all, [])
        for name in names { XCTAssertEqual(read("\(path)/\(name)"), [1, 2], name) }
    }

    func testAMigrationThatFailsIsUndone() throws {
        try makeStored(["k"])
        tuning.steps = IndexSchema.steps + ["ALTER TABLE totals ADD COLUMN remark TEXT; CREATE TABLE totals (id)"]
        var cache = try open()
        XCTAssertThrowsError(try cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .diskFailed) }
        XCTAssertEqual(log.kinds, [.unwritable], "steps that can never be taken")
        cache.close()
        tuning.steps = IndexSchema.steps
        cache = try open()
        cache.put("k", bytes(10))
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        cache.close()
    }

    func testNamesThatAreNoneOfOursStay() throws {
        try makeStored(["k"])
        let shard = files[0].split(separator: "/").dropLast().joined(separator: "/")
        let foreign = ["/\(shard)/README", "/\(shard)/00000000000000zz", "/\(shard)/ABCDEF0123456789"]
        for name in foreign { write([1], to: name) }
        write([1], to: "/\(shard)/00000000000000aa")
        // As a process leaves it that is killed.
        mkdir(path + "/writers-1/1234", 0o700)
        write([1], to: path + "/writers-1/1234/00000000000000ab")
        let cache = try open()
        try cache.finishBackgroundWork()
        XCTAssertEqual(files.count, 4)
        XCTAssertEqual(Set(files).intersection(foreign), Set(foreign))
        XCTAssertEqual(Folder.names(in: path + "/writers-1").count, 1)
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10_000))
        cache.close()
    }
}
