import Glibc
import ImgdlCore

/// The thread that writes. It gathers what is stored into batches: the bodies of one are written as they come, as far
/// as there is room for them, then named, then told to the index in one short transaction. No body is synced but by
/// `flush`: after a power cut one that is not what the index says is found out by its checksum.
final class DiskWriter {
    static let manyUses = 1_024
    /// How long uses wait for others.
    static let usesMilliseconds: Int64 = 30_000

    let store: DiskStore
    var index: Index?
    /// nil: the folder has none, and who is faster writes.
    var turn: WriterTurn?
    var writerFolder: WriterFolder?
    var batch = Batch()
    /// Held while files have their last names and the index does not know them.
    var publishing: FileLock?
    var deadline: Instant?
    /// Why the disk does not work; nil: it does.
    var failure: Failure?
    /// The index can be read, and nothing can be written.
    var isReadOnly = false
    /// While others write: until then what comes waits for them, all of it together. nil: nobody was in the way.
    var patienceEnd: Instant?
    /// Until when what the host waits for waits for others; nil: it is nothing of that.
    var waitingEnd: Instant?
    /// When others last let it write.
    var lastChange: Instant?
    /// After the time that a closing cache has.
    var isWritingLastRemovals = false
    /// How long it was left alone after it last failed; nil: something was written since.
    var retryMilliseconds: Int64?
    var openCount = 0
    var isAnnouncedUnwritable = false
    var needsEviction = true
    var isEvictingBeginnings = false
    var nextAging: Instant?
    /// Others were in the way of what is done when there is time: it goes on then.
    var backgroundPause: Instant?
    /// Others were in the way of the batch: however much comes, it is not tried again before its deadline.
    var isDeferred = false
    var orphans: OrphanSearch?
    /// Bodies may lie there that the index, which is new, does not count.
    var hasUnknownBodies = false
    var unsynced = UnsyncedBodies()
    /// Uses that could not be written: they are written with the next, as long as they are not too many.
    var unwrittenUses: [EntryID: Int64] = [:]
    /// What it may fill of the folder.
    var ledger = StorageLedger()
    /// What the index says of that.
    var reserved: Int64 = 0
    /// Of files in the folder that are no part of the cache any more.
    var otherBytes: Int64 = 0
    var nextRecount: Instant?
    /// Why there was no room the last time.
    var refusal = Refusal(.noRoom)

    var hasFailed: Bool { failure != nil }
    var unreported: Failure? {
        get { store.withState { $0.unreported } }
        set { store.withState { $0.unreported = newValue } }
    }
    var folder: Folder { store.folder }
    var tuning: CacheTuning { store.tuning }

    init(_ store: DiskStore) { self.store = store }

    func run() {
        open()
        while let work = store.nextWork(deadline: deadline, background: nextBackgroundWork) {
            switch work {
            case .commands(let commands):
                for command in commands {
                    perform(command)
                    // While the disk does not work nothing is written, however much waits.
                    if isDue || (batch.isFull && !isDeferred && !hasFailed) { commit() }
                }
            case .losses: tellLosses()
            case .retry: tryAgain()
            case .deadline: commit()
            case .background: _ = backgroundStep()
            }
        }
        checkKey()
        writeBatch()
        if !batch.isEmpty { retain(.closed) }
        tellLosses()
        writeLastRemovals()
        close()
        tellLosses()
        store.writerIsDone()
    }

    private var isDue: Bool { deadline.map { MonotonicClock().now() >= $0 } ?? false }

    /// It is closing, and has had its time.
    var isOutOfTime: Bool {
        store.withState { $0.closingDeadline }.map { MonotonicClock().now() >= $0 } ?? false
    }

    private func perform(_ command: DiskCommand) {
        switch command {
        case .append(let body, let slices, let memory):
            append(slices, to: body)
            store.withState { $0.queued.stores -= memory }
        case .abandon(let body): drop(body)
        case .change(.insert(let body), let number, let memory):
            complete(body, number, memory)
            store.withState { $0.waitingBodies -= 1 }
        case .change(.update(let id, let response, let versions), let number, let memory):
            update(id, response, of: versions, number, memory)
        case .change(.clear(let isAsked), let number, let memory):
            let wasAsked = batch.isAskedToClear
            // Nothing that came before needs to be written.
            for body in batch.bodies { drop(body) }
            forgetBatch()
            add(.clear(isAsked: isAsked || wasAsked), number, memory)
        case .change(let change, let number, let memory): add(change, number, memory)
        case .tryAgain: tryAgain()
        case .lookAgain: if isReadOnly { tryAgainBeforeTime() }
        case .replaceIndex(let number, let message):
            if number == store.withState({ $0.indexNumber }) { replaceIndex(message) }
        case .perform(let body): body(self)
        }
    }

    private func add(_ change: IndexChange, _ number: Int64, _ memory: Int, cost: Int64 = 0) {
        batch.add(change, number, memory: memory, cost: cost)
        commitSoon()
    }

    func commitSoon() {
        guard deadline == nil, let delay = tuning.batchMilliseconds else { return }
        deadline = MonotonicClock().now().advanced(byMilliseconds: delay)
    }

    /// Where there is no room for it, what it changes goes.
    private func update(
        _ id: EntryID, _ response: StoredResponse, of versions: [StoredResponse.Version], _ number: Int64, _ memory: Int
    ) {
        let cost = StorageCost.row(response, key: "")
        if !hasFailed, admit(cost, for: .changing) {
            add(.update(id, response, of: versions), number, memory, cost: cost)
        } else {
            if let failure { unreported = failure }
            let removal = DiskCommand.memory(ofRemoving: "")
            store.withState { $0.queued += QueuedMemory(stores: -memory, removals: removal) }
            add(.remove(id), number, removal)
        }
    }

    /// What waited is written, or needs not to be.
    func forgetBatch() {
        ledger.giveBack(batch.updateCost)
        let memory = batch.memory
        batch = Batch()
        store.withState { $0.queued -= memory }
    }

    // MARK: Bodies

    private func append(_ slices: [BodySlice], to body: DiskBody) {
        guard !isGivenUp(body), !hasFailed else { return giveUp(body, .failure) }
        if isOutOfTime { return giveUp(body, .closed) }
        if store.isOverdue(body) { return giveUp(body, .behind) }
        let length = (body.file?.length ?? 0) + slices.reduce(0) { $0 + Int64($1.count) }
        guard take(StorageCost.file(length) - StorageCost.file(body.file?.length ?? 0), for: body) else { return }
        do throws(DiskError) {
            if body.file == nil { body.file = try create(body) }
            body.file?.length = length
            guard let file = body.file, let descriptor = file.descriptor else { return }
            for slice in slices {
                let bytes = UnsafeRawBufferPointer(start: slice.start, count: slice.count)
                try withExtendedLifetime(slice) { () throws(DiskError) in
                    try tuning.disk.write(descriptor, bytes, file.path)
                }
                file.checksum.add(bytes)
            }
        } catch {
            failWriting(body, error)
            giveUp(body, .failure)
        }
    }

    /// It does not go to the disk; what was written before it does, if there is room in the index.
    private func failWriting(_ body: DiskBody, _ error: DiskError) {
        guard !hasFailed else { return }
        if let file = body.file {
            if let descriptor = file.descriptor { Glibc.close(descriptor) }
            writerFolder?.removeBody(body.id)
            body.file = nil
        }
        commit()
        if !hasFailed { fail(error.failure) }
    }

    /// Room for so much more of it. Without, it is given up.
    private func take(_ bytes: Int64, for body: DiskBody) -> Bool {
        guard admit(bytes, beside: body.held) else {
            if hasFailed { giveUp(body, .failure) } else { giveUp(body, refusal.cause, refusal.failure) }
            return false
        }
        body.held += bytes
        return true
    }

    private func create(_ body: DiskBody) throws(DiskError) -> OpenBody {
        guard let checksum = Checksum() else { throw DiskError("make a body", ENOMEM) }
        do throws(DiskError) {
            return try create(body, checksum)
        } catch {
            guard error.isMissing, isWriterFolderGone else { throw error }
        }
        // Somebody has taken the folder away, or put something else in its place.
        reopen()
        return try create(body, checksum)
    }

    private func create(_ body: DiskBody, _ checksum: Checksum) throws(DiskError) -> OpenBody {
        guard let path = writerFolder?.body(body.id) else { throw DiskError("make a body", ENOENT) }
        return OpenBody(descriptor: try tuning.disk.create(path), path: path, checksum: checksum)
    }

    private func isGivenUp(_ body: DiskBody) -> Bool {
        store.withState { _ in
            if case .failed = body.state { return true }
            return body.isGivenUp
        }
    }

    /// Not stored, though nobody has abandoned it: the next flush says why. `failure`: of this body; nil: the disk's.
    func giveUp(_ body: DiskBody, _ cause: StorageLosses.Cause, _ failure: Failure? = nil) {
        if let failure = failure ?? self.failure { unreported = failure }
        store.giveUp(body, cause)
        drop(body)
    }

    /// Its last byte has come.
    private func complete(_ body: DiskBody, _ number: Int64, _ memory: Int) {
        let cost = StorageCost.row(body.response, key: body.key)
        guard isWritten(body, cost) else {
            drop(body)
            return store.withState { $0.queued.stores -= memory }
        }
        let waiting = store.withState { _ -> [Lookup] in
            body.state = .written(checksum: body.file?.checksum.value ?? 0, path: body.file?.path)
            body.slices = nil
            defer { body.waiting = [] }
            return body.waiting
        }
        store.resume(waiting)
        add(.insert(body), number, memory, cost: cost)
    }

    /// All of its file, and room for its row.
    private func isWritten(_ body: DiskBody, _ cost: Int64) -> Bool {
        if isGivenUp(body) { return false }
        guard !hasFailed, body.response.bodyLength == 0 || body.file != nil else {
            giveUp(body, .failure)
            return false
        }
        if isOutOfTime || store.isOverdue(body) {
            giveUp(body, isOutOfTime ? .closed : .behind)
            return false
        }
        guard take(cost, for: body) else { return false }
        do throws(DiskError) {
            try closeFile(of: body)
        } catch {
            failWriting(body, error)
            giveUp(body, .failure)
            return false
        }
        return true
    }

    /// It is whole.
    private func closeFile(of body: DiskBody) throws(DiskError) {
        guard let file = body.file, let descriptor = file.descriptor else { return }
        body.file?.descriptor = nil
        try tuning.disk.close(descriptor, file.path)
    }

    /// It will not be stored.
    func drop(_ body: DiskBody) {
        let waiting = store.withState { state -> [Lookup] in
            state.changes.drop(body)
            body.state = .failed
            body.slices = nil
            defer { body.waiting = [] }
            return body.waiting
        }
        if let file = body.file {
            if let descriptor = file.descriptor { Glibc.close(descriptor) }
            if file.isPublished { removeFiles(of: [body.id]) } else { writerFolder?.removeBody(body.id) }
            body.file = nil
        }
        ledger.giveBack(body.held)
        body.held = 0
        store.resume(waiting)
    }

    // MARK: What the host asks for

    func query(_ key: String) -> CachedResponse? {
        if isReadOnly, index?.database.isOutdated ?? true { reopen() }
        let found = try? Candidates.find(key, in: store, usedSince: oldestUse, damaged: { _ in }, index: { _ in index })
        let all = found?.candidates.list.map {
            CachedResponse(
                id: $0.entry.id, response: $0.entry.response, storedTime: $0.storedTime, usedTime: $0.usedTime)
        }
        return all?.newest(wallTime: store.clock.wallTime())
    }

    /// What was last used before that is as good as gone.
    var oldestUse: Int64? { store.configuration.maximumAge.map { store.clock.wallTime() - $0 } }

    func totals() -> Index.Totals { (try? index?.totals()) ?? Index.Totals() }

    /// Stored by this process, and not on the disk for good.
    var unflushedCount: Int64 {
        let waiting = batch.bodies.filter { $0.isWritten }
        return min(unsynced.count, totals().entries) + Int64(waiting.count)
    }

    private func close() {
        let hasOrphans = !(orphans?.isAtEnd ?? true)
        if let index, !hasOrphans, let name = writerFolder?.name {
            try? change(index, .changing) { (_) throws(DatabaseError) in try index.release(name) }
        }
        letGoOfIndex()
        // Left behind, it makes the next one look for orphans.
        if hasOrphans { try? writerFolder?.removeFiles() } else { try? writerFolder?.remove() }
        writerFolder = nil
    }
}
