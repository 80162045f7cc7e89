import ImgdlCore

/// Responses kept between downloads: encoded bodies in memory, all of them on disk, decoded images. Any number of
/// downloaders and processes share one directory.
///
/// Threads: any. In the child of a fork an inherited cache does nothing: its files and locks are the parent's.
package final class Cache: Store, @unchecked Sendable {
    package let configuration: CacheConfiguration
    let clock: any Clock
    let changes: SharedChanges
    package let outdated = OutdatedURLs()
    let memory: MemoryTier
    let imageTier: ImageTier?
    /// nil: in memory alone.
    let disk: DiskStore?
    /// Answers that are not kept, and nobody else has; nil: the disk tells of them.
    let losses: MemoryLosses?
    /// Lives as long as the cache does, whether or not there is anything to tell.
    private let events: @Sendable (CacheEvent) -> Void
    private let key: FolderKey
    private let generation = ProcessGeneration.current
    private let lock = Lock()
    private var numbers = EntryNumbers()
    private var counts = CacheStatistics()
    private var isClosed = false

    /// `events` is called on a thread of the cache, or by `close` where there was none to be had. Throws `outOfMemory` when
    /// there are no threads. A directory that cannot be used is an event and no error.
    package convenience init(
        _ configuration: CacheConfiguration, clock: any Clock, events: @escaping @Sendable (CacheEvent) -> Void
    ) throws(Failure) {
        try self.init(configuration, clock: clock, tuning: CacheTuning(), events: events)
    }

    init(
        _ configuration: CacheConfiguration, clock: any Clock, tuning: CacheTuning,
        events: @escaping @Sendable (CacheEvent) -> Void
    ) throws(Failure) {
        var configuration = configuration
        if configuration.directory == nil, configuration.maximumMemoryBytes == 0 {
            configuration.maximumMemoryBytes = CacheConfiguration.defaultMemoryBytes
        }
        self.configuration = configuration
        self.clock = clock
        self.events = events
        changes = SharedChanges(on: tuning.disk)
        memory = MemoryTier(
            maximumBytes: configuration.maximumMemoryBytes, maximumPartialBytes: configuration.maximumPartialBytes,
            maximumAge: configuration.maximumAge, changes: changes)
        let imageTier =
            configuration.maximumImageBytes > 0
            ? ImageTier(
                maximumBytes: configuration.maximumImageBytes, maximumAge: configuration.maximumAge, clock: clock,
                changes: changes) : nil
        self.imageTier = imageTier
        if let directory = configuration.directory {
            let folder = Folder(path: Folder.withoutLink(directory))
            if let danger = folder.danger {
                events(CacheEvent(.unwritable, danger.message))
                throw danger
            }
            // The writer tries both again, and says what is wrong.
            try? folder.make()
            key = FolderKey()
            _ = try? key.join(folder.key, on: tuning.disk)
            disk = try DiskStore(
                folder: folder, key: key, configuration: configuration, clock: clock, tuning: tuning, changes: changes,
                memory: memory,
                images: imageTier, events: events)
            losses = nil
        } else {
            key = FolderKey()
            disk = nil
            losses = MemoryLosses(tuning.startTelling, events)
        }
    }

    deinit {
        guard !isForked, markClosed() else { return }
        disk?.close()
        losses?.close()
    }

    var isForked: Bool { generation != ProcessGeneration.current }
    var wallTime: Int64 { clock.wallTime() }

    // MARK: Store

    package var images: (any ImageStore)? { imageTier }

    package func findInMemory(
        _ key: String, _ choose: (borrowing [StoredEntry]) -> StoreChoice
    ) -> FoundEntry? {
        if isForked { return nil }
        removeOld()
        return memory.find(key, choose)
    }

    package func find(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice,
        completion: @escaping @Sendable (FoundEntry?) -> Void
    ) {
        if isForked { return completion(nil) }
        guard let disk else {
            removeOld()
            return completion(memory.find(key) { choose(copy $0) })
        }
        disk.find(key, choose: choose, completion: completion)
    }

    package func removalMark(_ key: String) -> RemovalMark {
        isForked ? RemovalMark((first: 0, second: 0)) : changes.removalMark(key)
    }

    package func isRemoved(_ mark: RemovalMark) -> Bool { isForked ? false : changes.isRemoved(mark) }

    package func requestMark(_ key: String) -> RequestMark {
        // Without a disk memory knows everything.
        let watch = isForked ? nil : disk?.meanwhile.watch(key)
        return RequestMark(removalMark(key), changes.mark(key), watch: watch)
    }

    package func write(_ key: String, _ response: StoredResponse, since request: RequestMark) -> (any StoreWriter)? {
        if isForked { return nil }
        let id: EntryID? = lock.withLock { isClosed ? nil : numbers.next(wallTime: wallTime) }
        guard let id else { return nil }
        let mark = changes.mark(key, id, since: request)
        let body = disk?.begin(id, key, mark, since: request.removals)
        // Neither would keep it. In memory alone it is counted when it ends.
        if body == nil, disk != nil, memory.maximumEntryBytes == 0 { return nil }
        return BodyWriter(self, key: key, id: id, mark, body: body, since: request)
    }

    package func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version? = nil) {
        if isForked { return }
        disk?.update(id, response, of: known)
        let removed = memory.update(id, response, of: known, wallTime: wallTime)
        imageTier?.update(id, response, of: known)
        forget(removed)
    }

    package func use(_ id: EntryID) {
        if isForked { return }
        // The disk knows by the second when what was used: it is not told again of each answer from memory.
        if memory.use(id, wallTime: wallTime) { disk?.use(id) }
    }

    package func remove(_ id: EntryID) {
        if isForked { return }
        // First the disk: what is read there at this moment is not remembered.
        disk?.remove(id)
        memory.remove(id)
        imageTier?.remove([id])
    }

    package func remove(key: String) {
        if isForked { return }
        // Before anything goes: what is on its way is stored before that and goes, too, or is not stored.
        changes.countRemoval(key: key)
        disk?.remove(key: key)
        _ = memory.remove(key: key)
        imageTier?.remove(key: key)
        outdated.insert(key)
    }

    package func digest(_ message: ContextMessage) -> ContextDigest { key.digest(message) }
    package var keyNumber: UInt64 { key.number }

    package func count(_ outcome: StoreOutcome) {
        if isForked { return }
        lock.withLock { counts.count(outcome) }
    }

    // MARK: For the others of this module

    var counted: CacheStatistics { lock.withLock { counts } }

    /// False when it is closed already.
    func markClosed() -> Bool {
        lock.withLock {
            defer { isClosed = true }
            return !isClosed
        }
    }

    func checkOpen() throws(Failure) {
        if isForked { throw Failure(.forked, "the cache is of the process that forked") }
        if lock.withLock({ isClosed }) { throw Failure(.shutDown, "the cache is closed") }
    }

    /// A writer has ended. Refused: what is under its key was removed after `mark`, a newer one is there, or the cache is
    /// closed. Nobody is told: the server is asked again, or the newer one answers.
    func stored(
        _ entry: StoredEntry, key: String, slices: [BodySlice]?, body: DiskBody?, since mark: RemovalMark
    ) -> Storing {
        // What others have changed meanwhile may be newer: the index knows, and memory asks it.
        let slices = changes.isCurrent(entry.mark) ? slices : nil
        guard !lock.withLock({ isClosed }) else { return .isRefused }
        // First the disk: who finds nothing in memory must find it there.
        if let disk, let body, !disk.finish(body, entry.response, slices: slices) { return .isRefused }
        removeOld()
        let removed = memory.insert(
            entry, key: key, body: slices, wallTime: wallTime, since: mark, isOnDisk: body != nil)
        guard !removed.isRefused else { return .isRefused }
        forget(removed)
        if body != nil || removed.isKept {
            imageTier?.remove(replacedBy: entry, key: key, wallTime: wallTime)
            if disk == nil { lock.withLock { counts.stored += 1 } }
        } else if !entry.response.isBeginning {
            // A beginning is missed by nobody.
            losses?.count(.tooLarge)
        }
        // Memory beside a disk is soon lost: what the disk has would answer again as if nothing had come since.
        return body != nil || disk == nil && removed.isKept ? .isDone : .isLost
    }

    enum Storing {
        case isDone
        /// The disk does not have it, or, where there is none, memory. What it would take the place of there is there.
        case isLost
        case isRefused
    }

    /// Memory lets go of what was not used for too long: no thread looks for it, but whoever asks and stores.
    func removeOld() {
        guard configuration.maximumAge != nil else { return }
        var removed = MemoryTier.Removed()
        removed.evicted = memory.removeOld(wallTime: wallTime)
        forget(removed)
    }

    /// Memory has evicted them. The disk, where there is one, still has them.
    private func forget(_ removed: MemoryTier.Removed) {
        guard disk == nil, !removed.evicted.isEmpty else { return }
        imageTier?.remove(removed.evicted)
        lock.withLock { counts.evicted += Int64(removed.evicted.count) }
    }
}
