import Glibc
import ImgdlCore

extension DiskWriter {
    /// The first time. Others wait for it to look up.
    func open() {
        reopen()
        store.isOpened()
        if index != nil { nextAging = store.clock.now() }
    }

    /// Opens folder and index, or opens them again. Without success there is no index, and the disk does not work.
    func reopen() {
        // What another index does not know needs no sync.
        if index?.database.hasMoved ?? false { unsynced = UnsyncedBodies() }
        letGoOfIndex()
        isReadOnly = false
        let isFirst = store.withState { $0.isOpening }
        if let danger = folder.danger { return fail(danger) }
        if OpenIndexes.shared.isInherited(folder.index) {
            return fail(
                Failure(.diskFailed, "\(folder.index) was open when this process was forked: a child cannot use it"))
        }
        do throws(DiskError) {
            try folder.make()
            try settleKey()
            if isWriterFolderGone {
                writerFolder = try WriterFolder.make(in: folder)
            }
        } catch {
            return readOnly(error.failure)
        }
        attachChanges()
        turn = try? WriterTurn(folder.turn)
        let isNew = access(folder.index, F_OK) != 0
        do throws(IndexProblem) {
            let place = IndexPlace(folder: folder)
            let found = try place.whileInPlace(milliseconds: 1_000) { (check) throws(IndexProblem) in
                try Index.open(folder.index, steps: tuning.steps, check)
            }
            guard let found else { return fail(busy) }
            use(found)
        } catch {
            switch error {
            case .unavailable(let failure): return readOnly(failure)
            case .unusable(let message, let isNewer):
                // What a newer library has put there while this one was at work is that one's.
                if isNewer, !isFirst { return fail(Failure(.diskFailed, message)) }
                replaceIndex(message)
            }
        }
        let dead = try? WriterFolder.dead(in: folder)
        // A new index knows none of the bodies that may be there.
        if isNew || dead.map({ !$0.isEmpty }) ?? true { orphans = OrphanSearch(dead) }
    }

    private func use(_ index: Index) {
        self.index = index
        openCount += 1
        // What this writer has in files is counted here, too, and what was moved aside.
        otherBytes = folder.bytesAside()
        if index.isNew {
            orphans = OrphanSearch([])
            hasUnknownBodies = true
        }
        // Nobody waits here for others that write, where there is nothing to say.
        if ledger.held > 0 || reserved > 0 {
            try? change(index, .changing) { (_) throws(DatabaseError) in try reserve(ledger.held, in: index) }
        }
        ledger.grant(0)
        store.withState { state in
            state.indexNumber = openCount
            state.isIndexReadOnly = isReadOnly
            state.isWritable = !hasFailed
        }
    }

    /// Contexts are told apart by the key in the folder: it is put back where it has gone, and another program's is taken.
    /// Throws where there is none that can be used: what is stored then nobody finds.
    func settleKey() throws(DiskError) {
        guard try store.key.join(folder.key, on: tuning.disk) else { return }
        forgetOwnMemory()
        if unsynced.count > 0 { unreported = otherKey }
    }

    private var otherKey: Failure {
        Failure(.diskFailed, "\(folder.key): another program has replaced it")
    }

    /// Bodies that wait, of requests that were sent while there was another key: nobody would find them.
    func giveUpThoseOfOtherKeys() {
        let number = store.key.number
        for body in batch.bodies where body.isWritten && !body.response.context.isOfKey(number) {
            giveUp(body, .otherKey, otherKey)
        }
    }

    /// Where nothing else is wrong: nobody may have stored anything since it has gone.
    func checkKey() {
        guard !hasFailed, let index, !index.database.hasMoved else { return }
        do throws(DiskError) { try settleKey() } catch { fail(error.failure) }
    }

    /// Nothing can be written; what there is can be read.
    private func readOnly(_ failure: Failure) {
        fail(failure)
        guard failure.code != .cacheBusy else { return }
        isReadOnly = true
        store.withState { $0.isIndexReadOnly = true }
        if store.key.take(folder.key) { forgetOwnMemory() }
        attachChanges()
        if let found = try? Index.openUnwritable(folder.index, version: tuning.steps.count) { use(found) }
    }

    private func attachChanges() {
        if !store.changes.attach(folder.changes, isReadOnly: isReadOnly) { forgetOwnMemory() }
    }

    /// The index of before is none any more, nor what it allowed.
    func letGoOfIndex() {
        index = nil
        publishing = nil
        store.withState { $0.indexNumber = 0 }
    }

    private var busy: Failure { Failure(.cacheBusy, "\(folder.index): another process is busy with it") }

    /// Renames the index, which is of no use, and begins another. Unless somebody else has just done so.
    func replaceIndex(_ message: String) {
        publishing = nil
        do throws(Failure) {
            guard try beginAnotherIndex() else { return }
        } catch {
            return fail(error)
        }
        forgetAll(Failure(.diskFailed, message))
        let aside = folder.asides.min()
        let old = aside.map { "was renamed to \($0), which may be deleted" } ?? "was removed, being large"
        let news = "the index is of no use, so a new one was begun and pictures are fetched again; it \(old)"
        tell(.movedAside, "\(news): \(message)")
    }

    /// While nobody else opens one. False: somebody else has done so before.
    private func beginAnotherIndex() throws(Failure) -> Bool {
        let place = IndexPlace(folder: folder)
        let lock: FileLock?
        do throws(DiskError) {
            lock = try place.lockForMoving(milliseconds: 1_000)
        } catch {
            throw error.failure
        }
        guard let lock else { throw busy }
        let isReplaced = index?.database.hasMoved ?? true
        letGoOfIndex()
        let open = { (check: IndexPlace.Check) throws(IndexProblem) in
            try Index.open(self.folder.index, steps: self.tuning.steps, check)
        }
        if isReplaced, let found = try? place.whileMoving(lock, open) {
            use(found)
            return false
        }
        do throws(DiskError) {
            try moveAside()
        } catch {
            throw error.failure
        }
        do throws(IndexProblem) {
            use(try place.whileMoving(lock, open))
        } catch {
            throw error.failure
        }
        return true
    }

    /// The index is another one, for all programs: what was stored is gone, and so is what waited. `failure`: why.
    func forgetAll(_ failure: Failure) {
        for body in batch.bodies { giveUp(body, .failure, failure) }
        store.withState { $0.changes.settle(batch) }
        forgetBatch()
        unsynced = UnsyncedBodies()
        forgetOwnMemory()
        store.changes.tellAll()
    }

    private func forgetOwnMemory() {
        store.memory.removeAll()
        store.images?.removeAll()
    }

    private func moveAside() throws(DiskError) {
        for old in folder.asides { unlink(old) }
        let name = folder.aside(store.clock.wallTime())
        for end in ["", "-wal", "-shm"] {
            // There is no log where an earlier version of this library let go of the index last.
            guard rename(folder.index + end, name + end) == 0 || errno == ENOENT else {
                throw DiskError("rename \(folder.index + end)")
            }
            PlainFile.hide(name + end)
        }
        // It may be looked at, but not at the cost of what is stored.
        if folder.bytesAside() > store.configuration.maximumBytes / 8 { for file in folder.asides { unlink(file) } }
    }
}
