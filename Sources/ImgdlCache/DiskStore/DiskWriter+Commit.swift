import CStore
import Glibc
import ImgdlCore

extension DiskWriter {
    struct Outcome {
        /// Changes of the batch, from its beginning.
        var changes = 0
        var rowBytes: Int64 = 0
        var stored: Int64 = 0
        var damaged: Int64 = 0
        var removal = Index.Removal()

        /// So much is in the log that another change waits for the next transaction.
        func fills(_ room: StorageLog.Room) -> Bool {
            changes + removal.ids.count >= room.changes || rowBytes >= room.rowBytes
        }
    }

    enum CommitResult {
        /// Nothing of it waits any more; or the disk has failed, and has said so.
        case isDone
        /// Others write, and it is still to be written.
        case othersWrite
        /// There is no room in the log: removals still are to be written.
        case othersRead(Failure)
    }

    /// Tells the index the batch; nothing is synced.
    @discardableResult
    func commit() -> CommitResult {
        deadline = nil
        isDeferred = false
        let uses = takeUses()
        guard !batch.isEmpty || !uses.isEmpty || ledger.free > 0 else { return .isDone }
        guard !hasFailed, let index = currentIndex() else {
            keep(uses)
            retain(.failure)
            return .isDone
        }
        do throws(DiskError) {
            if batch.hasBodies { try settleKey() }
            giveUpThoseOfOtherKeys()
            guard try publish() else {
                keep(uses)
                return wait("another process cleans up")
            }
        } catch {
            keep(uses)
            fail(error.failure)
            return .isDone
        }
        do throws(DatabaseError) {
            try writeWaiting(uses, to: index)
        } catch {
            keep(uses)
            if error.isBusy { return wait(error.message) }
            if error.isLogFull { return waitForReader(error.failure) }
            if error.isDamage {
                replaceIndex(error.message)
            } else {
                if error.failure.code == .diskFull, giveUpNewerHalf(error.failure) { commit() }
                if !hasFailed { fail(error.failure) }
            }
        }
        return .isDone
    }

    /// Uses of all that the index has or gets now: those of a later batch's bodies wait for it.
    private func takeUses() -> [EntryID: Int64] {
        let unwritten = unwrittenUses
        unwrittenUses = [:]
        let taken = store.withState { (state) -> [EntryID: Int64] in
            guard !state.uses.isEmpty else { return [:] }
            let later = state.changes.added(after: batch.number)
            let uses = state.uses
            state.uses = later.isEmpty ? [:] : uses.filter { later.contains($0.key) }
            return later.isEmpty ? uses : uses.filter { !later.contains($0.key) }
        }
        return unwritten.isEmpty ? taken : unwritten.merging(taken) { max($0, $1) }
    }

    /// Uses that could not be written: what was just used is not to go as old.
    private func keep(_ uses: [EntryID: Int64]) {
        for (id, time) in uses where unwrittenUses[id] != nil || unwrittenUses.count < DiskStore.mostUses {
            unwrittenUses[id] = max(time, unwrittenUses[id] ?? time)
        }
    }

    /// Uses since that time that the index may not know.
    func uses(since time: Int64) -> [EntryID: Int64] {
        let waiting = store.withState { $0.uses }
        return unwrittenUses.merging(waiting) { max($0, $1) }.filter { $0.value >= time }
    }

    /// Their files make room for the rows of the others. False: there are no others.
    private func giveUpNewerHalf(_ failure: Failure) -> Bool {
        let bodies = batch.bodies
        guard bodies.count > 1 else { return false }
        let newer = bodies.suffix((bodies.count + 1) / 2)
        for body in newer {
            store.giveUp(body, .failure)
            drop(body)
        }
        let memory = batch.withdraw(newer)
        store.withState { $0.queued -= memory }
        unreported = failure
        return true
    }

    /// The batch, and uses. As many transactions as the log wants: much may wait where others wrote for long.
    func writeWaiting(_ uses: [EntryID: Int64], to index: Index) throws(DatabaseError) {
        repeat {
            // Removing everything is no short transaction.
            if case .clear? = batch.items.first?.change { try clear(index) }
            let outcome = try change(index, batch.hasBodies ? .adding : .changing) { (room) throws(DatabaseError) in
                try writeBatch(to: index, room)
            }
            settle(outcome)
        } while !batch.isEmpty
        try write(uses, to: index)
    }

    /// Others write: a little later.
    private func wait(_ message: String) -> CommitResult {
        notePatience()
        if isTooLong {
            fail(Failure(.cacheBusy, message))
            return .isDone
        }
        putOff(milliseconds: 100)
        return .othersWrite
    }

    /// Bodies are not stored. What is removed may still have room, and else waits until there is.
    private func waitForReader(_ failure: Failure) -> CommitResult {
        let hadBodies = batch.hasBodies
        retain(.reader, failure)
        publishing = nil
        if batch.isEmpty { return .isDone }
        if hadBodies { return commit() }
        putOff(milliseconds: 1_000)
        return .othersRead(failure)
    }

    private func putOff(milliseconds: Int64) {
        guard tuning.batchMilliseconds != nil else { return }
        isDeferred = true
        deadline = MonotonicClock().now().advanced(byMilliseconds: milliseconds)
    }

    /// The index; opened again when somebody has put another file in its place.
    func currentIndex() -> Index? {
        guard let index, index.database.hasMoved else { return index }
        reopen()
        return self.index
    }

    /// Gives files their last names. False: somebody is looking for files that the index does not know.
    private func publish() throws(DiskError) -> Bool {
        let bodies = batch.bodies.filter { $0.file != nil }
        guard !bodies.isEmpty else { return true }
        if publishing == nil {
            publishing = try FileLock.waiting(folder.lock, .shared, milliseconds: Int(patience))
            if publishing == nil { return false }
        }
        for body in bodies {
            guard var file = body.file else { continue }
            if file.isPublished {
                // While others wrote, somebody may have taken it away.
                if try folder.body(body.id).status() == nil { giveUp(body, .failure, Self.taken(file)) }
                continue
            }
            guard try publish(file.path, body.id) else {
                giveUp(body, .failure, Self.taken(file))
                continue
            }
            file.isPublished = true
            body.file = file
        }
        return true
    }

    /// False: it is not there, since all of them were taken away.
    private func publish(_ path: InnerPath, _ id: EntryID) throws(DiskError) -> Bool {
        do throws(DiskError) {
            try tuning.disk.rename(path, folder.body(id))
        } catch {
            guard error.isMissing else { throw error }
            // Its folder is not there; or the file itself is not.
            guard try path.status() != nil else { return false }
            try folder.makeShard(folder.shard(of: id))
            try tuning.disk.rename(path, folder.body(id))
        }
        return true
    }

    private static func taken(_ file: OpenBody) -> Failure {
        Failure(.diskFailed, "\(file.path): somebody has taken it away before it was stored")
    }

    /// They are not worth a log that is too long.
    private func write(_ uses: [EntryID: Int64], to index: Index) throws(DatabaseError) {
        let now = store.clock.wallTime()
        var rest = uses[...]
        do throws(DatabaseError) {
            while !rest.isEmpty {
                let count = try change(index, .adding) { (room) throws(DatabaseError) in
                    for (id, time) in rest.prefix(room.changes) { try index.use(id, time: time, now: now) }
                    return room.changes
                }
                rest = rest.dropFirst(count)
            }
        } catch {
            if !error.isLogFull { throw error }
        }
    }

    /// One transaction: of the batch what there is room for. What becomes an entry is no longer reserved; what was removed
    /// is, until its files are gone.
    private func writeBatch(to index: Index, _ room: StorageLog.Room) throws(DatabaseError) -> Outcome {
        let time = store.clock.wallTime()
        var outcome = Outcome()
        var held = ledger.held
        for item in batch.items {
            if outcome.fills(room) { break }
            outcome.changes += 1
            outcome.rowBytes += item.cost
            switch item.change {
            case .insert(let body):
                guard case .written(let checksum, _) = body.state else { continue }
                held -= body.held
                // Another program has removed it before the index had it. Its room is reserved until its file is gone.
                if store.changes.isRemovedByOthers(body.removalMark) {
                    outcome.removal.add(body.id, CheckedNumber(body.held))
                    for row in try index.rows(body.key, damaged: { _ in }) where body.outdates(row) {
                        try index.remove(row.entry.id, &outcome.removal)
                    }
                    continue
                }
                let entry = StoredEntry(id: body.id, response: body.response, mark: body.mark)
                let replaced = try index.insert(
                    entry, key: body.key, checksum: checksum, time: body.time, now: time)
                // The answer to a later question is there, another program's for instance.
                guard let replaced else {
                    outcome.removal.add(body.id, CheckedNumber(body.held))
                    continue
                }
                outcome.removal += replaced
                outcome.stored += 1
            case .update(let id, let response, let versions):
                try index.update(id, response, of: versions, time: response.overtakenTime == nil ? time : nil)
                held -= item.cost
            case .remove(let id): try index.remove(id, &outcome.removal)
            case .removeDamaged(let id):
                let count = outcome.removal.ids.count
                try index.remove(id, &outcome.removal)
                outcome.damaged += Int64(outcome.removal.ids.count - count)
            case .removeKey(let key): outcome.removal += try index.remove(key: key)
            case .clear: break
            }
        }
        try reserve(held + outcome.removal.cost, in: index)
        return outcome
    }

    /// The index has it.
    private func settle(_ outcome: Outcome) {
        let written = batch.take(outcome.changes)
        if !batch.hasBodies { publishing = nil }
        retryMilliseconds = nil
        for body in written.bodies where body.isWritten {
            unsynced.add(body.id, hasFile: body.file != nil)
            body.file = nil
            ledger.giveBack(body.held)
            body.held = 0
        }
        store.withState { state in
            state.changes.settle(written)
            state.queued -= written.memory
            state.statistics.stored += outcome.stored
            state.statistics.damaged += outcome.damaged
        }
        tellOthers(written.changes)
        if written.isClearing, orphans == nil { orphans = OrphanSearch([]) }
        ledger.giveBack(written.updateCost)
        ledger.grant(0)
        discard(outcome.removal.ids)
        needsEviction = true
    }

    /// Their memory is to look again.
    func tellOthers(_ changes: [IndexChange]) {
        for change in changes {
            switch change {
            case .insert(let body): store.changes.tell(key: body.key)
            case .update(let id, _, _), .remove(let id), .removeDamaged(let id): store.changes.tell(id)
            case .removeKey(let key): store.changes.tell(key: key)
            case .clear: store.changes.tellAll()
            }
        }
    }

    /// Entries that the index knows no more.
    func discard(_ ids: [EntryID]) {
        store.changes.tell(ids)
        for id in ids { unsynced.remove(id) }
        removeFiles(of: ids)
        store.memory.remove(ids)
        store.images?.remove(ids)
    }

    /// The index does not know them. Where there is no descriptor for that now, they are found later.
    func removeFiles(of ids: [EntryID]) {
        // Folder by folder, each of which is opened once.
        for (shard, ids) in Dictionary(grouping: ids, by: folder.shard(of:)) {
            do throws(DiskError) {
                try folder.shard(shard).enter { shard in for id in ids { unlinkat(shard, Folder.name(of: id), 0) } }
            } catch {
                if error.isExhaustion, orphans == nil { orphans = OrphanSearch([]) }
                // A link has come in its place.
                if error.number == ENOTDIR { try? folder.makeShard(shard) }
            }
        }
    }

    /// Bodies cannot be stored. `failure`: as of `giveUp`.
    func retain(_ cause: StorageLosses.Cause, _ failure: Failure? = nil) {
        for body in batch.bodies { giveUp(body, cause, failure) }
        let (memory, cost) = (batch.memory, batch.updateCost)
        batch.keepRemovals()
        ledger.giveBack(cost - batch.updateCost)
        let kept = batch.memory
        store.withState {
            $0.queued -= memory
            $0.queued += kept
        }
        // Removals in place of headers that have no room have not asked for any.
        if kept.removals > tuning.removalBytes { store.removeAll(isAsked: false) }
    }

    // MARK: When the disk does not work

    /// Nothing is stored until it works again.
    func fail(_ failure: Failure) {
        retain(.failure, failure)
        publishing = nil
        self.failure = failure
        let delay = min(
            retryMilliseconds.map { $0 * 2 } ?? tuning.firstRetryMilliseconds, tuning.lastRetryMilliseconds)
        retryMilliseconds = delay
        store.withState { state in
            state.isWritable = false
            state.failure = failure
            state.retryTime = store.clock.now().advanced(byMilliseconds: delay)
        }
        if !isAnnouncedUnwritable {
            isAnnouncedUnwritable = true
            tell(.unwritable, failure.message)
        }
    }

    /// A file of some size, stored as a body is, and what was removed meanwhile, tell whether it works.
    func tryAgain() {
        guard hasFailed else { return }
        if index == nil || isReadOnly || index?.database.hasMoved ?? false || isWriterFolderGone {
            reopen()
            guard index != nil, !isReadOnly else { return }
        }
        do throws(DiskError) {
            try settleKey()
            try probe()
        } catch {
            return fail(error.failure)
        }
        failure = nil
        probeIndex()
        if !hasFailed, !batch.isEmpty { commit() }
        guard !hasFailed else { return }
        store.withState { state in
            state.isWritable = true
            state.failure = nil
            state.retryTime = nil
        }
        announceWritable()
    }

    /// The host waits to be told.
    func tryAgainNow() { if hasFailed, isPatient { tryAgainBeforeTime() } }

    /// However often somebody asks: the time when the disk is tried again stays.
    func tryAgainBeforeTime() {
        let (delay, time) = (retryMilliseconds, store.withState { $0.retryTime })
        tryAgain()
        guard hasFailed else { return }
        retryMilliseconds = delay
        store.withState { $0.retryTime = time }
    }

    var isWriterFolderGone: Bool { writerFolder?.isGone ?? true }

    private func probe() throws(DiskError) {
        let id = EntryID(rawValue: 0)
        guard let writer = writerFolder else { throw DiskError("make a body", ENOENT) }
        let path = writer.body(id)
        let descriptor = try tuning.disk.create(path)
        defer { writer.removeBody(id) }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { bytes.deallocate() }
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        let written = Result { () throws(DiskError) in
            try tuning.disk.write(descriptor, UnsafeRawBufferPointer(bytes), path)
        }
        try tuning.disk.close(descriptor, path)
        try written.get()
        try tuning.disk.synchronize(path)
        // Nobody needs to have it: others that clean up may take the file.
        let lock = try FileLock(folder.lock, .shared)
        defer { withExtendedLifetime(lock) {} }
        defer { removeFiles(of: [id]) }
        guard try publish(path, id) else { throw DiskError("rename \(path)", ENOENT) }
    }

    /// Others may hold it.
    private func probeIndex() {
        guard let index else { return }
        do throws(DatabaseError) {
            try change(index, .changing) { (_) throws(DatabaseError) in try reserve(ledger.held, in: index) }
            ledger.grant(0)
        } catch {
            // The disk works.
            if error.isLogFull { return }
            if error.isDamage { replaceIndex(error.message) } else { fail(error.failure) }
        }
    }

    private func announceWritable() {
        guard isAnnouncedUnwritable else { return }
        isAnnouncedUnwritable = false
        tell(.writable, "\(folder.path): works again")
    }

    /// What was not stored since the last time.
    func tellLosses() {
        let message = store.withState { $0.losses.tell(MonotonicClock().now()) }
        if let message { tell(.notStored, "\(folder.path): \(message)") }
    }

    func tell(_ kind: CacheEvent.Kind, _ message: String) { store.events(CacheEvent(kind, message)) }
}
