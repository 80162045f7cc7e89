import CStore
import Glibc
import ImgdlCore

/// What the host asks for and waits for, and is told the truth about. These give nil when it is done.
extension DiskWriter {
    /// Tries once, and for some seconds when others write.
    @discardableResult
    func writeBatch() -> Failure? {
        repeat {
            switch commit() {
            case .isDone: return failure
            case .othersRead(let failure): return failure
            case .othersWrite: break
            }
        } while !isOutOfTime && isPatient
        return Failure(.cacheBusy, "\(folder.index): \(DatabaseError.busyWords)")
    }

    /// All that was stored before is on the disk for good. A disk that has failed is asked again, and what was lost is told
    /// once.
    func flush() -> Failure? {
        let failure = writeAll()
        let unreported = store.withState { state in
            defer { state.unreported = nil }
            return state.unreported
        }
        if let failure { return failure }
        return unreported.map {
            Failure($0.code, "what is stored is safe now; since the last flush something was not stored: \($0.message)")
        }
    }

    private func writeAll() -> Failure? {
        tryAgainNow()
        checkKey()
        let failure = writeBatch()
        tellLosses()
        if let failure { return failure }
        do throws(DiskError) {
            if index != nil { try unsynced.synchronize(in: folder, on: tuning.disk) }
        } catch {
            fail(error.failure)
        }
        do throws(DatabaseError) {
            if !isReadOnly { try index?.database.synchronize() }
        } catch {
            fail(error.failure)
        }
        return self.failure
    }

    /// As `writeBatch`, also while the disk does not work: what is removed makes room.
    func writeRemovals() -> Failure? { removeFromIndex() ?? untold }

    /// The same, and nothing is written where nothing is stored: what is on its way there is of before, and not stored either.
    func writeRemoval(of key: String) -> Failure? {
        guard hasNothing(key), let dropped = batch.dropRemovals(of: key) else { return writeRemovals() }
        store.withState { state in
            state.changes.settle(dropped)
            state.queued -= dropped.memory
        }
        tellOthers(dropped.changes)
        return untold
    }

    /// The index has nothing under the key, nor does a transaction that another program has begun before the removal was
    /// announced. False also where that cannot be found out.
    private func hasNothing(_ key: String) -> Bool {
        guard let index = indexToLookAt() else { return false }
        do throws(DatabaseError) {
            if isReadOnly { return try !index.hasRows(key) }
            return try change(index, .changing) { (_) throws(DatabaseError) in try !index.hasRows(key) }
        } catch {
            return false
        }
    }

    private func hasNothing(usedBefore time: Int64) -> Bool {
        guard !batch.hasBodies, let index = indexToLookAt() else { return false }
        let used = uses(since: time)
        do throws(DatabaseError) {
            return try index.oldest(usedBefore: time, except: { used[$0] != nil }).isEmpty
        } catch {
            return false
        }
    }

    /// Also one that can only be read.
    private func indexToLookAt() -> Index? {
        if isReadOnly, index?.database.isOutdated ?? true { reopen() }
        guard let index, !index.database.hasMoved else { return nil }
        return index
    }

    /// The index knows of it, and the memory of other programs does not.
    private var untold: Failure? {
        if store.changes.reachesOthers { return nil }
        return Failure(
            .diskFailed, "\(folder.changes): cannot be used now, so that others may serve from memory what was removed")
    }

    private func removeFromIndex() -> Failure? {
        if !hasFailed {
            let failure = writeBatch()
            if !hasFailed { return failure }
        }
        // What was to be removed has been kept.
        if batch.isEmpty { return nil }
        let result = remove(freeing: { self.removeBodies($0, clears: true) }) { (index) throws(DatabaseError) in
            try self.writeWaiting([:], to: index)
        }
        if result == nil { tryAgain() }
        return result
    }

    /// The cache is being closed, and the next program must not serve what was removed: other programs that write get some
    /// more time; then the bodies go, as does one whose new headers are not written. What has no body stays, and so do all
    /// where everything goes that nobody has asked for: other programs use them.
    func writeLastRemovals() {
        let usual = MonotonicClock().now().advanced(byMilliseconds: tuning.closingRemovalMilliseconds)
        let end = store.withState { $0.closingEnd }.map { min($0, usual) } ?? usual
        isWritingLastRemovals = true
        waiting(until: end) {
            while !batch.isEmpty, !hasFailed, isPatient { if case .othersRead = commit() { break } }
        }
        // Another directory, or another's index, is left alone.
        guard !batch.isEmpty, !isReadOnly, let index, !index.database.hasMoved, folder.danger == nil else { return }
        removeBodies(index, clears: batch.isAskedToClear)
        for case .update(let id, _, _) in batch.changes { removeFiles(of: [id]) }
        // On a full disk there is room now.
        guard hasFailed else { return }
        do throws(DatabaseError) { try writeWaiting([:], to: index) } catch {}
    }

    /// What was last used before that. Uses are written before, so that what was just used stays. On a full disk its bodies
    /// go before anything is written, as do those of what was to be removed before.
    func removeAll(usedBefore time: Int64) -> Failure? {
        if hasNothing(usedBefore: time) {
            // Uses in the future count as now from now on. Where that has no room the next call finds them.
            if let index { try? boundUses(index) }
            return untold
        }
        let used = uses(since: time)
        if !hasFailed, let failure = writeBatch(), !hasFailed { return failure }
        let uses = hasFailed ? used : [:]
        let result = remove(
            freeing: { index in
                self.removeBodies(index, clears: true)
                let old = (try? index?.oldest(usedBefore: time, except: { uses[$0] != nil })) ?? []
                self.removeFiles(of: old)
            },
            { (index) throws(DatabaseError) in
                if !self.batch.isEmpty || !uses.isEmpty { try self.writeWaiting(uses, to: index) }
                try self.removeAll(index, .usedBefore(time))
            })
        if result == nil { tryAgain() }
        return result ?? untold
    }

    /// Has `work` done in the index. Where the disk is full, `free` makes room before, in files alone.
    private func remove(freeing free: (Index?) -> Void, _ work: (Index) throws(DatabaseError) -> Void) -> Failure? {
        var isFreed = false
        var last: Failure?
        repeat {
            if (last ?? failure)?.code == .diskFull {
                if isFreed { return startOver(last) }
                free(index)
                isFreed = true
            }
            if isPatient, index == nil || isReadOnly || index?.database.hasMoved ?? false { reopen() }
            guard let index, !isReadOnly else { return failure }
            // Another one has its name, and there is no time left to look into that.
            if index.database.hasMoved { return Failure(.cacheBusy, DatabaseError.busy(folder.index).message) }
            do throws(DatabaseError) {
                try work(index)
                return nil
            } catch {
                last = error.failure
                if error.isLogFull { return last }
                if error.isDamage {
                    replaceIndex(error.message)
                    return failure
                }
                if !error.isBusy { fail(error.failure) }
                if !error.isBusy, last?.code != .diskFull { return last }
            }
        } while isPatient || last?.code == .diskFull
        return last
    }

    /// The bodies of what the batch removes. `clears`: all of them, where everything goes.
    private func removeBodies(_ index: Index?, clears: Bool) {
        for change in batch.changes {
            switch change {
            case .insert, .update: break
            case .remove(let id), .removeDamaged(let id): removeFiles(of: [id])
            case .removeKey(let key):
                removeFiles(of: ((try? index?.rows(key, damaged: { _ in })) ?? []).map(\.entry.id))
            case .clear where !clears: break
            case .clear:
                for shard in 0..<Folder.shardCount {
                    try? folder.shard(shard).enter { (shard) throws(DiskError) in
                        for name in try Folder.list(shard, ".", "read a folder of bodies")
                        where Folder.id(of: name) != nil {
                            unlinkat(shard, name, 0)
                        }
                    }
                }
            }
        }
    }

    /// Where everything is to go and the index has no room to say so, it goes itself.
    private func startOver(_ failure: Failure?) -> Failure? {
        guard batch.isClearing, let failure else { return failure }
        do throws(DiskError) {
            guard let lock = try IndexPlace(folder: folder).lockForMoving(milliseconds: 1_000) else {
                return Failure(.cacheBusy, "\(folder.index): another program is busy with it")
            }
            defer { withExtendedLifetime(lock) {} }
            letGoOfIndex()
            // Whoever has them open would keep the room that they take; in the third others have their memory.
            for end in ["", "-wal"] { store_empty_file(folder.index + end) }
            for end in ["", "-wal", "-shm"] { unlink(folder.index + end) }
        } catch {
            return error.failure
        }
        guard access(folder.index, F_OK) != 0 else { return failure }
        // It is done, also where there is no room for another index yet.
        forgetAll(failure)
        reopen()
        return nil
    }
}
