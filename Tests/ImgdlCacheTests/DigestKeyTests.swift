import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: the key in the folder, without which nothing that is stored is found.
final class DigestKeyTests: StoreTestCase {
    private var key: String { path + "/key" }

    /// What stored answers are told apart by.
    private func digest() throws -> ContextDigest {
        let cache = try open()
        defer { cache.close() }
        try cache.flush()
        var message = ContextMessage()
        message.add("somebody")
        return cache.digest(message)
    }

    private func isFile(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// As after `chmod -R a+rX`, or of somebody who takes the right to write from himself: nothing that was stored is lost.
    func testOneThatOthersMayReadIsUsedAndKeepsItsRights() throws {
        let before = try digest()
        let bytes = read(key)
        XCTAssertEqual(bytes.count, 32)
        XCTAssertEqual(mode(key), 0o600)
        for rights in [0o644, 0o640, 0o604, 0o444, 0o400, 0o755, 0o600] as [mode_t] {
            chmod(key, rights)
            XCTAssertEqual(try digest(), before, String(rights, radix: 8))
            XCTAssertEqual(read(key), bytes, String(rights, radix: 8))
            XCTAssertEqual(mode(key), rights)
        }
        XCTAssertEqual(log.all, [])
    }

    /// They may have put in one that they know, or that makes two contexts one.
    func testOneThatOthersMayWriteIsReplaced() throws {
        for rights in [0o666, 0o660, 0o602, 0o622] as [mode_t] {
            let before = try digest()
            let bytes = read(key)
            chmod(key, rights)
            XCTAssertNotEqual(try digest(), before, String(rights, radix: 8))
            XCTAssertNotEqual(read(key), bytes, String(rights, radix: 8))
            XCTAssertEqual(mode(key), 0o600)
        }
        XCTAssertEqual(log.all, [])
    }

    func testOneThatIsNoKeyIsReplaced() throws {
        for content in [[], [UInt8](repeating: 1, count: 31), [UInt8](repeating: 1, count: 33)] {
            _ = try digest()
            write(content, to: key)
            let first = try digest()
            XCTAssertEqual(read(key).count, 32, "\(content.count)")
            XCTAssertEqual(try digest(), first, "\(content.count)")
        }
    }

    /// Such as for want of descriptors or rights: it is the one by which all that is stored is found.
    func testOneThatCannotBeReadNowStays() throws {
        let before = try digest()
        let bytes = read(key)
        for folder in [String(path.dropLast("/cache".count)), path] { chmod(folder, 0o755) }
        chmod(key, 0)
        try asUserWithoutPrivileges {
            XCTAssertThrowsError(try DigestKey.read(Folder(path: path).key)) {
                XCTAssertEqual(($0 as? DiskError)?.number, EACCES)
            }
            XCTAssertThrowsError(try FolderKey().join(Folder(path: path).key, on: KernelDisk())) {
                XCTAssertEqual(($0 as? DiskError)?.number, EACCES)
            }
            XCTAssertFalse(FolderKey().take(Folder(path: path).key))
        }
        chmod(key, 0o600)
        XCTAssertEqual(read(key), bytes)
        XCTAssertEqual(try digest(), before)
    }

    // MARK: While a cache is open

    private func digest(_ cache: Cache) -> ContextDigest {
        var message = ContextMessage()
        message.add("somebody")
        return cache.digest(message)
    }

    /// A link, a pipe, a folder with something in it, another length, or nothing: what was stored is found, and so is what is
    /// stored then.
    func testWhatTakesItsPlaceGoesAndItIsPutBack() throws {
        let outside = String(path.dropLast("/cache".count)) + "/outside"
        write([7], to: outside)
        let key = self.key
        func makeKey(_ count: Int) { write([UInt8](repeating: 1, count: count), to: key) }
        let kinds: [(String, () -> Void)] = [
            ("nothing", {}), ("a link", { symlink(outside, key) }), ("a pipe", { mkfifo(key, 0o600) }),
            ("an empty folder", { mkdir(key, 0o700) }),
            (
                "a folder",
                {
                    mkdir(key, 0o700)
                    mkdir(key + "/inner", 0o700)
                    symlink(outside, key + "/link")
                }
            ),
            ("too short", { makeKey(31) }), ("too long", { makeKey(33) }), ("empty", { makeKey(0) }),
            (
                "writable to others",
                {
                    makeKey(32)
                    chmod(key, 0o666)
                }
            ),
        ]
        for (kind, put) in kinds {
            for stores in [true, false] {
                let label = "\(kind), \(stores ? "stored" : "flushed")"
                let cache = try open()
                cache.put("before", bytes(10))
                try cache.flush()
                let (before, content) = (digest(cache), read(key))
                unlink(key)
                put()
                if stores { cache.put("after", bytes(10)) }
                try cache.flush()
                XCTAssertTrue(isFile(key), label)
                XCTAssertEqual(isFile(key) ? read(key) : [], content, label)
                XCTAssertEqual(mode(key), 0o600, label)
                XCTAssertEqual(digest(cache), before, label)
                XCTAssertEqual(try cache.statistics().notStored, 0, label)
                cache.close()
                XCTAssertEqual(try digest(), before, label)
                XCTAssertEqual(log.all, [], label)
                XCTAssertEqual(read(outside), [7], label)
                removeFolder(path)
            }
        }
    }

    /// Also where nobody flushes: who reads alone says at its end what it used.
    func testClosingPutsItBack() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        let before = read(key)
        unlink(key)
        cache.close()
        XCTAssertEqual(read(key), before)
    }

    func testAFolderWithSomethingInItIsSetAside() throws {
        mkdir(path, 0o700)
        mkdir(key, 0o700)
        write([1, 2], to: key + "/precious")
        let before = try digest()
        XCTAssertEqual(try digest(), before, "the next program finds what is stored")
        XCTAssertEqual(read(key).count, 32)
        let aside = try XCTUnwrap(Folder.names(in: path).first { $0.hasPrefix("key") && $0 != "key" })
        XCTAssertEqual(read("\(path)/\(aside)/precious"), [1, 2])
        XCTAssertEqual(log.all, [])
    }

    /// By another program that found none: what was stored with the one of before nobody finds, which is told.
    func testAnotherProgramsKeyIsTaken() throws {
        configuration.maximumMemoryBytes = 1 << 20
        for (isWaiting, isUnsynced) in [(true, false), (false, true), (true, true), (false, false)] {
            let label = "waiting: \(isWaiting), unsynced: \(isUnsynced)"
            let events = log.all.count
            let cache = try open()
            cache.put("flushed", bytes(10), response(of: cache))
            try cache.flush()
            if isUnsynced {
                cache.put("unsynced", bytes(10), response(of: cache))
                try cache.disk?.writeRemovals()
            }
            let old = response(of: cache)
            if isWaiting { cache.put("waiting", bytes(10), old) }
            let writer = cache.write("later", old)
            _ = try cache.statistics()
            unlink(key)
            let other = try open()
            try other.flush()
            if isWaiting || isUnsynced {
                XCTAssertThrowsError(try cache.flush(), label) { error in
                    XCTAssertEqual((error as? Failure)?.code, .diskFailed, label)
                    XCTAssertTrue("\(error)".contains("another program has replaced it"), "\(error)")
                }
            }
            XCTAssertNoThrow(try cache.flush(), "it is told once")
            XCTAssertEqual(digest(cache), digest(other), label)
            XCTAssertEqual(try cache.statistics().memoryEntries, 0, "memory is of the key of before")
            XCTAssertEqual(try cache.statistics().notStored, isWaiting ? 1 : 0, label)
            XCTAssertNil(isWaiting ? cache.wait("waiting") : nil, label)
            // Its request was sent before.
            writer?.append(slices(bytes(10)))
            writer?.finish(old)
            XCTAssertThrowsError(try cache.flush(), label)
            XCTAssertEqual(try cache.statistics().notStored, isWaiting ? 2 : 1, label)
            cache.put("new", bytes(10), response(of: cache))
            try cache.flush()
            XCTAssertEqual(cache.wait("new")?.bytes, bytes(10), label)
            XCTAssertNil(cache.wait("later"), label)
            cache.close()
            other.close()
            XCTAssertEqual(Set(log.kinds.dropFirst(events)), [.notStored], label)
            let message = try XCTUnwrap(log.all.last).message
            XCTAssertTrue(message.contains("another program has replaced the key of the folder"), message)
            removeFolder(path)
        }
    }

    private func response(of cache: Cache) -> StoredResponse {
        var context = StoredContext(trust: digest(cache), request: digest(cache), credentials: digest(cache))
        context.keyNumber = cache.keyNumber
        return StoredResponse(
            status: 200, httpVersion: 11, fields: [], requestTime: 100, responseTime: 100, context: context)
    }

    private static let faults: [(number: Int32, code: ErrorCode)] = [
        (ENOSPC, .diskFull), (EDQUOT, .diskFull), (EROFS, .readOnly), (EACCES, .readOnly), (EIO, .diskFailed),
    ]

    /// Once it can be, all is as if nothing had been.
    func testWhereItCannotBeWrittenNothingIsStoredAndThatIsTold() throws {
        for step in [.create, .write, .close] as [FailingDisk.Step] {
            for (number, code) in Self.faults {
                let (label, log) = ("\(step) \(code)", EventLog())
                let disk = FailingDisk()
                tuning.disk = disk
                disk.fail(step, number)
                let cache = try Cache(configuration, clock: clock, tuning: tuning) { log.add($0) }
                cache.put("k", bytes(10))
                XCTAssertThrowsError(try cache.flush(), label) { error in
                    XCTAssertEqual((error as? Failure)?.code, code, label)
                    XCTAssertTrue("\(error)".contains("write \(key):"), "\(error)")
                }
                XCTAssertEqual(try cache.statistics().notStored, 1, label)
                XCTAssertFalse(try cache.statistics().isWritable, label)
                XCTAssertEqual(log.kinds, [.unwritable], label)
                XCTAssertTrue(log.all.first?.message.contains("write \(key):") ?? false, label)
                disk.fail(step, nil)
                try cache.flush()
                XCTAssertEqual(log.kinds, [.unwritable, .writable], label)
                cache.put("k", bytes(10))
                try cache.flush()
                let before = digest(cache)
                cache.close()
                XCTAssertEqual(try digest(), before, label)
                XCTAssertEqual(Folder.names(in: path).filter { $0.hasPrefix("key") }, ["key"], label)
                removeFolder(path)
            }
        }
    }

    func testWhereItCannotBePutBackNothingIsStoredAndThatIsTold() throws {
        for (number, code) in Self.faults {
            let (label, log) = ("\(code)", EventLog())
            let disk = FailingDisk()
            tuning.disk = disk
            let cache = try Cache(configuration, clock: clock, tuning: tuning) { log.add($0) }
            cache.put("before", bytes(10))
            try cache.flush()
            let (before, content) = (digest(cache), read(key))
            cache.put("k", bytes(10))
            // Its file is written by now.
            _ = try cache.statistics()
            unlink(key)
            disk.fail(.create, number)
            XCTAssertThrowsError(try cache.flush(), label) { XCTAssertEqual(($0 as? Failure)?.code, code, label) }
            XCTAssertEqual(try cache.statistics().notStored, 1, label)
            XCTAssertEqual(log.kinds, [.unwritable], label)
            XCTAssertEqual(cache.wait("before")?.bytes, bytes(10), "what is there is served")
            disk.fail(.create, nil)
            try cache.flush()
            XCTAssertEqual(log.kinds, [.unwritable, .writable], label)
            XCTAssertEqual(read(key), content, label)
            XCTAssertEqual(digest(cache), before, label)
            cache.close()
            removeFolder(path)
        }
    }

    /// What an engine has found out of the contexts of requests holds no longer.
    func testTheNumberIsAnotherOneWithAnotherKey() throws {
        let cache = try open()
        let first = cache.keyNumber
        XCTAssertNotEqual(first, 0)
        unlink(key)
        try cache.flush()
        XCTAssertEqual(cache.keyNumber, first, "it is the same one")
        unlink(key)
        try open().close()
        try cache.flush()
        XCTAssertNotEqual(cache.keyNumber, first)
        cache.close()
    }

    /// Root may read everything: this thread is held to the rights of others meanwhile.
    private func asUserWithoutPrivileges(_ body: () throws -> Void) throws {
        guard geteuid() == 0 else { return try body() }
        let symbol = try XCTUnwrap(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
        _ = setUser(65_534)
        defer { _ = setUser(0) }
        try body()
    }
}
