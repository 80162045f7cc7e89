import ImgdlCore

/// The cache's part on disk: an index and files, a thread that writes both, and one that reads. What has been stored is
/// seen by this process at once, and by others when the index has been told of a batch of it.
///
/// Threads: any; nothing waits but what says so.
final class DiskStore: @unchecked Sendable {
    let folder: Folder
    let key: FolderKey
    let configuration: CacheConfiguration
    let clock: any Clock
    let tuning: CacheTuning
    let changes: SharedChanges
    let memory: MemoryTier
    let images: ImageTier?
    let meanwhile = StoredMeanwhile()
    let events: @Sendable (CacheEvent) -> Void

    private let lock = Lock()
    private let writerWakes: Condition
    private let readerWakes: Condition
    /// The writing thread has done what somebody waits for, or ends.
    private let answered: Condition
    private var state = State()
    private var writingThread: Thread?
    private var readingThread: Thread?

    /// Throws `outOfMemory` when there are no threads.
    init(
        folder: Folder, key: FolderKey, configuration: CacheConfiguration, clock: any Clock, tuning: CacheTuning,
        changes: SharedChanges, memory: MemoryTier,
        images: ImageTier?, events: @escaping @Sendable (CacheEvent) -> Void
    ) throws(Failure) {
        self.folder = folder
        self.key = key
        self.configuration = configuration
        self.clock = clock
        self.tuning = tuning
        self.changes = changes
        self.memory = memory
        self.images = images
        self.events = events
        writerWakes = Condition(lock)
        readerWakes = Condition(lock)
        answered = Condition(lock)
        writingThread = try Thread.start(name: "imgdl-cache") { DiskWriter(self).run() }
        do throws(Failure) {
            readingThread = try Thread.start(name: "imgdl-cache-read") { DiskReader(self).run() }
        } catch {
            close()
            throw error
        }
    }

    /// For the two threads.
    func withState<Result>(_ body: (inout State) -> Result) -> Result { lock.withLock { body(&state) } }

    // MARK: Looking up

    func find(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice,
        completion: @escaping @Sendable (FoundEntry?) -> Void
    ) {
        let isTaken = lock.withLock { () -> Bool in
            guard !state.isClosing else { return false }
            state.lookups.append(Lookup(key: key, choose: choose, completion: completion))
            if state.lookups.count == 1 { readerWakes.signal() }
            return true
        }
        if !isTaken { completion(nil) }
    }

    /// These can be answered now.
    func resume(_ lookups: [Lookup]) {
        guard !lookups.isEmpty else { return }
        lock.withLock {
            state.lookups.append(contentsOf: lookups)
            readerWakes.signal()
        }
    }

    /// The index has been opened, or cannot be.
    func isOpened() {
        lock.withLock {
            state.isOpening = false
            readerWakes.signal()
        }
    }

    /// The reading thread's next; nil: there are no more, or none now where it does not wait.
    func nextLookup(waits: Bool) -> Lookup? {
        lock.withLock {
            while true {
                if !state.isOpening, let next = state.lookups.popFirst() { return next }
                if !waits { return nil }
                if state.isClosing, state.isWriterDone, state.lookups.isEmpty { return nil }
                readerWakes.wait()
            }
        }
    }

    /// The index that can only be read is not the one that was opened, or is there now: the writing thread opens it, its key
    /// and what tells of changes. However often that is found, it is done once a second.
    func lookAgain() {
        lock.withLock {
            let now = clock.now()
            guard state.isIndexReadOnly, !state.isClosing, now >= state.nextLook else { return }
            state.nextLook = now.advanced(byMilliseconds: 1_000)
            post(.lookAgain)
        }
    }

    // MARK: Bodies

    /// nil: the disk does not work, or not yet again.
    func begin(_ id: EntryID, _ key: String, _ mark: ChangeMark, since removalMark: RemovalMark) -> DiskBody? {
        lock.withLock {
            guard !state.isClosing else { return nil }
            guard state.isWritable || state.isOpening else {
                state.losses.count(.failure)
                state.unreported = state.failure
                tryAgainIfDue()
                return nil
            }
            return DiskBody(id: id, key: key, mark: mark, removalMark: removalMark)
        }
    }

    private func tryAgainIfDue() { if takeRetry() { post(.tryAgain) } }

    /// Inside the lock: whether the disk is to be tried again now.
    private func takeRetry() -> Bool {
        guard let time = state.retryTime, clock.now() >= time else { return false }
        state.retryTime = nil
        return true
    }

    /// Inside the lock: when the writing thread is to wake for that. nil where only who stores wakes it.
    private var retryDeadline: Instant? {
        guard let time = state.retryTime, tuning.batchMilliseconds != nil else { return nil }
        let (rest, overflow) = time.nanoseconds.subtractingReportingOverflow(clock.now().nanoseconds)
        return MonotonicClock().now().advanced(byMilliseconds: overflow ? .max : max(0, rest) / 1_000_000 + 1)
    }

    func append(_ slices: [BodySlice], to body: DiskBody) {
        let bytes = slices.reduce(0) { $0 + $1.count }
        lock.withLock {
            guard !body.isGivenUp, bytes > 0 else { return }
            body.length += Int64(bytes)
            guard StorageCost.file(body.length) <= configuration.maximumBytes else { return lose(body, .noRoom) }
            let memory = DiskCommand.memory(ofAppending: slices, &body.lastSegment)
            guard hasRoom(for: memory) else { return lose(body, .behind) }
            state.queued.stores += memory
            body.isPosted = true
            post(.append(body, slices, memory: memory))
        }
    }

    /// `slices`: the whole body, when somebody else keeps it in memory anyway. False: as of `Cache.stored`.
    func finish(_ body: DiskBody, _ response: StoredResponse, slices: [BodySlice]?) -> Bool {
        let time = clock.wallTime()
        let now = MonotonicClock().now()
        let memory = DiskCommand.memory(of: response, body.key)
        return lock.withLock {
            if changes.isRemoved(body.removalMark) || state.changes.isOvertaken(response, body.key, wallTime: time)
                || meanwhile.hasOvertaken(response, body.key, wallTime: time)
            {
                drop(body)
                return false
            }
            if !body.isGivenUp, !hasRoom(for: memory) { lose(body, .behind) }
            body.finishedAt = now
            if let loss = body.loss { countLoss(loss) }
            guard !body.isGivenUp else { return true }
            state.queued.stores += memory
            state.waitingBodies += 1
            body.slices = slices
            body.time = time
            meanwhile.add(response, body.key, wallTime: time)
            let number = state.changes.insert(body, response, wallTime: time)
            post(.change(.insert(body), number: number, memory: memory))
            return true
        }
    }

    func abandon(_ body: DiskBody) { lock.withLock { drop(body) } }

    func isLost(_ body: DiskBody) -> Bool { lock.withLock { body.loss != nil } }

    // MARK: Bodies that are not stored. Inside the lock

    private func hasRoom(for memory: Int) -> Bool { state.queued.stores + memory <= tuning.queueBytes }

    /// Nobody misses it.
    private func drop(_ body: DiskBody) {
        guard !body.isGivenUp else { return }
        body.isGivenUp = true
        if body.isPosted { post(.abandon(body)) }
    }

    /// It will not be stored. Counted once its last byte has come: until then it may be abandoned as well.
    private func lose(_ body: DiskBody, _ cause: StorageLosses.Cause) {
        guard !body.isGivenUp else { return }
        body.isGivenUp = true
        body.loss = cause
        if body.isPosted { post(.abandon(body)) }
    }

    private func countLoss(_ cause: StorageLosses.Cause) {
        state.losses.count(cause)
        writerWakes.signal()
    }

    /// So few are written however long they wait: the disk may stand still for a moment.
    static let fewWaiting = 256

    /// It has waited for so long that a crash would lose more than the last second's, and more follow it.
    func isOverdue(_ body: DiskBody) -> Bool {
        let now = MonotonicClock().now()
        return lock.withLock {
            guard state.waitingBodies > Self.fewWaiting, let time = body.finishedAt else { return false }
            return now >= time.advanced(byMilliseconds: tuning.waitingMilliseconds)
        }
    }

    /// The writing thread gives it up.
    func giveUp(_ body: DiskBody, _ cause: StorageLosses.Cause) {
        lock.withLock {
            guard body.loss == nil else { return }
            // Abandoned: nobody misses it.
            if body.isGivenUp, !body.isFinished { return }
            body.isGivenUp = true
            body.loss = cause
            if body.isFinished { countLoss(cause) }
        }
    }

    // MARK: Changes

    /// What there is no room for is removed instead: it may not be used as if nothing had come since.
    func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version? = nil) {
        guard lock.withLock({ state.changes.mayBe(known, id) }) else { return }
        let memory = DiskCommand.memory(of: response, "")
        let time = clock.wallTime()
        // Others have it in memory, and as good.
        if response.isUndecodable || response.overtakenTime != nil { changes.announce(id) }
        let isTaken = lock.withLock { () -> Bool in
            guard state.changes.mayBe(known, id) else { return true }
            guard hasRoom(for: memory), let versions = state.changes.versions(id, known) else { return false }
            // It is not to go for the room that its update needs.
            if response.overtakenTime == nil, state.uses.count < Self.mostUses { state.uses[id] = time }
            state.queued.stores += memory
            let number = state.changes.update(id, response, of: versions)
            post(.change(.update(id, response, of: versions), number: number, memory: memory))
            return true
        }
        if !isTaken { remove(id) }
    }

    func remove(_ id: EntryID) {
        changes.announce(id)
        remove(.remove(id), "") { $0.remove(id) }
    }

    func remove(key: String) {
        changes.announce(key: key)
        remove(.removeKey(key), key) { $0.remove(key: key) }
    }

    func removeDamaged(_ id: EntryID) { remove(.removeDamaged(id), "") { $0.remove(id) } }

    /// Removals are never forgotten, and bodies that wait are not in their way: where too many removals wait, all that is
    /// stored goes.
    private func remove(_ change: IndexChange, _ key: String, _ note: (inout PendingChanges) -> Int64) {
        let memory = DiskCommand.memory(ofRemoving: key)
        let isTaken = lock.withLock { () -> Bool in
            guard state.queued.removals + memory <= tuning.removalBytes else {
                // Both are announced: the removal of everything that waits, and this one by itself.
                guard lastClear != nil else { return false }
                postClear(isAsked: false)
                return true
            }
            state.queued.removals += memory
            post(.change(change, number: note(&state.changes), memory: memory))
            return true
        }
        if !isTaken { removeAll(isAsked: false) }
    }

    /// `isAsked`: by the host; else the removals that wait have no room.
    func removeAll(isAsked: Bool) {
        // Outside the lock: the disk may let it wait.
        changes.announceAll()
        lock.withLock { postClear(isAsked: isAsked) }
    }

    /// Whether the last that waits removes everything, and was asked for; nil: it is something else.
    private var lastClear: Bool? {
        if case .change(.clear(let isAsked), _, _)? = state.commands.last { isAsked } else { nil }
    }

    private func postClear(isAsked: Bool) {
        let before = lastClear
        if before != nil { state.commands.removeLast() }
        post(.change(.clear(isAsked: isAsked || before == true), number: state.changes.clear(), memory: 0))
    }

    /// So many wait for a disk that does not take them. What is not told counts as used a while ago.
    static let mostUses = 65_536

    /// Written with others, a while later.
    func use(_ id: EntryID) {
        let time = clock.wallTime()
        lock.withLock {
            guard !state.isClosing, state.uses.count < Self.mostUses else { return }
            state.uses[id] = time
            // The writing thread then begins to wait for more, or has enough.
            if state.uses.count == 1 || state.uses.count == DiskWriter.manyUses { writerWakes.signal() }
        }
    }

    func replaceIndex(number: Int, message: String) {
        lock.withLock { post(.replaceIndex(number: number, message: message)) }
    }

    /// Inside the lock.
    private func post(_ command: DiskCommand) {
        guard !state.isWriterDone else { return }
        state.commands.append(command)
        state.indexCheck?()
        if state.commands.count == 1 { writerWakes.signal() }
    }

    // MARK: The writing thread's work

    enum Work {
        case commands([DiskCommand])
        /// Of what was not stored the host is to be told.
        case losses
        /// The disk has failed, and has been left alone long enough.
        case retry
        case deadline
        case background
    }

    /// `deadline`: of what was taken before. `background`: when there is something to do besides. nil: the end.
    func nextWork(deadline: Instant?, background: Instant?) -> Work? {
        lock.withLock {
            var usesDeadline: Instant?
            while true {
                let losses = state.losses.due
                if let losses, MonotonicClock().now() >= losses { return .losses }
                if !state.commands.isEmpty {
                    defer { state.commands = [] }
                    return .commands(state.commands)
                }
                if state.isClosing { return nil }
                let retry = retryDeadline
                if retry != nil, takeRetry() { return .retry }
                if state.uses.count >= DiskWriter.manyUses { return .deadline }
                if let background, MonotonicClock().now() >= background { return .background }
                if usesDeadline == nil, !state.uses.isEmpty, tuning.batchMilliseconds != nil {
                    usesDeadline = MonotonicClock().now().advanced(byMilliseconds: DiskWriter.usesMilliseconds)
                }
                let next = [deadline, usesDeadline].compactMap { $0 }.min()
                guard let wake = [next, losses, retry, background].compactMap({ $0 }).min() else {
                    writerWakes.wait()
                    continue
                }
                let isWoken = writerWakes.wait(until: wake)
                if !isWoken, next == wake, state.commands.isEmpty, !state.isClosing { return .deadline }
            }
        }
    }

    /// The writing thread begins what takes long; whoever has something for it to do ends that. False: somebody has already.
    func beginCheck(_ interruption: Database.Interruption) -> Bool {
        lock.withLock {
            guard state.commands.isEmpty, !state.isClosing else { return false }
            state.indexCheck = interruption
            return true
        }
    }

    func endCheck() { lock.withLock { state.indexCheck = nil } }

    /// No command will be taken any more.
    func writerIsDone() {
        lock.withLock {
            state.isWriterDone = true
            readerWakes.signal()
            answered.broadcast()
        }
    }

    // MARK: Waiting

    func checkMayWait() throws(Failure) {
        if isOwnThread { throw Failure.onOwnThread }
    }

    /// Has the writing thread do it, after everything that was said before, and waits for that.
    func onWriter<Result>(_ body: @escaping (DiskWriter) -> Result) throws(Failure) -> Result {
        try checkMayWait()
        var result: Result?
        return try lock.withLock { () throws(Failure) in
            guard !state.isClosing else { throw Failure(.shutDown, "the cache is closed") }
            post(
                .perform { [lock, answered] writer in
                    let value = body(writer)
                    lock.withLock {
                        result = value
                        answered.broadcast()
                    }
                })
            while true {
                if let result { return result }
                if state.isAbandoned { throw .processExits }
                answered.wait()
            }
        }
    }

    /// Lets what waits be written, ends the threads, and waits for that unless this is one of them.
    func close() {
        guard beginClosing(by: nil) else { return }
        for thread in threads { if isOwnThread { thread.detach() } else { thread.join() } }
    }

    /// False when that has begun already. `by`: nil where nobody is in a hurry.
    @discardableResult
    func beginClosing(by end: Instant?) -> Bool {
        lock.withLock {
            defer { state.isClosing = true }
            if state.closingDeadline == nil {
                let deadline = MonotonicClock().now().advanced(byMilliseconds: tuning.closingMilliseconds)
                state.closingDeadline = end.map { min($0, deadline) } ?? deadline
                state.closingEnd = end
            }
            state.indexCheck?()
            writerWakes.signal()
            readerWakes.signal()
            return !state.isClosing
        }
    }

    /// The process exits: what is not written by then is not, and nobody waits for it any longer. After `beginClosing`.
    func abandon(at deadline: Instant) {
        lock.withLock {
            if !isOwnThread { while !state.isWriterDone, answered.wait(until: deadline) {} }
            state.isAbandoned = true
            answered.broadcast()
        }
    }

    private var threads: [Thread] { [writingThread, readingThread].compactMap { $0 } }
    private var isOwnThread: Bool { threads.contains { $0.isCurrent } }
}
