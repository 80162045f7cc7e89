import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: what another program removes or replaces is not served from this one's memory.
final class SharedChangesTests: StoreTestCase {
    override func setUp() {
        super.setUp()
        configuration.maximumMemoryBytes = 1 << 20
        configuration.maximumImageBytes = 1 << 20
    }

    private func inMemory(_ cache: Cache, _ key: String) -> FoundEntry? {
        cache.findInMemory(key) { _ in .entry(0, withBody: true) }
    }

    /// As the engine looks.
    private func find(_ cache: Cache, _ key: String) -> FoundEntry? { inMemory(cache, key) ?? cache.wait(key) }

    /// Two that have the same in memory.
    private func openBoth() throws -> (Cache, Cache) {
        let one = try open()
        one.put("k", bytes(100, seed: 1), response(at: 1))
        one.put("other", bytes(100))
        try one.flush()
        let other = try open()
        for cache in [one, other] {
            for key in ["k", "other"] {
                XCTAssertNotNil(find(cache, key))
                XCTAssertNotNil(inMemory(cache, key))
            }
        }
        return (one, other)
    }

    private func keepImage(in images: any ImageStore, of entry: StoredEntry, _ key: String) throws {
        let pixels = try PixelBuffer(width: 10, height: 10, format: .rgba8)
        let header = ImageHeader(format: .png, width: 10, height: 10, hasAlpha: true, isProgressive: false)
        let image = DecodedImage(
            header: header, pixels: pixels, ready: PixelRectangle(x: 0, y: 0, width: 10, height: 10), isComplete: true)
        images.keep(image, DecodeOptions(), of: entry, key: key)
    }

    func testItsOwnChangesCostNothing() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        XCTAssertNotNil(inMemory(cache, "k"))
        cache.update(try XCTUnwrap(inMemory(cache, "k")).entry.id, response(at: 300))
        try cache.flush()
        XCTAssertEqual(inMemory(cache, "k")?.entry.response.responseTime, 300)
        cache.close()
    }

    /// The engine's thread looks into memory, and removes, itself: it does not wait for another thread that makes another
    /// file of counters, on a disk that hangs. What was removed meanwhile others learn afterwards.
    func testNobodyWaitsForAnotherFileOfCountersWhoseDiskHangs() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let (one, other) = try openBoth()
        let (images, entry) = (try XCTUnwrap(one.images), try XCTUnwrap(find(one, "k")).entry)
        try keepImage(in: images, of: entry, "k")
        XCTAssertEqual(images.entries("k").map(\.id), [entry.id])
        disk.hang(true)
        defer { disk.hang(false) }
        XCTAssertEqual(unlink(Folder(path: path).changes), 0)
        let hasFollowed = DispatchSemaphore(value: 0)
        one.find("never", choose: { _ in .nothing }, completion: { _ in hasFollowed.signal() })
        XCTAssertTrue(disk.waitForHanging())
        let isThrough = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            XCTAssertNil(one.findInMemory("other") { _ in .entry(0, withBody: true) }, "others may have removed it")
            XCTAssertEqual(images.entries("k").count, 0, "others may have removed it")
            _ = one.requestMark("k")
            XCTAssertFalse(one.isRemoved(one.removalMark("k")))
            one.remove(key: "k")
            isThrough.signal()
        }
        XCTAssertEqual(isThrough.wait(timeout: .now() + 60), .success)
        XCTAssertEqual(hasFollowed.wait(timeout: .now()), .timedOut, "the disk hangs")
        disk.hang(false)
        XCTAssertEqual(hasFollowed.wait(timeout: .now() + 60), .success)
        for cache in [one, other] {
            XCTAssertNil(find(cache, "k"))
            XCTAssertNotNil(find(cache, "other"))
            XCTAssertNotNil(inMemory(cache, "other"), "as before")
            cache.close()
        }
    }

    func testWhatTheOtherRemovesIsGoneWhenItsCallReturns() throws {
        let calls: [(String, (Cache) throws -> Void)] = [
            ("remove", { try $0.removeAndWait(key: "k") }),
            ("clear", { try $0.clear() }),
            (
                "remove_older",
                { [clock] cache in
                    clock.advance(seconds: 100)
                    try cache.removeOlder(than: 50)
                }
            ),
        ]
        for (name, call) in calls {
            let (one, other) = try openBoth()
            try call(other)
            XCTAssertNil(find(one, "k"), name)
            if name == "remove" { XCTAssertNotNil(inMemory(one, "other"), "neighbours stay") }
            one.close()
            try other.clear()
            other.close()
        }
        XCTAssertEqual(log.all, [])
    }

    /// As PUT, POST and DELETE do: nobody waits for the disk.
    func testAnInvalidationIsSeenBeforeItIsWritten() throws {
        let (one, other) = try openBoth()
        other.remove(key: "k")
        XCTAssertNil(find(one, "k"))
        XCTAssertNil(one.wait("k"))
        XCTAssertNotNil(find(one, "other"))
        try other.flush()
        XCTAssertNil(find(one, "k"))
        let id = try XCTUnwrap(find(one, "other")).entry.id
        other.remove(id)
        XCTAssertNil(find(one, "other"))
        one.close()
        other.close()
    }

    /// In which no decoder found a picture: the other has it in memory, as good as any.
    func testWhatIsNoPictureIsSeenBeforeItIsWritten() throws {
        let (one, other) = try openBoth()
        let entry = try XCTUnwrap(find(other, "k")).entry
        var doubted = entry.response
        doubted.isUndecodable = true
        other.update(entry.id, doubted)
        XCTAssertNil(find(one, "k"))
        XCTAssertNil(one.wait("k"))
        XCTAssertEqual(find(other, "k")?.entry.response.isUndecodable, true)
        let beside = try XCTUnwrap(find(other, "other")).entry
        other.update(beside.id, response(at: 300))
        XCTAssertNotNil(find(one, "other"), "what is newer, and as good, hides nothing")
        try other.flush()
        XCTAssertEqual(find(one, "k")?.entry.response.isUndecodable, true)
        XCTAssertEqual(inMemory(one, "k")?.entry.response.isUndecodable, true)
        one.close()
        other.close()
    }

    /// Whoever was asked before knows less, in whatever tier and program the later word has come.
    func testWhatWasAskedForBeforeChangesNothingOfWhatHasComeSince() throws {
        let (one, other) = try openBoth()
        let entry = try XCTUnwrap(find(one, "k")).entry
        one.update(entry.id, response([HeaderField("X", "later")], at: 300), of: entry.response.version)
        one.update(entry.id, response([HeaderField("X", "earlier")], at: 200), of: entry.response.version)
        for cache in [one, other] {
            XCTAssertEqual(find(cache, "k")?.entry.response.fields.first(named: "X"), cache === one ? "later" : nil)
        }
        try one.flush()
        other.update(entry.id, response([HeaderField("X", "earlier")], at: 200), of: entry.response.version)
        try other.flush()
        for cache in [one, other] {
            XCTAssertEqual(find(cache, "k")?.entry.response.fields.first(named: "X"), "later")
            XCTAssertEqual(inMemory(cache, "k")?.entry.response.fields.first(named: "X"), "later")
        }
        one.close()
        other.close()
    }

    /// One after another, before and after the index has the first of them.
    func testChangesOfChangesAreMadeInTheirOrder() throws {
        let (one, other) = try openBoth()
        let id = try XCTUnwrap(find(one, "k")).entry.id
        for round in 0..<3 {
            for step in 1...40 {
                let known = try XCTUnwrap(find(one, "k")).entry.response
                let time = Int64(1_000 + 100 * round + step)
                one.update(id, response([HeaderField("X", "\(time)")], at: time), of: known.version)
                guard let found = find(one, "k") else { break }
                XCTAssertEqual(found.entry.response.fields.first(named: "X"), "\(time)")
            }
            try one.flush()
            let found = find(other, "k")?.entry.response.fields.first(named: "X")
            XCTAssertTrue(found == nil || found == "\(1_000 + 100 * round + 40)", "\(found ?? "")")
            guard find(one, "k") != nil else {
                one.put("k", bytes(100), response(at: Int64(1_050 + 100 * round)))
                try one.flush()
                return
            }
        }
        one.close()
        other.close()
    }

    func testANewerVersionIsSeenWhenItIsWritten() throws {
        let (one, other) = try openBoth()
        other.put("k", bytes(100, seed: 2), response(at: 2))
        try other.flush()
        XCTAssertEqual(find(one, "k")?.bytes, bytes(100, seed: 2))
        XCTAssertEqual(inMemory(one, "k")?.bytes, bytes(100, seed: 2))
        other.update(try XCTUnwrap(other.wait("k")).entry.id, response([HeaderField("Age", "5")], at: 3))
        try other.flush()
        XCTAssertEqual(find(one, "k")?.entry.response.responseTime, 3)
        one.close()
        other.close()
    }

    private static let removals: [(String, (Cache) throws -> Void)] = [
        ("remove", { try $0.removeAndWait(key: "k") }), ("clear", { try $0.clear() }),
    ]

    /// A request of one that was sent before may not answer after the call, whatever the other's threads have come to.
    func testWhatIsRemovedAtOnceAfterOpeningIsRemovedForOthers() throws {
        let one = try open()
        try one.flush()
        for (name, call) in Self.removals {
            for _ in 0..<50 {
                let mark = one.removalMark("k")
                let other = try open()
                try call(other)
                XCTAssertTrue(one.isRemoved(mark), name)
                other.close()
            }
        }
        one.close()
    }

    /// The folder can be used only later: what was removed before is told when it is carried out.
    func testWhatIsRemovedBeforeTheFolderCanBeUsedIsRemovedForOthers() throws {
        for (name, call) in Self.removals {
            write([1], to: path)
            let other = try open()
            XCTAssertThrowsError(try other.flush())
            unlink(path)
            let one = try open()
            try one.flush()
            let mark = one.removalMark("k")
            try call(other)
            XCTAssertTrue(one.isRemoved(mark), name)
            for cache in [one, other] { cache.close() }
            removeFolder(path)
        }
    }

    func testWhatIsAnnouncedBeforeThereIsAFileIsSaidInIt() throws {
        mkdir(path, 0o700)
        let name = path + "/changes-1"
        let announcements: [(String, (SharedChanges) -> Void)] = [
            ("key", { $0.announce(key: "k") }), ("all", { $0.announceAll() }),
        ]
        for (words, announce) in announcements {
            let (teller, other) = (SharedChanges(), SharedChanges())
            XCTAssertTrue(other.attach(name, isReadOnly: false))
            let (id, mark, removal) = (EntryID(rawValue: 7), other.mark("k"), other.removalMark("k"))
            let ownRemoval = teller.removalMark("k")
            announce(teller)
            XCTAssertFalse(other.isRemoved(removal), words)
            XCTAssertTrue(teller.attach(name, isReadOnly: false))
            XCTAssertTrue(other.isRemoved(removal), words)
            XCTAssertFalse(other.isCurrent(mark), words)
            XCTAssertTrue(other.isBeingRemoved("k", id), words)
            XCTAssertFalse(teller.isRemovedByOthers(ownRemoval), "\(words): it is its own")
            let later = other.removalMark("k")
            teller.tellAll()
            XCTAssertFalse(other.isBeingRemoved("k", id), words)
            XCTAssertFalse(other.isRemoved(later), "\(words): counted once")
        }
    }

    func testImagesGoToo() throws {
        let (one, other) = try openBoth()
        let entry = try XCTUnwrap(find(one, "k")).entry
        let images = try XCTUnwrap(one.images)
        try keepImage(in: images, of: entry, "k")
        XCTAssertEqual(images.entries("k").map(\.id), [entry.id])
        try other.removeAndWait(key: "k")
        XCTAssertEqual(images.entries("k").count, 0)
        // Decoded from what was found before it was removed.
        try keepImage(in: images, of: entry, "k")
        XCTAssertEqual(images.entries("k").count, 0)
        // Told in a file that has taken the place of the one of before.
        let second = try XCTUnwrap(find(one, "other")).entry
        try keepImage(in: images, of: second, "other")
        XCTAssertEqual(images.entries("other").map(\.id), [second.id])
        unlink(path + "/changes-1")
        let third = try open()
        try third.removeAndWait(key: "other")
        XCTAssertEqual(images.entries("other").count, 0)
        for cache in [one, other, third] { cache.close() }
    }

    /// Killed between saying and doing: after some seconds what is there is served again.
    func testAnAnnouncementThatNobodyKeepsEnds() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        let descriptor = Glibc.open(path + "/changes-1", O_RDWR)
        // Rubbish: counters and times that are far away.
        let rubbish = [UInt8](repeating: 0x78, count: 65_536)
        XCTAssertEqual(pwrite(descriptor, rubbish, rubbish.count, 0), rubbish.count)
        close(descriptor)
        XCTAssertNil(inMemory(cache, "k"), "it may be anything")
        XCTAssertEqual(find(cache, "k")?.bytes, bytes(100))
        XCTAssertEqual(inMemory(cache, "k")?.bytes, bytes(100))
        cache.close()
    }

    func testTheFileMayBeShortOrReplaced() throws {
        mkdir(path, 0o700)
        write([1, 2, 3], to: path + "/changes-1")
        let (one, other) = try openBoth()
        try other.removeAndWait(key: "k")
        XCTAssertNil(find(one, "k"))
        one.close()
        other.close()
    }

    /// Whatever becomes of the file: what a program removes that starts only now is seen, and what it removes later.
    func testTheFileIsReplacedMeanwhile() throws {
        let name = path + "/changes-1"
        let damages: [(String, () -> Void)] = [
            ("removed", { unlink(name) }),
            ("open to all", { chmod(name, 0o666) }),
            ("a pipe", { if unlink(name) == 0 { mkfifo(name, 0o600) } }),
            ("a link", { if unlink(name) == 0 { symlink("/etc/hostname", name) } }),
            ("a folder", { if unlink(name) == 0 { mkdir(name, 0o700) } }),
            (
                "copied",
                {
                    let content = self.read(name)
                    unlink(name)
                    self.write(content, to: name)
                    chmod(name, 0o600)
                }
            ),
        ]
        for (words, damage) in damages {
            let (one, two) = try openBoth()
            damage()
            let three = try open()
            try three.removeAndWait(key: "k")
            for cache in [one, two] {
                XCTAssertNil(find(cache, "k"), words)
                XCTAssertNotNil(find(cache, "other"), words)
                XCTAssertNotNil(inMemory(cache, "other"), "\(words): what is seen again is kept again")
            }
            try one.removeAndWait(key: "other")
            XCTAssertNil(find(two, "other"), words)
            XCTAssertNil(find(three, "other"), words)
            for cache in [one, two, three] { cache.close() }
            removeFolder(path)
        }
    }

    /// A folder in its place that cannot be removed: memory asks the disk each time, and nobody waits.
    func testNoFileCanTakeItsPlace() throws {
        let name = path + "/changes-1"
        let (one, two) = try openBoth()
        unlink(name)
        mkdir(name, 0o700)
        mkdir(name + "/full", 0o700)
        let three = try open()
        try three.removeAndWait(key: "k")
        for cache in [one, two] {
            XCTAssertNil(find(cache, "k"))
            XCTAssertNil(inMemory(cache, "other"))
            XCTAssertNotNil(find(cache, "other"))
            XCTAssertNil(inMemory(cache, "other"), "others may change it unseen")
        }
        try one.removeAndWait(key: "other")
        XCTAssertNil(find(two, "other"))
        rmdir(name + "/full")
        one.put("new", bytes(100))
        try one.flush()
        XCTAssertNotNil(find(two, "new"))
        XCTAssertNotNil(inMemory(two, "new"), "there is one again")
        try one.removeAndWait(key: "new")
        XCTAssertNil(find(two, "new"))
        for cache in [one, two, three] { cache.close() }
    }

    /// Answers that one has fetched and not told the index yet are older than the removal, and go with the rest.
    func testWhatIsOnItsWayToTheIndexIsRemovedToo() throws {
        let calls: [(String, (Cache) throws -> Void)] = [
            ("remove", { try $0.removeAndWait(key: "new") }), ("clear", { try $0.clear() }),
        ]
        for (name, call) in calls {
            let (one, other) = try openBoth()
            one.put("new", bytes(100, seed: 3))
            one.put("beside", bytes(100, seed: 4))
            XCTAssertNotNil(find(one, "new"))
            try call(other)
            XCTAssertNil(find(one, "new"), name)
            XCTAssertEqual(find(one, "beside") != nil, name == "remove", "neighbours stay")
            other.put("new", bytes(100, seed: 5), response(at: 5))
            try other.flush()
            XCTAssertEqual(find(one, "new")?.bytes, bytes(100, seed: 5), "it hides nothing")
            try one.flush()
            for cache in [one, other] {
                XCTAssertEqual(find(cache, "new")?.bytes, bytes(100, seed: 5), name)
                XCTAssertEqual(find(cache, "beside") != nil, name == "remove")
            }
            one.put("new", bytes(100, seed: 6), response(at: 6))
            try one.removeAndWait(key: "new")
            one.put("new", bytes(100, seed: 7), response(at: 7))
            XCTAssertEqual(find(one, "new")?.bytes, bytes(100, seed: 7), "its own removal is not another's")
            try one.flush()
            XCTAssertEqual(find(other, "new")?.bytes, bytes(100, seed: 7))
            XCTAssertEqual(try one.statistics().notStored, 0)
            XCTAssertEqual(bodyBytes(path), try one.statistics().entries * 4_096, "its file is gone")
            one.close()
            try other.clear()
            other.close()
        }
    }

    /// An answer that shares its counters with one that is removed is lost, and the one before it does not come back.
    func testNothingOlderComesBackWhereARemovalIsTakenForItsOwn() throws {
        let (one, other) = try openBoth()
        clock.advance(seconds: 10)
        one.put("k", bytes(100, seed: 3), response(at: 3))
        XCTAssertEqual(find(one, "k")?.bytes, bytes(100, seed: 3))
        let changes = try XCTUnwrap(other.disk?.changes)
        changes.announce(key: "k")
        changes.tell(key: "k")
        XCTAssertNil(find(one, "k"))
        try one.flush()
        for cache in [one, other] { XCTAssertNil(find(cache, "k")) }
        one.close()
        other.close()
    }

    /// Rows that are being read may be of before: with the mark of now, memory would keep what is gone.
    func testWhatIsToldWhileRowsAreReadIsNotForMemory() throws {
        let (one, other) = try openBoth()
        let (disk, told) = (try XCTUnwrap(one.disk), try XCTUnwrap(other.disk?.changes))
        let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        // Ahead of the one that is there.
        try database.execute(
            """
            INSERT INTO entries
            SELECT -1, key_hash, key, kind, length, cost, row_cost, 1, stored, used, response FROM entries WHERE key = 'k'
            """)
        let index = try Index.openForReading(path + "/index-1.sqlite")
        for tells in [false, true] {
            var damaged = 0
            let found = try Candidates.find("k", in: disk, usedSince: nil) { _ in
                damaged += 1
                if tells { told.tell(key: "k") }
            } index: { _ in
                index
            }
            XCTAssertEqual(damaged, 1, "the forged row is read first")
            let mark = try XCTUnwrap(found.candidates.list.first).entry.mark
            XCTAssertEqual(disk.changes.isCurrent(mark), !tells)
        }
        one.close()
        other.close()
    }

    /// Each key has counters of its own, as good as.
    func testRemovalsOfOthersAreNotTakenForItsOwn() throws {
        let (one, other) = try openBoth()
        let (seen, told) = (try XCTUnwrap(one.disk?.changes), try XCTUnwrap(other.disk?.changes))
        var mistaken = 0
        for number in 0..<10_000 {
            let mark = seen.removalMark("key")
            told.announce(key: "https://example.org/\(number).png")
            if seen.isRemoved(mark) { mistaken += 1 }
        }
        XCTAssertLessThanOrEqual(mistaken, 1)
        let mark = seen.removalMark("key")
        told.announce(key: "key")
        XCTAssertTrue(seen.isRemoved(mark))
        one.close()
        other.close()
    }

    /// Look-ups in memory are on the engine's thread: another one makes the file.
    func testALookUpInMemoryDoesNotWaitForTheDisk() throws {
        let (one, two) = try openBoth()
        unlink(path + "/changes-1")
        XCTAssertNil(inMemory(one, "k"))
        XCTAssertNotEqual(access(path + "/changes-1", F_OK), 0, "it made none")
        XCTAssertNotNil(find(one, "k"))
        XCTAssertEqual(access(path + "/changes-1", F_OK), 0)
        XCTAssertNotNil(inMemory(one, "k"))
        one.close()
        two.close()
    }

    /// Others may serve from memory what it has removed: that is told.
    func testWithoutADescriptorTheFileIsNotFollowed() throws {
        let (one, two) = try openBoth()
        try one.finishBackgroundWork()
        unlink(path + "/changes-1")
        XCTAssertNotNil(find(two, "k"))
        XCTAssertNotNil(inMemory(two, "k"), "it has made another file")
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var none = limit
        none.rlim_cur = 0
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
        let result = Result { try one.removeAndWait(key: "k") }
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        XCTAssertThrowsError(try result.get()) {
            XCTAssertEqual(($0 as? Failure)?.code, .diskFailed)
            XCTAssertTrue(($0 as? Failure)?.message.contains("changes-1: cannot be used now") ?? false, "\($0)")
        }
        try one.removeAndWait(key: "k")
        XCTAssertNil(find(two, "k"))
        one.close()
        two.close()
    }

    /// A folder that other users may write to gets nothing from this one, and loses nothing.
    func testAnUnsafeFolderIsNotTouched() throws {
        let (one, two) = try openBoth()
        rename(path, path + "-before")
        mkdir(path, 0o700)
        chmod(path, 0o777)
        write([1, 2, 3], to: path + "/changes-1")
        chmod(path + "/changes-1", 0o666)
        for cache in [one, two] {
            XCTAssertNil(find(cache, "k"))
            XCTAssertNil(find(cache, "other"))
            cache.put("new", bytes(10))
            XCTAssertThrowsError(try cache.removeAndWait(key: "k"))
            XCTAssertThrowsError(try cache.clear())
            cache.close()
        }
        XCTAssertEqual(Folder.names(in: path), ["changes-1"])
        XCTAssertEqual(read(path + "/changes-1"), [1, 2, 3])
        removeFolder(path + "-before")
    }

    /// One that may not make a file takes what is there, and nothing that other users may write to.
    func testAReaderAloneFollowsToo() throws {
        mkdir(path, 0o700)
        let name = path + "/changes-1"
        let damages: [(String, () -> Void)] = [
            ("a pipe", { mkfifo(name, 0o600) }),
            ("a link", { symlink("/etc/hostname", name) }),
            ("a folder", { mkdir(name, 0o700) }),
            (
                "open to all",
                {
                    self.write([UInt8](repeating: 0, count: 65_536), to: name)
                    chmod(name, 0o666)
                }
            ),
            (
                "short",
                {
                    self.write([1], to: name)
                    chmod(name, 0o600)
                }
            ),
        ]
        let id = EntryID(rawValue: 7)
        for (words, damage) in damages {
            let teller = SharedChanges()
            let reader = SharedChanges()
            XCTAssertTrue(teller.attach(name, isReadOnly: false))
            reader.attach(name, isReadOnly: true)
            var mark = reader.mark("k", id)
            reader.follow()
            XCTAssertTrue(reader.isCurrent(mark), words)
            unlink(name)
            damage()
            reader.follow()
            XCTAssertFalse(reader.isCurrent(mark), words)
            mark = reader.mark("k", id)
            reader.follow()
            XCTAssertFalse(reader.isCurrent(mark), "\(words): never while it is of no use")
            teller.tell(key: "k")
            reader.follow()
            mark = reader.mark("k", id)
            reader.follow()
            XCTAssertTrue(reader.isCurrent(mark), "\(words): it has been made anew")
            teller.tell(key: "k")
            reader.follow()
            XCTAssertFalse(reader.isCurrent(mark), words)
            unlink(name)
        }
    }

    /// So is what happens in another folder of the same name, and in none.
    func testTheFolderIsReplacedMeanwhile() throws {
        for isRenamed in [false, true] {
            let (one, two) = try openBoth()
            if isRenamed { rename(path, path + "-before") } else { removeFolder(path) }
            let three = try open()
            try three.removeAndWait(key: "k")
            XCTAssertNil(inMemory(one, "k"), "renamed: \(isRenamed)")
            XCTAssertNil(inMemory(two, "k"), "renamed: \(isRenamed)")
            for cache in [one, two, three] { cache.close() }
            removeFolder(path)
            removeFolder(path + "-before")
        }
    }

    /// Nobody is told of a moment's state: readers on other threads while this one counts.
    func testCountingIsSeenWholeOrNotAtAll() throws {
        mkdir(path, 0o700)
        let mine = SharedChanges()
        let others = SharedChanges()
        XCTAssertTrue(mine.attach(path + "/changes-1", isReadOnly: false))
        XCTAssertTrue(others.attach(path + "/changes-1", isReadOnly: false))
        let id = EntryID(rawValue: 7)
        nonisolated(unsafe) var isDone = false
        let lock = Lock()
        let counter = try ImgdlCore.Thread.start(name: "counter") {
            for _ in 0..<200_000 { mine.tell(key: "k") }
            lock.withLock { isDone = true }
        }
        var seen = mine.mark("k", id)
        var served = 0
        var rounds = 0
        while !lock.withLock({ isDone }) || rounds < 100 {
            rounds += 1
            others.tell(key: "k")
            // After another's call no mark from before is current, whatever this one is counting.
            if mine.isCurrent(seen) { served += 1 }
            seen = mine.mark("k", id)
        }
        counter.join()
        XCTAssertEqual(served, 0)
    }
}
