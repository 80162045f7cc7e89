import CStore
import CacheTesting
import Glibc
import ImgdlCore
import Synchronization
import XCTest

@testable import ImgdlCache

/// Issue 20: whose the folder is, and what else may lie in it.
final class FolderTests: StoreTestCase {
    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    private func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    func testRightsDoNotDependOnTheUmask() throws {
        for mask in [0o000, 0o777] as [mode_t] {
            configuration.directory = path + "/\(mask)/cache"
            mkdir(path, 0o700)
            let before = umask(mask)
            let cache = try open()
            cache.put("k", bytes(10))
            try cache.flush()
            // SQLite has made its files by now.
            let names = Folder.names(in: path + "/\(mask)/cache")
            umask(before)
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
            XCTAssertTrue(Set(["index-1.sqlite", "index-1.sqlite-wal", "index-1.sqlite-shm"]).isSubset(of: names))
            XCTAssertEqual(mode(path + "/\(mask)"), 0o700)
            check(path + "/\(mask)/cache")
            XCTAssertEqual(log.all, [])
            cache.close()
        }
    }

    /// Such as a home on another disk.
    func testTheFolderItselfMayBeALink() throws {
        for end in ["", "/"] {
            mkdir(path, 0o700)
            symlink(path, path + "-link")
            configuration.directory = path + "-link" + end
            let cache = try open()
            cache.put("k", bytes(100))
            try cache.flush()
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
            try cache.clear()
            XCTAssertEqual(try cache.statistics().entries, 0)
            XCTAssertEqual(log.all, [])
            cache.close()
            unlink(path + "-link")
            removeFolder(path)
        }
    }

    /// Others may put something in the place of a folder on the way as soon as it is there.
    func testTheRightsOfNothingElseChangeWhereALinkTakesThePlaceOfAFolderThatIsMade() throws {
        mkdir(path, 0o755)
        let (way, target) = (path + "/way", path + "/target")
        mkdir(target, 0o755)
        chmod(target, 0o755)
        // What would be made in it is in the way: nothing is.
        write([1], to: target + "/cache")
        let isOver = Atomic(false)
        let taken = Atomic(0)
        let other = try ImgdlCore.Thread.start(name: "other") {
            while !isOver.load(ordering: .relaxed) {
                guard rmdir(way) == 0 else { continue }
                if symlink(target, way) == 0 { taken.wrappingAdd(1, ordering: .relaxed) }
            }
        }
        let end = MonotonicClock().now().advanced(byMilliseconds: 5_000)
        while taken.load(ordering: .relaxed) < 2_000, mode(target) == 0o755, MonotonicClock().now() < end {
            try? Folder(path: way + "/cache").make()
            unlink(way)
            removeFolder(way)
        }
        isOver.store(true, ordering: .relaxed)
        other.join()
        XCTAssertGreaterThan(taken.load(ordering: .relaxed), 0)
        XCTAssertEqual(mode(target), 0o755)
    }

    private func check(_ folder: String) {
        XCTAssertEqual(mode(folder), 0o700, folder)
        for name in Folder.names(in: folder) {
            let inner = "\(folder)/\(name)"
            var status = stat()
            lstat(inner, &status)
            if status.st_mode & S_IFMT == S_IFDIR { check(inner) } else { XCTAssertEqual(mode(inner), 0o600, inner) }
        }
    }

    /// Before it has locked its folder, a writer looks as one does that was killed.
    func testWritersBeginWhileOthersCleanUp() throws {
        mkdir(path, 0o700)
        let folder = Folder(path: path)
        XCTAssertThrowsError(try WriterFolder.make(in: folder), "a folder that is not there is told")
        mkdir(folder.writers.description, 0o700)
        let isDone = Atomic(false)
        let cleaners = try (0..<2).map { _ in
            try ImgdlCore.Thread.start(name: "cleaner") {
                while !isDone.load(ordering: .relaxed) {
                    for name in (try? WriterFolder.dead(in: folder)) ?? [] {
                        try? WriterFolder.claim(name, in: folder)?.remove()
                    }
                }
            }
        }
        for _ in 0..<2_000 {
            let own = try WriterFolder.make(in: folder)
            XCTAssertEqual(access(own.path.description, F_OK), 0)
            try own.remove()
        }
        isDone.store(true, ordering: .relaxed)
        for thread in cleaners { thread.join() }
        XCTAssertEqual(Folder.names(in: folder.writers.description), [])
    }

    func testAFolderThatOthersMayWriteIsNotUsedNorChanged() throws {
        for rights in [0o777, 0o720, 0o1777, 0o702] as [mode_t] {
            mkdir(path, 0o700)
            chmod(path, rights)
            let before = log.all.count
            XCTAssertThrowsError(try open()) { XCTAssertEqual(($0 as? Failure)?.code, .unsafeDirectory) }
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable])
            let message = try XCTUnwrap(log.all.last).message
            XCTAssertTrue(message.contains("other users may write"), message)
            XCTAssertTrue(message.contains("another directory") && message.contains("chmod -R go-w"), message)
            XCTAssertEqual(Folder.names(in: path), [])
            XCTAssertEqual(mode(path), rights)
            rmdir(path)
        }
        mkdir(path, 0o755)
        chmod(path, 0o755)
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertEqual(mode(path), 0o755, "an existing folder keeps its rights")
        cache.close()
    }

    func testAFileIsNoFolder() throws {
        close(creat(path, 0o600))
        let file = path + "/cache"
        XCTAssertThrowsError(try Folder(path: file).make()) { error in
            XCTAssertEqual(
                (error as? DiskError)?.failure, Failure(.diskFailed, "\(path) is a file, not a directory"))
        }
        unlink(path)
    }

    /// What SQLite has one word for, the kernel tells apart.
    func testMessagesOfTheIndexSayWhatTheKernelSays() {
        func failure(_ code: Int32, _ number: Int32) -> Failure {
            DatabaseError(code: code, path: "/i", message: "words", number: number).failure
        }
        XCTAssertEqual(failure(SQLITE_IOERR | 3 << 8, ENOSPC), Failure(.diskFull, "/i: No space left on device"))
        XCTAssertEqual(failure(SQLITE_CANTOPEN, EACCES), Failure(.readOnly, "/i: Permission denied"))
        XCTAssertEqual(failure(SQLITE_IOERR, 0), Failure(.diskFailed, "/i: words"))
        XCTAssertEqual(failure(SQLITE_CORRUPT, ENOENT), Failure(.diskFailed, "/i: words"))
    }

    func testAFolderOfSomebodyElseIsNotUsed() throws {
        mkdir(path, 0o700)
        guard geteuid() == 0, chown(path, 12_345, 12_345) == 0 else {
            throw XCTSkip("this machine cannot give a folder to somebody else")
        }
        XCTAssertThrowsError(try open()) { XCTAssertEqual(($0 as? Failure)?.code, .unsafeDirectory) }
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertTrue(log.all[0].message.contains("12345"))
        XCTAssertEqual(Folder.names(in: path), [])
    }

    /// It has become so while the cache was open.
    func testAFolderThatBecomesUnsafeIsLeft() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        removeFolder(path)
        mkdir(path, 0o700)
        chmod(path, 0o777)
        cache.put("l", bytes(10))
        XCTAssertThrowsError(try cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .unsafeDirectory) }
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertEqual(Folder.names(in: path), [])
        XCTAssertNil(cache.wait("k"))
        cache.close()
    }

    /// Under each name of the cache's own: nothing is followed, nobody waits, and the cache works.
    func testLinksPipesAndFoldersInTheFolder() throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        let names = [
            "index-1.sqlite", "index-1.sqlite-wal", "index-1.sqlite-shm", "index-1.sqlite-journal", "key", "lock-1",
            "changes-1", "turn-1", "opening-1",
        ]
        for name in names {
            for kind in ["link", "pipe", "folder", "device"] {
                mkdir(path, 0o700)
                write([1, 2, 3], to: outside)
                switch kind {
                case "link": symlink(outside, "\(path)/\(name)")
                case "pipe": mkfifo("\(path)/\(name)", 0o600)
                case "device": if mknod("\(path)/\(name)", S_IFCHR | 0o600, 1 << 8 | 7) != 0 { continue }
                default: mkdir("\(path)/\(name)", 0o700)
                }
                let cache = try open()
                cache.put("k", bytes(100))
                _ = try? cache.flush()
                XCTAssertEqual(cache.wait("k")?.bytes, bytes(100), "\(name) \(kind)")
                XCTAssertTrue(try cache.statistics().isWritable, "\(name) \(kind) \(log.all.map(\.message))")
                XCTAssertEqual(read(outside), [1, 2, 3], "\(name) \(kind)")
                var status = stat()
                let isGone = lstat("\(path)/\(name)", &status) != 0
                XCTAssertTrue(isGone || status.st_mode & S_IFMT == S_IFREG, "\(name) \(kind) is there still")
                cache.close()
                removeFolder(path)
            }
        }
    }

    /// SQLite looks for it beside each index that is there: a pipe held up whoever opened the cache for ever.
    func testAJournalThatIsNoFileBesideAnIndex() throws {
        for kind in [S_IFIFO, S_IFSOCK, S_IFDIR] {
            try open().close()
            let journal = "\(path)/index-1.sqlite-journal"
            let status = kind == S_IFDIR ? mkdir(journal, 0o700) : mknod(journal, kind | 0o600, 0)
            XCTAssertEqual(status, 0)
            let cache = try open()
            cache.put("k", bytes(100))
            try cache.flush()
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(100), "\(kind)")
            cache.close()
            XCTAssertFalse(Folder.names(in: path).contains("index-1.sqlite-journal"), "\(kind)")
            removeFolder(path)
        }
        XCTAssertEqual(log.kinds, [])
    }

    /// In place of a folder of the cache's own: a link is not followed, nobody waits at a pipe or at a device, and the cache works.
    func testWhatIsInPlaceOfAFolderIsNotFollowed() throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        for name in ["bodies-1", "writers-1", "bodies-1/shards"] {
            for kind in [S_IFLNK, S_IFIFO, S_IFCHR] {
                let label = "\(name), \(String(kind, radix: 8))"
                mkdir(path, 0o700)
                mkdir(outside, 0o700)
                defer { for folder in [path, outside] { removeFolder(folder) } }
                write([1], to: outside + "/00000000000000aa")
                var places = ["\(path)/\(name)"]
                if name == "bodies-1/shards" {
                    mkdir(path + "/bodies-1", 0o700)
                    places = (0..<Folder.shardCount).map { Folder(path: path).shard($0).description }
                }
                let isMade = places.allSatisfy { place in
                    kind == S_IFLNK
                        ? symlink(outside, place) == 0
                        : mknod(place, kind | 0o600, kind == S_IFCHR ? 1 << 8 | 7 : 0) == 0
                }
                // Not every machine makes devices.
                if kind == S_IFCHR, !isMade { continue }
                XCTAssertTrue(isMade, label)
                let cache = try open()
                cache.put("k", bytes(100))
                try cache.flush()
                try cache.finishBackgroundWork()
                XCTAssertEqual(cache.wait("k")?.bytes, bytes(100), label)
                XCTAssertTrue(try cache.statistics().isWritable, "\(label) \(log.all.map(\.message))")
                try cache.clear()
                cache.close()
                XCTAssertEqual(Folder.names(in: outside), ["00000000000000aa"], label)
            }
        }
    }

    /// What somebody puts there while the cache is open: it goes, and a folder takes its place.
    func testALinkThatTakesAFoldersPlaceMeanwhileIsNotFollowed() throws {
        for place in ["bodies-1", "shard", "writers-1", "writer"] {
            for isMoved in [true, false] {
                try checkLink(inPlaceOf: place, isMoved: isMoved, "\(place), \(isMoved ? "moved away" : "removed")")
            }
        }
    }

    private func checkLink(inPlaceOf place: String, isMoved: Bool, _ label: String) throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        let moved = outside + "-moved"
        let cache = try open()
        cache.put("old", bytes(100))
        try cache.flush()
        let body = try XCTUnwrap(files.first).split(separator: "/").map(String.init)
        let shard = body[body.count - 2]
        let writer = try XCTUnwrap(Folder.names(in: "\(path)/writers-1").first)
        let name = ["shard": "\(path)/bodies-1/\(shard)", "writer": "\(path)/writers-1/\(writer)"][place]
        let inTheWay = name ?? "\(path)/\(place)"
        // Under each name that may be looked for lies what is looked for.
        for folder in [outside, "\(outside)/\(shard)", "\(outside)/\(writer)", "\(outside)/00ff"] {
            mkdir(folder, 0o700)
            write(bytes(100), to: "\(folder)/\(body[body.count - 1])")
            write([1], to: "\(folder)/00000000000000aa")
        }
        let before = tree(outside)
        if isMoved { XCTAssertEqual(rename(inTheWay, moved), 0) } else { removeFolder(inTheWay) }
        XCTAssertEqual(symlink(outside, inTheWay), 0)

        cache.releaseMemory()
        let isBody = place == "bodies-1" || place == "shard"
        XCTAssertEqual(cache.wait("old")?.bytes, isBody ? nil : bytes(100), label)
        XCTAssertEqual(tree(outside), before, "\(label): read")
        // Up to the next number that goes into the same shard.
        for _ in 1..<(Folder.shardCount << 6) { cache.write("skipped", response())?.abandon() }
        cache.put("k", bytes(100, seed: 2))
        try cache.flush()
        cache.releaseMemory()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100, seed: 2), label)
        XCTAssertEqual(tree(outside), before, "\(label): written")
        if place != "writer" { XCTAssertEqual(mode(inTheWay), 0o700, label) }
        // A writer's folder gets another name.
        if place != "writer" { XCTAssertFalse(isLink(inTheWay), label) }
        cache.put("l", bytes(100, seed: 3))
        try cache.flush()
        try cache.removeAndWait(key: "l")
        try cache.clear()
        try cache.finishBackgroundWork()
        cache.close()
        XCTAssertEqual(tree(outside), before, "\(label): removed")
        XCTAssertEqual(log.all, [], label)
        for folder in [path, moved, outside] { removeFolder(folder) }
    }

    /// Whoever removes, and whoever looks for what has no entry, finds it.
    func testNothingIsRemovedThroughALinkThatCameMeanwhile() throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        let actions: [(String, (Cache) throws -> Void)] = [
            ("one", { try $0.removeAndWait(key: "k") }), ("all", { try $0.clear() }),
            (
                "old ones",
                { [clock] cache in
                    clock.advance(seconds: 10)
                    try cache.removeOlder(than: 5)
                }
            ),
            (
                "orphans",
                { cache in
                    try cache.clear()
                    try cache.finishBackgroundWork()
                }
            ),
        ]
        for place in ["bodies-1", "shard"] {
            for (name, action) in actions {
                let cache = try open()
                cache.put("k", bytes(100))
                try cache.flush()
                let body = try XCTUnwrap(files.first).split(separator: "/").map(String.init)
                let shard = "\(path)/bodies-1/\(body[body.count - 2])"
                for folder in [outside, "\(outside)/\(body[body.count - 2])"] {
                    mkdir(folder, 0o700)
                    write([1], to: "\(folder)/\(body[body.count - 1])")
                    write([1], to: "\(folder)/00000000000000aa")
                }
                let before = tree(outside)
                let inTheWay = place == "shard" ? shard : "\(path)/\(place)"
                removeFolder(inTheWay)
                symlink(outside, inTheWay)
                try action(cache)
                cache.close()
                XCTAssertEqual(tree(outside), before, "\(place), \(name)")
                removeFolder(path)
                removeFolder(outside)
            }
        }
    }

    /// Names and contents of all that lies in it.
    private func tree(_ folder: String) -> [String: [UInt8]] {
        var tree: [String: [UInt8]] = [:]
        for name in Folder.names(in: folder) {
            let inner = "\(folder)/\(name)"
            var status = stat()
            lstat(inner, &status)
            tree[inner] = status.st_mode & S_IFMT == S_IFREG ? read(inner) : []
            if status.st_mode & S_IFMT == S_IFDIR { tree.merge(self.tree(inner)) { $1 } }
        }
        return tree
    }

    /// The reading connection opens what has the name now.
    func testAnIndexThatBecomesALinkIsNotRead() throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        configuration.directory = outside
        var cache = try open()
        cache.put("k", bytes(100, seed: 2))
        try cache.flush()
        cache.close()
        configuration.directory = path
        cache = try open()
        cache.put("l", bytes(100))
        try cache.flush()
        let before = tree(outside)
        for end in ["-wal", "-shm"] { rename("\(path)/index-1.sqlite\(end)", "\(path)/gone\(end)") }
        rename("\(path)/index-1.sqlite", "\(path)/gone")
        symlink("\(outside)/index-1.sqlite", "\(path)/index-1.sqlite")
        cache.releaseMemory()
        for _ in 0..<3 {
            let found = cache.wait("k") { $0.isEmpty ? .nothing : .entry(0, withBody: false) }
            XCTAssertNil(found, "of the other index")
        }
        XCTAssertEqual(tree(outside), before)
        cache.put("m", bytes(100))
        try cache.flush()
        XCTAssertEqual(cache.wait("m")?.bytes, bytes(100))
        XCTAssertEqual(tree(outside), before)
        cache.close()
    }

    func testABodyThatIsAPipeOrADeviceIsDamaged() throws {
        for kind in [S_IFIFO, S_IFCHR, S_IFSOCK] {
            let cache = try open()
            cache.put("k", bytes(100))
            try cache.flush()
            let file = files[0]
            unlink(file)
            guard mknod(file, kind | 0o600, kind == S_IFCHR ? 1 << 8 | 5 : 0) == 0 else {
                cache.close()
                continue
            }
            XCTAssertNil(cache.wait("k"))
            try cache.flush()
            XCTAssertEqual(try cache.statistics().damaged, 1)
            XCTAssertEqual(files, [])
            cache.close()
        }
    }

    /// Its checksum fits: whoever can write it can compute that, too.
    func testABodyThatOthersMayHaveWrittenIsDamaged() throws {
        for change in [{ chmod($0, 0o622) }, { chmod($0, 0o620) }, { chown($0, 12345, 12345) }] as [(String) -> Int32] {
            let cache = try open()
            cache.put("k", bytes(100))
            try cache.flush()
            XCTAssertNotNil(cache.wait("k"))
            guard change(files[0]) == 0 else {
                // A user who is not root cannot give a file away.
                cache.close()
                continue
            }
            XCTAssertNil(cache.wait("k"))
            try cache.flush()
            XCTAssertEqual(try cache.statistics().damaged, 1)
            XCTAssertEqual(files, [])
            cache.close()
        }
    }

    func testFoldersThatDisappearAreMadeAgain() throws {
        for gone in ["/bodies-1", "/writers-1", ""] {
            let cache = try open()
            cache.put("old", bytes(100))
            try cache.flush()
            removeFolder(path + gone)
            cache.put("k", bytes(100))
            try cache.flush()
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(100), gone)
            XCTAssertEqual(log.all, [], gone)
            if gone != "/writers-1" { XCTAssertNil(cache.wait("old"), gone) }
            cache.close()
        }
    }

    /// A body was on its way when its folder went.
    func testABodyThatIsTakenAwayWhileItIsWrittenIsNotStored() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        _ = try cache.statistics()
        removeFolder(path + "/writers-1")
        XCTAssertThrowsError(try cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .diskFailed) }
        XCTAssertNil(cache.wait("k"))
        cache.put("k", bytes(100))
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
        XCTAssertEqual(log.all, [])
        cache.close()
    }
}
