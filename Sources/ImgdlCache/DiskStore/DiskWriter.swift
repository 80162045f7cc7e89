import CStore
import Glibc
import ImgdlCore

/// The thread that writes. It gathers what is stored into batches: the bodies of one are written as they come, then named,
/// then told to the index in one short transaction. Nothing waits for the disk itself but `flush`: after a power cut a body that is not what the index says is found out by its checksum.
final class DiskWriter {
    static let manyUses = 1_024
    /// How long uses wait for others.
    static let usesMilliseconds: Int64 = 30_000

    let store: DiskStore
    var index: Index?
    var writerFolder: WriterFolder?
    var batch = Batch()
    /// Held while files have their last names and the index does not know them.
    var publishing: FileLock?
    var deadline: Instant?
    /// How often another process was in the way, in a row.
    var busyCount = 0
    /// Why the disk does not work; nil: it does.
    var failure: Failure?
    /// Why something that came since the last flush is not stored: the next one tells.
    var unreported: Failure?
    /// The index can be read, and nothing can be written.
    var isReadOnly = false
    /// How long it was left alone after it last failed; nil: something was written since.
    var retryMilliseconds: Int64?
    var openCount = 0
    var isAnnouncedUnwritable = false
    var needsEviction = true
    var isEvicting = false
    var isEvictingBeginnings = false
    var nextAging: Instant?
    var orphans: OrphanSearch?
    var unsynced = UnsyncedBodies()
    var claim: OpenIndexes.Claim?

    var hasFailed: Bool { failure != nil }
    var folder: Folder { store.folder }
    var tuning: CacheTuning { store.tuning }

    init(_ store: DiskStore) { self.store = store }

    func run() {
        open()
        while let work = store.nextWork(deadline: deadline, hasBackgroundWork: hasBackgroundWork) {
            switch work {
            case .commands(let commands):
                for command in commands {
                    perform(command)
                    if batch.changes.count >= tuning.batchChanges { commit() }
                }
                if let deadline, MonotonicClock().now() >= deadline { commit() }
            case .deadline: commit()
            case .background: _ = backgroundStep()
            }
        }
        writeBatch()
        close()
        store.writerIsDone()
    }

    private func perform(_ command: DiskCommand) {
        switch command {
        case .append(let body, let slices): append(slices, to: body)
        case .abandon(let body): drop(body)
        case .change(.insert(let body), let number):
            complete(body)
            add(.insert(body), number)
        case .change(.clear, let number):
            // Nothing that came before needs to be written.
            for body in batch.bodies { drop(body) }
            batch = Batch()
            add(.clear, number)
        case .change(let change, let number): add(change, number)
        case .tryAgain: tryAgain()
        case .replaceIndex(let number, let message):
            if number == store.withState({ $0.indexNumber }) { replaceIndex(message) }
        case .perform(let body): body(self)
        }
    }

    private func add(_ change: IndexChange, _ number: Int64) {
        batch.add(change, number)
        guard deadline == nil, let delay = tuning.batchMilliseconds else { return }
        deadline = MonotonicClock().now().advanced(byMilliseconds: delay)
    }

    // MARK: Bodies

    private func append(_ slices: [BodySlice], to body: DiskBody) {
        defer { store.withState { $0.queuedBytes -= DiskCommand.memory(ofAppending: slices) } }
        guard !isGivenUp(body), !hasFailed else { return giveUp(body) }
        do throws(DiskError) {
            if body.file == nil { body.file = try create(body) }
            guard let file = body.file, let descriptor = file.descriptor else { return }
            for slice in slices {
                let bytes = UnsafeRawBufferPointer(start: slice.start, count: slice.count)
                try withExtendedLifetime(slice) { () throws(DiskError) in
                    try tuning.disk.write(descriptor, bytes, file.path)
                }
                file.checksum.add(bytes)
            }
        } catch {
            if !hasFailed { fail(error.failure) }
            giveUp(body)
        }
    }

    private func create(_ body: DiskBody) throws(DiskError) -> OpenBody {
        guard let checksum = Checksum() else { throw DiskError("make a body", ENOMEM) }
        do throws(DiskError) {
            return try create(body, checksum)
        } catch {
            guard error.isMissing, !hasWriterFolder else { throw error }
        }
        // Somebody has taken the folder away.
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

    private func giveUp(_ body: DiskBody) {
        if let failure { unreported = failure }
        store.withState { _ in body.isGivenUp = true }
        drop(body)
    }

    /// Its last byte has come.
    private func complete(_ body: DiskBody) {
        if body.response.bodyLength > 0, body.file == nil { return drop(body) }
        do throws(DiskError) {
            try closeFile(of: body)
        } catch {
            drop(body)
            unreported = error.failure
            return fail(error.failure)
        }
        let waiting = store.withState { _ -> [Lookup] in
            body.state = .written(checksum: body.file?.checksum.value ?? 0, path: body.file?.path ?? "")
            defer { body.waiting = [] }
            return body.waiting
        }
        store.resume(waiting)
    }

    /// It is whole.
    private func closeFile(of body: DiskBody) throws(DiskError) {
        guard let file = body.file, let descriptor = file.descriptor else { return }
        body.file?.descriptor = nil
        store_begin_writeback(descriptor)
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
            unlink(file.isPublished ? folder.body(body.id) : file.path)
            body.file = nil
        }
        store.resume(waiting)
    }

    // MARK: What the host asks for

    func query(_ key: String) -> CachedResponse? {
        if isReadOnly, index?.database.isOutdated ?? true { reopen() }
        let found = try? Candidates.find(key, in: store, usedSince: oldestUse, damaged: { _ in }, index: { _ in index })
        guard let found = found?.candidates.list.first else { return nil }
        return CachedResponse(
            id: found.entry.id, response: found.entry.response, storedTime: found.storedTime,
            usedTime: min(found.usedTime, store.clock.wallTime()))
    }

    /// What was last used before that is as good as gone.
    var oldestUse: Int64? { store.configuration.maximumAge.map { store.clock.wallTime() - $0 } }

    func totals() -> Index.Totals { (try? index?.totals()) ?? Index.Totals() }

    private func close() {
        let hasOrphans = !(orphans?.isAtEnd ?? true)
        for body in batch.bodies { drop(body) }
        index = nil
        claim = nil
        publishing = nil
        // Left behind, it makes the next one look for orphans.
        if hasOrphans { writerFolder?.removeFiles() } else { writerFolder?.remove() }
        writerFolder = nil
        store.withState { $0.indexNumber = 0 }
    }
}
