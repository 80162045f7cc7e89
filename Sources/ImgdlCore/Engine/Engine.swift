import Synchronization

/// The one thread that owns all mutable state of the pipeline. It carries events from the mailbox, the transport and
/// the clock to the rules, and performs the actions that come back. It decides nothing itself.
final class Engine {
    /// So many requests at once that lead to nothing are a burst, …
    private static let burst = 8
    /// … and the next ones may wait for so long, in nanoseconds: to be woken for each dozen takes more time than all
    /// that is done for them.
    private static let nap = 50_000

    let mailbox: Mailbox
    private let loop: EventLoop
    let clock: TurnClock
    let codec: any ImageCodec
    let workers: WorkerPool
    let ledger: MemoryLedger
    /// Changed inside `endLock`, for those that ask on other threads.
    var transport: (any Transport)?
    var downloads: Downloads
    /// Handed to the workers, and not yet answered.
    var stepsInWork = 0 {
        didSet { downloads.hasFreeWorker = stepsInWork < workers.width }
    }
    var subscriptions = OwedEnds()
    var executors = ExecutorNumbers()
    var active = ObjectTable<ActiveTransfer>()
    let bodyMemory = BodyMemory()
    var store: (any Store)?
    /// The store's, which others share, or its own.
    private(set) var outdated = OutdatedURLs()
    var questions = KnownQuestions()
    /// Answers that came inside the call that asked for them: looked at when the actions before them are done.
    private var prompts = Queue<Prompt>()
    /// Empty, for the memory that it has.
    private var spareActions = Queue<Action>()
    private var spareMessages = Queue<Message>()
    /// The number of network changes that the transport has left its connections for.
    private var networkChanges: UInt64 = 0
    /// The number of times that the host has entered the background and those were paused that do not go on there.
    private var backgroundEntries: UInt64 = 0
    var measurements = ObjectTable<TransferMeasurement>()
    let statistics = DownloaderStatistics()
    var observer: (any TransferObserver)?
    private var isShuttingDown = false
    private var isPerformingCommands = false
    var endings = Endings.single
    /// In this turn.
    private var commandCount = 0
    private var ledToActions = false
    private var turns: TurnMeter
    private let isStopped = Atomic<Bool>(false)
    private let endLock = Lock()
    private let ended: Condition
    private var hasEnded = false

    init(
        limits: Limits, loop: EventLoop, mailbox: Mailbox, clock: TurnClock, codec: any ImageCodec, workers: WorkerPool,
        ledger: MemoryLedger
    ) {
        var random = SystemRandomNumberGenerator()
        downloads = Downloads(limits, seed: random.next())
        downloads.hasObserver = false
        ended = Condition(endLock)
        self.loop = loop
        self.mailbox = mailbox
        self.clock = clock
        turns = TurnMeter(clock.now(), withSleep: clock.timeWithSleep())
        self.codec = codec
        self.workers = workers
        self.ledger = ledger
    }

    /// Before `run`.
    func attach(_ transport: any Transport, _ cache: CacheSettings) {
        setTransport(transport)
        use(cache)
    }

    private func setTransport(_ new: (any Transport)?) {
        let old = endLock.withLock { () -> (any Transport)? in
            defer { transport = new }
            return transport
        }
        withExtendedLifetime(old) {}
    }

    private func use(_ cache: CacheSettings) {
        store = cache.store
        outdated = cache.store?.outdated ?? OutdatedURLs()
        downloads.hasStore = cache.store != nil
        downloads.finishesNearlyDone = cache.finishesNearlyDone
    }

    /// Where `run` is never called, which does that in the end: the transport holds the engine.
    func letGoOfTransport() { setTransport(nil) }

    /// Once the thread has ended: whoever keeps the downloader keeps no cache open.
    func letGoOfStore() { store = nil }

    /// Ends the thread as it stands, without a word to anybody: the process exits. Threads: any.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        endLock.withLock { if !hasEnded { loop.wake() } }
    }

    /// False when the time is over first. Threads: any but the engine's.
    @discardableResult
    func waitUntilStopped(until deadline: Instant) -> Bool {
        endLock.withLock {
            while !hasEnded, ended.wait(until: deadline) {}
            return hasEnded
        }
    }

    /// What its transport leaves behind, where the thread does not come to the end at which it would be written: see
    /// `Transport`. Threads: any.
    func takeLegacy() -> (@Sendable () -> Void)? { endLock.withLock { transport }?.takeLegacy() }

    /// The thread's body: until shut down and empty. False when it was stopped as it stands.
    func run() -> Bool {
        var wasStopped = false
        while !isStopped.load(ordering: .acquiring) {
            commandCount = 0
            ledToActions = false
            noteDelay(wasStopped: wasStopped)
            performCommands()
            readTransport { readReady() }
            clock.passes()
            let now = clock.now()
            if let deadline = transport?.deadline, deadline <= now {
                readTransport { transport?.deadlineReached(now) }
            }
            if let deadline = downloads.nextDeadline, deadline <= now {
                downloads.deadlineReached(now, heardUntil: heardUntil(now)) { [transport] in
                    transport?.silence($0) ?? Silence()
                }
                performActions()
            }
            if isShuttingDown, downloads.hasOnlyInternal {
                // What goes on for the cache's sake holds nobody up.
                downloads.cancelAll(clock.now())
                performActions()
                break
            }
            let rest = mailbox.letRest(naps: commandCount >= Self.burst && !ledToActions)
            if rest == .naps { loop.nap(nanoseconds: Self.nap) }
            // What has become due since `now` is not to wait for as long as this turn took.
            clock.passes()
            let due = rest == .sleeps ? nextDeadline : now
            turns.sleeps(clock.now(), until: due)
            wasStopped = loop.wait(until: due, now: clock.now())
        }
        let isExiting = isStopped.load(ordering: .acquiring)
        settle(mailbox.close(), isExiting: isExiting)
        transport?.close()
        setTransport(nil)
        endLock.withLock {
            hasEnded = true
            ended.broadcast()
        }
        return !isExiting
    }

    /// Before the turn's first event: what is late is known as such when it is heard of.
    private func noteDelay(wasStopped: Bool) {
        clock.passes()
        let now = clock.now()
        let delay = turns.wakes(now, withSleep: clock.timeWithSleep(), wasStopped: wasStopped)
        guard delay.matters else { return }
        downloads.turnBegins(after: delay, now)
        performActions()
    }

    /// What came before has been told. What the transport has read may wait in it for another turn.
    private func heardUntil(_ now: Instant) -> Instant { min(loop.heardUntil, transport?.deadline ?? now) }

    private var nextDeadline: Instant? {
        guard let own = downloads.nextDeadline else { return transport?.deadline }
        guard let transports = transport?.deadline else { return own }
        return min(own, transports)
    }

    private func readReady() {
        let isCrowded = { [transport] in transport?.isCrowded ?? false }
        let now = { [clock] in
            clock.passes()
            return clock.now()
        }
        loop.forEachReady(isCrowded: isCrowded, now: now) { [transport] descriptor, readable, writable in
            transport?.descriptorReady(descriptor, readable: readable, writable: writable)
        }
    }

    /// Commands come before what bytes lead to: what a caller said before a transfer ended decides what starts next.
    func performCommands() {
        guard !isPerformingCommands else { return }
        isPerformingCommands = true
        takeReleasedMemory()
        var messages = Queue<Message>()
        swap(&messages, &spareMessages)
        messages = mailbox.takeAll(reusing: messages)
        // None is told an earlier moment than that in which it was given.
        if !messages.isEmpty { clock.passes() }
        commandCount += messages.count
        let isAny = !messages.isEmpty
        while !messages.isEmpty {
            perform(messages.removeFirst())
            Thread.letForkPass()
        }
        // What only waits leads to no action.
        if isAny { noteLoad() }
        spareMessages = messages
        isPerformingCommands = false
    }

    private func perform(_ message: consuming Message) {
        let now = clock.now()
        switch consume message {
        case .submit(let end): submit(end, now)
        case .end(let requests): requests.end(statistics) { clock.passes() }
        case .command(let command): perform(command, now)
        }
        performActions()
    }

    private func perform(_ command: consuming Command, _ now: Instant) {
        switch consume command {
        case .cancel(let subscription): if let id = id(of: subscription) { downloads.cancel(id, now) }
        case .setPriority(let subscription, let priority):
            if let id = id(of: subscription) { downloads.setPriority(id, priority) }
        case .cancelAll: downloads.cancelAll(now)
        case .setMaximumConcurrent(let maximum): downloads.setMaximumConcurrent(maximum, now)
        case .setMaximumPerHost(let maximum): downloads.setMaximumPerHost(maximum, now)
        case .setOrder(let order): downloads.setOrder(order)
        case .setSuspended(let suspended):
            // A downloader that ends is not held up: its downloads were promised to run to their end.
            downloads.setSuspended(suspended && !isShuttingDown, now)
        case .enterBackground(let grace):
            backgroundEntries &+= 1
            if !isShuttingDown { downloads.enterBackground(grace: grace, now) }
        case .enterForeground: downloads.enterForeground(now)
        case .networkChanged: networkChanged()
        case .loaderChanged(let scheme): outdated.insert(Self.outdatedKey(ofScheme: scheme))
        case .invalidate(let cancelling): downloads.invalidate(cancels: cancelling, now)
        case .reconfigure(let transport, let limits, let cache): reconfigure(transport, limits, cache, now)
        case .found(let id, let number, let choice, let found): self.found(id, number, choice, found, now)
        case .memoryReleased: takeReleasedMemory()
        case .decodeStepped(let report): decodeStepped(report, now)
        case .answered(let id, let number, let reply): answered(id, number, reply, now)
        case .setObserver(let observer): replaceObserver(observer)
        case .perform(let work): work()
        case .trimTransport(let connections):
            downloads.forgetExpiredFailures(now)
            transport?.trim(connections: connections)
        case .shutDown(let cancelling):
            isShuttingDown = true
            // What waits must be able to end.
            downloads.setSuspended(false, now)
            downloads.enterForeground(now)
            if cancelling { downloads.cancelAll(now) }
        }
    }

    /// Leaves the connections, unless something that was sent since has had the transport do so already.
    private func networkChanged() {
        guard networkChanges != mailbox.networkChanges else { return downloads.forgetFailures() }
        networkChanges = mailbox.networkChanges
        downloads.networkChanged()
    }

    func lookAtNetwork() {
        let changes = mailbox.networkChanges
        guard changes != networkChanges else { return }
        networkChanges = changes
        transport?.leaveConnections()
    }

    var isPauseUnheard: Bool { backgroundEntries != mailbox.backgroundEntries }

    // MARK: Actions

    func performActions() {
        performTakenActions()
        while !prompts.isEmpty || downloads.needsReview {
            if let prompt = prompts.popFirst() { perform(prompt) } else { downloads.reviewBacklogs(clock.now()) }
            performTakenActions()
        }
        // Whoever the rules have left without telling would wait for ever, and so would whoever was told in another's place.
        assert(subscriptions.count == downloads.externalCount, "the engine owes other ends than the rules know of")
    }

    private func perform(_ prompt: Prompt) {
        switch prompt {
        case .found(let id, let number, let choice, let found): self.found(id, number, choice, found, clock.now())
        case .pictured(let id, let variant, let image): pictured(id, variant, image)
        }
    }

    /// What has been answered inside the call.
    enum Prompt {
        case found(TransferID, UInt64, CacheChoice, FoundEntry?)
        case pictured(TransferID, variant: Int, DecodedImage)
    }

    func prompt(_ prompt: Prompt) { prompts.append(prompt) }

    func performTakenActions() {
        // Before anybody is told of an end: whoever looks then sees it.
        ledger.note(inUse: downloads.memoryInUse, peak: downloads.memoryPeak)
        if downloads.hasActions {
            ledToActions = true
            noteLoad()
            var actions = Queue<Action>()
            swap(&actions, &spareActions)
            actions = downloads.takeActions(reusing: actions)
            while !actions.isEmpty { perform(actions.removeFirst()) }
            spareActions = actions
        }
        if downloads.isHeldBack, ledger.wakeOnReturn() { mailbox.post(.memoryReleased) }
    }

    private func takeReleasedMemory() {
        // Asked in this order: what has come back has been taken by then.
        let bytes = ledger.take()
        let taken = ledger.takeTaken() ?? []
        guard bytes > 0 || !taken.isEmpty else { return }
        for (executor, _) in taken { executors.leave(executor) }
        downloads.memoryCameBack(bytes, taken: taken, clock.now())
        performActions()
    }

    /// The old transport ends with all that it carried; the next starts are the new one's.
    private func reconfigure(_ new: any Transport, _ limits: Limits, _ cache: CacheSettings, _ now: Instant) {
        downloads.reconfigure(limits, now)
        performActions()
        use(cache)
        transport?.close()
        setTransport(new)
        questions.forgetAll()
    }

    private func breakOff(_ id: TransferID) {
        if let transfer = transfer(id) { transfer.exchange?.breakOff(transfer) }
    }

    private func perform(_ action: Action) {
        switch action {
        case .start(let id): start(id)
        case .follow(let id, let redirect): follow(id, redirect)
        case .authenticate(let id, let credential): authenticate(id, credential)
        case .ask(let id, let question): ask(id, question)
        case .setPriority(let id, let priority): transport?.setPriority(id, priority)
        case .setPaused(let id, let isPaused): transport?.setPaused(id, isPaused)
        case .consult(let id, let consultation): consult(id, consultation)
        case .send(let id): send(id)
        case .store(let id): store(id)
        case .restart(let id): transfer(id)?.reset()
        case .stop(let id):
            transport?.cancel(id)
            breakOff(id)
        case .stopFlooded(let id):
            transport?.cancelFlooded(id)
            breakOff(id)
        case .forget(let id):
            // One that never left the queue has none.
            if let transfer = active.take(id.slot) {
                transfer.exchange?.breakOff(transfer)
                transfer.abandonDecoders()
            }
            measurements.take(id.slot)
        case .reserve(let id, let variant, let bytes):
            transfer(id)?.addVariants(upTo: variant)
            charge(bytes, id, variant)
        case .reserveMore(let id, let variant, let bytes): charge(bytes, id, variant)
        case .decode(let id, let variant, let step): decode(id, variant, step)
        case .emit(let subscriber, let notice): emit(subscriber, notice)
        case .end(let subscriber, let outcome): end(subscriber, outcome)
        case .observe(let id, let milestone, let subscribers): observe(id, milestone, subscribers)
        case .leaveConnections: transport?.leaveConnections()
        }
    }

    /// Makes what is held of a transfer that leaves the queue.
    func open(_ id: TransferID) {
        guard !active.isTaken(id.slot), let request = downloads.request(id) else { return }
        active.put(ActiveTransfer(consume request, bodyMemory), at: id.slot)
    }

    func transfer(_ id: TransferID) -> ActiveTransfer? { active[id.slot] }
}
