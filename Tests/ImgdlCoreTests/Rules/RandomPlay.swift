@testable import ImgdlCore

/// A random sequence of events, legal for a transport, for workers and for hosts, told to the rules and to a witness.
///
/// Two things that happen to a downloader the rules know by other events only, and these are what is played:
/// - an executor that its host releases: all that waits there is taken at once, and so is what comes later;
/// - a thread that the system refuses: steps of decoders fail before they begin, for as long as no worker has ever started,
///   and so do transfers whose names nobody can look up.
struct RandomPlay: ~Copyable {
    private var random: SeededGenerator
    private var downloads: Downloads
    private var witness: Witness
    private(set) var transcript: [String] = []
    private let paths: Int
    private var everybody: [SubscriberID] = []
    private var everyTransfer: [TransferID] = []
    private var latest: [TransferRequest: TransferID] = [:]
    private let hooks: [SilentHooks]
    /// What is outdated, and since when: by URL, and all of it.
    private var outdated: [ParsedURL: UInt64] = [:]
    private var allOutdated: UInt64 = 0
    private var moment: UInt64 = 0
    private var heldFailures: [TransferID: Bool] = [:]
    /// Of the rules, after the last event.
    private var startNumbers: [TransferID: UInt64] = [:]
    /// They take nothing before the end.
    private let stalled: Set<Backlogs.Executor>
    private let executors: Backlogs.Executor
    /// Their hosts have let go of them: whatever is handed over there is dropped.
    private var released: Set<Backlogs.Executor> = []
    /// One of them, at least, was to be had. It stays until the end.
    private var hasThread = true
    /// Steps of decoders that had none, in their order, of which the rules have not heard.
    private var refusedSteps: [(id: TransferID, variant: Int)] = []

    init(seed: UInt64) {
        random = SeededGenerator(seed)
        var limits = Limits()
        limits.maximumConcurrent = Int.random(in: 1...5, using: &random)
        limits.order = Bool.random(using: &random) ? .fifo : .lifo
        limits.connectTimeout = [300, 5_000].randomElement(using: &random)!
        limits.idleTimeout = [200, 5_000].randomElement(using: &random)!
        limits.drainTimeout = [100, 1_000].randomElement(using: &random)!
        limits.maximumRedirects = Int.random(in: 0...3, using: &random)
        limits.maximumPerHost = Int.random(in: 0...2, using: &random)
        limits.agingInterval = [20, 400, 10_000].randomElement(using: &random)!
        limits.memoryBudget = [300, 2_000, 1 << 30].randomElement(using: &random)!
        limits.slowBytes = [0, 1, 100, 16 << 10].randomElement(using: &random)!
        limits.earlyDecodeBytes = [1, 50, 1_000].randomElement(using: &random)!
        limits.failureLifetime = [0, 0, 2_000].randomElement(using: &random)!
        limits.progressInterval = [0, 0, 0.3].randomElement(using: &random)!
        limits.maximumConsulting = [1, 3, 64].randomElement(using: &random)!
        limits.drainBytes = [50, 1_000].randomElement(using: &random)!
        let kinds = UInt8.random(in: 1..<32, using: &random)
        limits.maximumPasses = [0, 1, 16][Int(seed % 3)]
        hooks = [kinds, 31].map { SilentHooks(HookKinds(rawValue: $0)) }
        paths = Int.random(in: 1...8, using: &random)
        executors = [0, 3, 16].randomElement(using: &random)!
        let rate = [3, 3, 1].randomElement(using: &random)!
        var stalled: Set<Backlogs.Executor> = []
        for executor in 0..<executors where random.oneIn(rate) { stalled.insert(executor + 1) }
        self.stalled = stalled
        hasThread = !random.oneIn(4)
        downloads = Downloads(limits, seed: seed)
        witness = Witness(limits)
        downloads.hasStore = random.oneIn(2)
        downloads.finishesNearlyDone = random.oneIn(2)
        witness.hasStore = downloads.hasStore
    }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            try step()
            if random.oneIn(10) { try holdStarts() }
        }
        try enterForeground()
        if Bool.random(using: &random) {
            for id in witness.liveSubscribers { witness.subscribers[id]!.wasCancelled = true }
            downloads.cancelAll(witness.now)
            try settle("cancelAll at the end")
        } else {
            let stalled = stalled.subtracting(released)
            try runToTheEnd(stalled)
            let left = witness.liveSubscribers.filter { !stalled.contains(witness.subscribers[$0]!.executor) }
            guard left.isEmpty else {
                throw Witness.Violation(text: "\(left.map { name($0) }) wait for executors of others")
            }
            try runToTheEnd([])
        }
        while !witness.charges.isEmpty {
            if witness.charges[0].waitsFor.isEmpty { try release(0) } else { try take(0) }
        }
        let isEmpty = witness.liveSubscribers.isEmpty && witness.liveTransfers.isEmpty
        guard isEmpty, downloads.memoryInUse == 0, downloads.nextDeadline == nil else {
            throw Witness.Violation(
                text: "something is left at the end: \(witness.liveSubscribers.count) subscribers, "
                    + "\(witness.liveTransfers.count) transfers, \(downloads.memoryInUse) bytes, "
                    + "deadline \(downloads.nextDeadline as Any)")
        }
    }

    /// Nobody cancels and nothing hangs: everybody must come to an end but who waits for executors that take nothing.
    private mutating func runToTheEnd(_ stalled: Set<Backlogs.Executor>) throws {
        witness.isSuspended = false
        downloads.setSuspended(false, witness.now)
        try settle("resume at the end")
        for _ in 0..<10_000 {
            let isAnyLeft = witness.liveSubscribers.contains { !stalled.contains(witness.subscribers[$0]!.executor) }
            guard isAnyLeft else { return }
            try hearOfDropped()
            try takePicture(stalled)
            if let id = witness.running.randomElement(using: &random) {
                try report(id)
            }
            if let id = witness.asked.randomElement(using: &random) { try answer(id) }
            if let id = witness.consulting.randomElement(using: &random) { try answerConsultation(id) }
            if !witness.resting.isEmpty, witness.running.isEmpty { try pass() }
            try stepDecoder()
            try releaseMemory()
        }
    }

    /// As the engine does while it reads what the transport has.
    private mutating func holdStarts() throws {
        downloads.holdStarts()
        witness.holdsStarts = true
        transcript.append("starts are held")
        for _ in 0..<Int.random(in: 1...8, using: &random) { try step() }
        witness.holdsStarts = false
        downloads.releaseStarts(witness.now)
        try settle("starts are released")
    }

    private mutating func step() throws {
        // The engine hears of it with its next commands. What the transport has read may come before.
        if random.oneIn(2) { try hearOfDropped() }
        switch Int.random(in: 0..<102, using: &random) {
        case 0..<16: try submit()
        case 16..<20: try cancel()
        case 20:
            if random.oneIn(3) {
                try revalidate()
            } else if random.oneIn(4) {
                try cancelAll()
            } else if random.oneIn(6) {
                try changeSession()
            }
        case 21..<23: try setPriority()
        case 23: try random.oneIn(5) ? changeNetwork() : outdate()
        case 24..<26: try changeDownloader()
        case 26..<76: if let id = witness.running.randomElement(using: &random) { try report(id) }
        case 76..<85: try stepDecoder()
        case 85: try releaseMemory()
        case 86: if random.oneIn(2) { try releaseMemory() } else { try takePicture(stalled) }
        case 87..<90: if let id = witness.asked.randomElement(using: &random) { try answer(id) }
        case 90..<93: if let id = witness.consulting.randomElement(using: &random) { try answerConsultation(id) }
        case 93..<97:
            guard !witness.holdsStarts else { break }
            if random.oneIn(4) { try passUnheard() } else if random.oneIn(5) { try passStopped() } else { try pass() }
        case 97..<99: try releaseExecutor()
        default: try reportStale()
        }
    }

    // MARK: Callers

    private mutating func submit() throws {
        var options = SubscriberOptions()
        options.events = EventMask(rawValue: UInt32.random(in: 0..<64, using: &random))
        options.priority = Priority.allCases.randomElement(using: &random)!
        options.decode = random.oneIn(4) ? nil : .number(UInt64.random(in: 0..<3, using: &random))
        options.wantsBody = random.oneIn(3)
        options.salvages = random.oneIn(3)
        options.acceptsAnyStatus = random.oneIn(4)
        options.partialInterval = [0, 50, 300].randomElement(using: &random)!
        if random.oneIn(4) { options.totalTimeout = [50, 500].randomElement(using: &random)! }
        if random.oneIn(4) { options.maximumBodyBytes = [0, 20, 200].randomElement(using: &random)! }
        options.continuesInBackground = random.oneIn(3)
        if random.oneIn(4) { options.connectTimeout = [100, 400].randomElement(using: &random)! }
        if random.oneIn(4) { options.idleTimeout = [100, 400].randomElement(using: &random)! }
        options.retry.count = [0, 0, 1, 3].randomElement(using: &random)!
        options.retry.base = [0, 1, 100].randomElement(using: &random)!
        options.retry.maximum = [50, 2_000].randomElement(using: &random)!
        options.validation.statuses = [
            nil, nil, [StatusRange(first: 200, last: 200), StatusRange(first: 404, last: 404)],
            [StatusRange(first: 300, last: 599)],
        ].randomElement(using: &random)!
        options.validation.contentTypes = [nil, nil, ["image/*"]].randomElement(using: &random)!
        options.retriesFailed = random.oneIn(4)
        options.ignoresCached = random.oneIn(5)
        let path = Int.random(in: 0..<paths, using: &random)
        var tls = TLSOptions()
        if random.oneIn(40) {
            tls.certificateAuthorities = "/none"
            tls.unusable = "a file cannot be used"
        }
        let request = TransferRequest(
            url: testURL("https://\(["a", "b", "c"][path % 3]).example/\(path)"),
            method: random.oneIn(8) ? ["HEAD", "POST"].randomElement(using: &random)! : "GET",
            identity: RequestIdentity(trust: RequestTrust(tls: tls)), followsRedirects: !random.oneIn(8),
            cacheMode: downloads.hasStore ? [.off, .use, .use, .refresh, .only].randomElement(using: &random)! : .off,
            hooks: random.oneIn(4) ? hooks.randomElement(using: &random) : nil)
        partFromOutdated(request)
        let executor = nextExecutor()
        let admission = downloads.submit(request, Boxed(wrappedValue: options), executor: executor, witness.now)
        if downloads.awaitsLook(admission.transfer) {
            downloads.looked(admission.transfer, pictureSize(), witness.now)
        }
        let (subscriber, id) = (admission.subscriber, admission.transfer)
        if let joined = witness.transfers[id] {
            if !joined.mayBeJoined || request.method == "POST" {
                throw Witness.Violation(text: "joined what cannot be joined: \(name(id))")
            }
            if joined.asked.contains(where: { isOutdated($0.url, since: $0.moment) }) {
                throw Witness.Violation(text: "joined what was asked for before it was outdated: \(name(id))")
            }
            if joined.transport == .resting, !waits(for: id, options) {
                throw Witness.Violation(text: "waits longer than it would by itself: \(name(id))")
            }
        } else {
            if let latest = latest[request], request.method != "POST", witness.transfers[latest]!.mustBeJoined,
                !witness.transfers[latest]!.mayHaveParted,
                witness.transfers[latest]!.transport != .resting || waits(for: latest, options)
            {
                throw Witness.Violation(text: "a second transfer of the same bytes")
            }
            latest[request] = id
            everyTransfer.append(id)
        }
        var record = Witness.SubscriberRecord(options: options, transfer: id, priority: options.priority)
        record.executor = executor
        if let rest = witness.transfers[id]?.rest, witness.transfers[id]!.transport == .resting {
            let longest = RetryRules.longestWait(options.retry, attempt: 1)
            record.wakes = max(rest.lowerBound, witness.now.advanced(byMilliseconds: longest))
        }
        if request.manner.refusal != nil, downloads.subscribers.contains(subscriber) {
            throw Witness.Violation(text: "a request goes on that names a file of no use: \(name(id))")
        }
        if downloads.subscribers.contains(subscriber) { record.variant = downloads.subscribers[subscriber].variant }
        witness.accept(subscriber, record, request)
        everybody.append(subscriber)
        try settle("submit \(request.method) \(path) as \(name(subscriber)) of \(name(id)) on \(executor), \(options)")
    }

    /// Whether a request with these options would rest as long as this one does.
    private func waits(for id: TransferID, _ options: SubscriberOptions) -> Bool {
        guard downloads.request(id) != nil, downloads.transfers[id].restsUntil != nil else { return true }
        let wait = downloads.ownRest(id, options.retry, witness.now).milliseconds(since: witness.now)
        let hasTime = options.totalTimeout == 0 || wait < options.totalTimeout
        return options.retry.count > 0 && wait <= options.retry.maximum && hasTime
    }

    private mutating func cancel() throws {
        guard let subscriber = everybody.suffix(30).randomElement(using: &random) else { return }
        if !witness.subscribers[subscriber]!.hasEnded { witness.subscribers[subscriber]!.wasCancelled = true }
        downloads.cancel(subscriber, witness.now)
        try settle("cancel \(name(subscriber))")
    }

    /// As after a stale answer.
    private mutating func revalidate() throws {
        let path = Int.random(in: 0..<paths, using: &random)
        let request = TransferRequest(
            url: testURL("https://\(["a", "b", "c"][path % 3]).example/\(path)"),
            cacheMode: downloads.hasStore ? .refresh : .off)
        partFromOutdated(request)
        let id = downloads.revalidate(request, SubscriberOptions(), witness.now)
        if let id, downloads.contains(id) {
            latest[request] = id
            everyTransfer.append(id)
        }
        try settle("revalidate \(path)")
    }

    /// Something is removed from the cache, or changed at its server.
    private mutating func outdate() throws {
        moment += 1
        if random.oneIn(8) {
            allOutdated = moment
            return try settle("everything is outdated")
        }
        let path = Int.random(in: 0..<20, using: &random)
        let own = path % paths
        let url = testURL(
            random.oneIn(3) ? "https://b.example/\(path)" : "https://\(["a", "b", "c"][own % 3]).example/\(own)")
        outdated[url] = moment
        try settle("\(url.canonical) is outdated")
    }

    private func isOutdated(_ url: ParsedURL, since moment: UInt64) -> Bool {
        max(allOutdated, outdated[url] ?? 0) > moment
    }

    private mutating func partFromOutdated(_ request: TransferRequest) {
        for id in witness.liveTransfers where witness.transfers[id]!.request == request {
            guard downloads.request(id) != nil, let first = witness.transfers[id]!.asked.first else { continue }
            let isAny = downloads.transfers[id].hops.contains { isOutdated($0, since: first.moment) }
            if isAny { witness.transfers[id]!.mayHaveParted = true }
        }
        downloads.partFromOutdated(request) { [outdated, allOutdated] in max(allOutdated, outdated[$0] ?? 0) > $1 }
    }

    /// As the engine does when it performs the action.
    private mutating func noteAsked(_ action: Action) {
        switch action {
        case .start(let id), .authenticate(let id, _), .send(let id):
            noteAsked(id, isNextHop: false, witness.transfers[id]!.storedMoment ?? moment)
        case .follow(let id, _): noteAsked(id, isNextHop: true, moment)
        case .consult(let id, let consultation):
            switch consultation.kind {
            case .first, .challenge, .again: noteAsked(id, isNextHop: false, moment)
            case .redirect: noteAsked(id, isNextHop: true, moment)
            case .answer, .standIn: break
            }
        default: break
        }
    }

    private mutating func noteAsked(_ id: TransferID, isNextHop: Bool, _ moment: UInt64) {
        witness.noteAsked(id, isNextHop: isNextHop, moment)
        downloads.asked(id, at: moment)
    }

    private mutating func cancelAll() throws {
        for id in witness.liveSubscribers { witness.subscribers[id]!.wasCancelled = true }
        downloads.cancelAll(witness.now)
        try settle("cancelAll")
    }

    private mutating func changeSession() throws {
        if random.oneIn(2) {
            downloads.invalidate(cancels: false, witness.now)
            return try settle("invalidate")
        }
        for id in witness.liveSubscribers { witness.subscribers[id]!.wasCancelled = true }
        witness.limits.maximumConcurrent = Int.random(in: 1...5, using: &random)
        witness.limits.maximumPerHost = Int.random(in: 0...2, using: &random)
        witness.limits.memoryBudget = [300, 2_000].randomElement(using: &random)!
        witness.limits.idleTimeout = [200, 5_000].randomElement(using: &random)!
        witness.hasReconfigured = true
        downloads.reconfigure(witness.limits, witness.now)
        try settle("reconfigure")
    }

    private mutating func setPriority() throws {
        guard let subscriber = everybody.suffix(30).randomElement(using: &random) else { return }
        let priority = Priority.allCases.randomElement(using: &random)!
        witness.subscribers[subscriber]!.priority = priority
        downloads.setPriority(subscriber, priority)
        try settle("\(name(subscriber)) gets priority \(priority)")
    }

    private mutating func changeDownloader() throws {
        switch Int.random(in: 0..<9, using: &random) {
        case 4, 5:
            let grace = ([nil, 5, 100, 1_000] as [Int64?]).randomElement(using: &random)!
            witness.isInBackground = true
            witness.isGraceOver = false
            downloads.enterBackground(grace: grace, witness.now)
            try settle("background, grace \(grace as Any)")
        case 6, 7: try enterForeground()
        case 8:
            let isLimited = witness.limits.maximumPerHost > 0
            witness.limits.maximumPerHost = Int.random(in: 0...3, using: &random)
            if isLimited != (witness.limits.maximumPerHost > 0) { witness.recountHosts() }
            downloads.setMaximumPerHost(witness.limits.maximumPerHost, witness.now)
            try settle("width for each host \(witness.limits.maximumPerHost)")
        case 0:
            witness.limits.maximumConcurrent = Int.random(in: 1...6, using: &random)
            downloads.setMaximumConcurrent(witness.limits.maximumConcurrent, witness.now)
            try settle("width \(witness.limits.maximumConcurrent)")
        case 1:
            witness.limits.order = Bool.random(using: &random) ? .fifo : .lifo
            downloads.setOrder(witness.limits.order)
            try settle("order \(downloads.limits.order)")
        default:
            witness.isSuspended = !witness.isSuspended && random.oneIn(2)
            downloads.setSuspended(witness.isSuspended, witness.now)
            try settle("suspended \(witness.isSuspended)")
        }
    }

    private mutating func enterForeground() throws {
        witness.isInBackground = false
        witness.isGraceOver = false
        downloads.enterForeground(witness.now)
        try settle("foreground")
    }

    // MARK: Memory

    /// Somebody has looked enough at a picture that its transfer has let go.
    private mutating func releaseMemory() throws {
        if let index = witness.abandonedCharges.randomElement(using: &random) { try release(index) }
    }

    private mutating func release(_ index: Int) throws {
        let bytes = witness.release(index)
        downloads.memoryReleased(bytes, witness.now)
        try settle("\(bytes) bytes are released")
    }

    /// A host takes something of what waits for it.
    private mutating func takePicture(_ stalled: Set<Backlogs.Executor>) throws {
        let waiting = witness.charges.indices.filter { !witness.charges[$0].waitsFor.isSubset(of: stalled) }
        if let index = waiting.randomElement(using: &random) { try take(index, butNot: stalled) }
    }

    private mutating func take(_ index: Int, butNot stalled: Set<Backlogs.Executor> = []) throws {
        guard let executor = witness.charges[index].waitsFor.subtracting(stalled).min() else { return }
        witness.charges[index].waitsFor.remove(executor)
        witness.seeWaiting(executor)
        downloads.taken(witness.charges[index].bytes, by: executor, witness.now)
        try settle("\(witness.charges[index].bytes) bytes are taken by \(executor)")
    }

    /// As the engine does, which then looks what may go on.
    private mutating func handOver(_ action: Action) {
        guard case .end(let subscriber, let outcome) = action, let record = witness.subscribers[subscriber] else {
            return
        }
        var variant: Int?
        switch outcome {
        case .success(let own):
            variant = own
            if record.options.wantsBody { handOverBody(record) }
        case .failure(_, let salvaged): variant = salvaged
        }
        if let variant { handOver(record.transfer, variant, record.executor) }
    }

    private mutating func handOver(_ id: TransferID, _ variant: Int, _ executor: Backlogs.Executor) {
        guard executor > 0, let index = witness.charge(id, variant) else { return }
        wait(index, for: executor)
    }

    private mutating func wait(_ index: Int, for executor: Backlogs.Executor) {
        guard witness.charges[index].waitsFor.insert(executor).inserted else { return }
        witness.charges[index].isFresh = true
        downloads.waits(witness.charges[index].bytes, for: executor)
        witness.seeWaiting(executor)
    }

    /// The body is counted once more, for as long as one of those who got it has it. Its transfer does not hold that.
    private mutating func handOverBody(_ record: Witness.SubscriberRecord) {
        let (id, bytes) = (record.transfer, witness.transfers[record.transfer]!.bodyBytes)
        guard record.executor > 0, bytes > 0 else { return }
        let known = witness.charges.firstIndex {
            $0.transfer == id && $0.variant == Witness.Charge.body && !$0.waitsFor.isEmpty
        }
        if known == nil {
            downloads.holdMemory(bytes)
            witness.charges.append(
                Witness.Charge(transfer: id, variant: Witness.Charge.body, bytes: bytes, isAbandoned: true))
        }
        wait(known ?? witness.charges.count - 1, for: record.executor)
    }

    // MARK: Executors that are released

    /// Its host lets go of one: what waits there comes back all at once, and its requests go on for nobody.
    private mutating func releaseExecutor() throws {
        guard executors > 0 else { return }
        let executor = Backlogs.Executor.random(in: 1...executors, using: &random)
        guard released.insert(executor).inserted else { return }
        transcript.append("executor \(executor) is released")
        try drop(executor)
    }

    /// As the engine tells the rules: at once of all that was taken, and of the memory where nobody else holds any of it.
    private mutating func drop(_ executor: Backlogs.Executor) throws {
        let dropped = witness.charges.indices.filter { witness.charges[$0].waitsFor.contains(executor) }
        guard !dropped.isEmpty else { return }
        let sizes = dropped.map { witness.charges[$0].bytes }
        var freed: Int64 = 0
        for index in dropped.reversed() {
            witness.charges[index].waitsFor.remove(executor)
            guard witness.charges[index].isAbandoned, witness.charges[index].waitsFor.isEmpty else { continue }
            if !random.oneIn(4) { freed += witness.release(index) }
        }
        witness.seeWaiting(executor)
        downloads.memoryCameBack(freed, taken: sizes.map { (executor: executor, bytes: $0) }, witness.now)
        try settle("\(sizes.count) that waited for \(executor) are dropped, \(freed) bytes are released")
        guard !downloads.backlogs.isBehind(executor) else {
            throw Witness.Violation(text: "behind, though nothing waits for it")
        }
    }

    /// What has been handed over to released executors, and steps that had no thread.
    private mutating func hearOfDropped() throws {
        for executor in released.sorted() { try drop(executor) }
        try tellRefused()
    }

    /// One that is released may be the downloader's own, to which requests come as before. The number of one that nothing
    /// names any more is another's.
    private mutating func nextExecutor() -> Backlogs.Executor {
        let executor = Backlogs.Executor.random(in: 0...executors, using: &random)
        let isNamed =
            witness.liveSubscribers.contains { witness.subscribers[$0]!.executor == executor }
            || witness.charges.contains { $0.waitsFor.contains(executor) }
        if !isNamed { released.remove(executor) }
        return executor
    }

    // MARK: The transport

    /// What may come next of a transfer.
    private mutating func report(_ id: TransferID) throws {
        let transfer = witness.transfers[id]!
        if transfer.consultation != nil {
            try answerConsultation(id)
        } else if transfer.question != nil {
            try reportWhileAsked(id)
        } else if transfer.isExchanging, !transfer.hasHead, !transfer.isDraining, random.oneIn(8) {
            try answerForCache(id)
        } else if random.oneIn(12) {
            ended(id, failed: true)
            downloads.failed(id, .lost, witness.now)
            try settle("\(name(id)) is lost")
        } else if transfer.transport == .connecting, !hasThread, random.oneIn(8) {
            try refuseLookUp(id)
        } else if transfer.transport == .connecting, !random.oneIn(4) {
            witness.transfers[id]!.transport = .receiving
            witness.transfers[id]!.since = witness.now
            downloads.connected(id, witness.now)
            try settle("\(name(id)) is connected")
        } else if !transfer.hasHead, !transfer.isDraining, !transfer.isPlaying, !transfer.isPaused, random.oneIn(12) {
            witness.transfers[id]!.transport = .connecting
            witness.transfers[id]!.since = witness.now
            downloads.beginsAnew(id, witness.now)
            try settle("\(name(id)) begins anew")
        } else if transfer.transport == .receiving, !transfer.isDraining, random.oneIn(20) {
            witness.transfers[id]!.since = witness.now
            downloads.advanced(id, witness.now)
            try settle("\(name(id)) has sent something")
        } else if transfer.transport == .receiving, transfer.hasHead, random.oneIn(12) {
            let isWaiting = transfer.waitingSince == nil
            witness.seeWait(id, isWaiting)
            downloads.bodyWaits(id, isWaiting, witness.now)
            try settle("the body of \(name(id)) \(isWaiting ? "waits" : "waits no more")")
        } else if !transfer.hasHead, !transfer.isDraining {
            try head(id)
        } else if random.oneIn(4) {
            if transfer.isExchanging, random.oneIn(3) {
                witness.transfers[id]!.isUnchanged = true
                downloads.isUnchanged(id)
            }
            ended(id, failed: false)
            downloads.finished(id, witness.now)
            try settle("\(name(id)) is finished")
        } else {
            guard !transfer.isPaused else { return try hold(id) }
            guard try tellHeld(id) else { return }
            let count = Int.random(in: 1...40, using: &random)
            if !transfer.isDraining { probe(id) }
            if !transfer.isDraining {
                witness.transfers[id]!.received += Int64(count)
                witness.transfers[id]!.since = witness.now
            }
            downloads.bodyReceived(id, count, witness.now)
            try settle("\(name(id)) receives \(count)")
        }
    }

    /// No thread is there to look its name up, or to read its file.
    private mutating func refuseLookUp(_ id: TransferID) throws {
        ended(id, failed: true)
        witness.transfers[id]!.wasRefused = true
        downloads.failed(id, .noThread, witness.now)
        try settle("\(name(id)) has no thread to begin on")
        let isTriedAgain = witness.transfers[id]!.transport == .resting && !witness.transfers[id]!.isPassed
        guard !isTriedAgain else { throw Witness.Violation(text: "tried again, though no thread was to be had") }
    }

    /// A loader of the host's reports all the same.
    private mutating func hold(_ id: TransferID) throws {
        let held = Int64.random(in: 1...60, using: &random)
        witness.transfers[id]!.held = held
        downloads.bodyHeld(id, held, witness.now)
        try settle("\(name(id)) holds \(held)")
        guard let transfer = witness.transfers[id], transfer.transport != .ended, !transfer.isDraining,
            transfer.question == nil || transfer.question?.kind == .response
        else { return }
        for subscriber in witness.liveSubscribers {
            guard let record = witness.subscribers[subscriber], record.transfer == id else { continue }
            let refusal = ResponseRules.refusal(
                status: transfer.lastStatus, mediaType: transfer.mediaType, record.options, request: transfer.request)
            guard refusal != nil || transfer.received + held <= record.options.maximumBodyBytes else {
                throw Witness.Violation(text: "holds more than \(subscriber) takes")
            }
        }
    }

    /// Before what comes of it. False: it is over.
    private mutating func tellHeld(_ id: TransferID) throws -> Bool {
        guard witness.transfers[id]!.held > 0 else { return true }
        witness.transfers[id]!.held = 0
        downloads.bodyHeld(id, 0, witness.now)
        try settle("what \(name(id)) held is told")
        return witness.running.contains(id)
    }

    private mutating func probe(_ id: TransferID) {
        guard witness.transfers[id]!.received == 0 || downloads.transfers[id].picture == .undecided else { return }
        downloads.probed(id, pictureSize())
    }

    private mutating func pictureSize() -> PictureSize {
        let (width, height) = (Int.random(in: 1...20, using: &random), Int.random(in: 1...20, using: &random))
        let sizes: [PictureSize] = [
            .undecided, .unknown, .known(width: width, height: height, held: random.oneIn(3) ? 6 : 0),
        ]
        return sizes.randomElement(using: &random)!
    }

    /// A pause does not hold up what is on its way.
    private mutating func reportWhileAsked(_ id: TransferID) throws {
        let transfer = witness.transfers[id]!
        guard transfer.transport == .receiving, !transfer.hasHeldEnd, random.oneIn(3) else { return try answer(id) }
        if transfer.isPaused, random.oneIn(3) { return try hold(id) }
        guard try tellHeld(id), witness.transfers[id]!.question != nil else { return }
        if random.oneIn(2) {
            let count = Int.random(in: 1...40, using: &random)
            probe(id)
            witness.transfers[id]!.received += Int64(count)
            downloads.bodyReceived(id, count, witness.now)
            return try settle("\(name(id)) receives \(count) while a hook is asked")
        }
        if random.oneIn(6) {
            ended(id, failed: true)
            downloads.failed(id, Failure(.bodyLimit, "too much to hold"), witness.now)
            try settle("\(name(id)) has more than can be held while a hook is asked")
            guard downloads.request(id) == nil else { throw Witness.Violation(text: "waits for what does not matter") }
            return
        }
        witness.transfers[id]!.hasHeldEnd = true
        witness.transfers[id]!.failed = random.oneIn(2)
        let failed = witness.transfers[id]!.failed
        if failed { downloads.failed(id, .lost, witness.now) } else { downloads.finished(id, witness.now) }
        // It is an end once the hook has answered.
        heldFailures[id] = failed
        witness.transfers[id]!.failed = false
        try settle("\(name(id)) ends while a hook is asked, failed \(failed)")
    }

    // MARK: The cache

    private mutating func answerConsultation(_ id: TransferID) throws {
        guard let consultation = witness.transfers[id]!.consultation else { return }
        let before = downloads.actions.count
        downloads.consulted(id, consultation.number &- 1, .play, witness.now)
        guard downloads.actions.count == before else { throw Witness.Violation(text: "took an answer of long ago") }
        witness.transfers[id]!.consultation = nil
        let isReplacement = [.answer, .standIn].contains(consultation.kind)
        if !random.oneIn(4), try postpone(id, consultation, isReplacement) { return }
        switch Int.random(in: 0..<(isReplacement ? 4 : 10), using: &random) {
        case 0..<3: try play(id, consultation)
        case 4 where !witness.transfers[id]!.isPlaced && consultation.kind != .again:
            comeBack(id)
            forgetLookUp(id)
            downloads.consulted(id, consultation.number, .later, witness.now)
            try settle("\(name(id)) is to be consulted about later")
        case 5:
            ended(id, failed: true)
            let failure = Failure(.notCached, "nothing is stored")
            downloads.consulted(id, consultation.number, .unavailable(failure), witness.now)
            try settle("\(name(id)) is not cached")
        default:
            let span = ([nil, 0, 100, 5_000] as [Int64?]).randomElement(using: &random)!
            let until = isReplacement ? nil : span.map { witness.now.advanced(byMilliseconds: $0) }
            if !witness.transfers[id]!.isPlaced { comeBack(id) }
            if random.oneIn(4), witness.charge(id, Witness.Charge.kept) == nil {
                let kept = Int64.random(in: 1...300, using: &random)
                downloads.holdMemory(kept, of: id)
                witness.charges.append(Witness.Charge(transfer: id, variant: Witness.Charge.kept, bytes: kept))
            }
            if !isReplacement {
                if random.oneIn(4) {
                    witness.transfers[id]!.storedMoment = witness.transfers[id]!.asked.last!.moment
                } else {
                    forgetLookUp(id)
                }
            }
            witness.transfers[id]!.isForwarded = true
            witness.transfers[id]!.fallbackUntil = until
            downloads.consulted(id, consultation.number, .forward(fallbackUntil: until), witness.now)
            try settle("\(name(id)) goes to the server")
        }
    }

    /// Something is stored: it comes now, or would only wait for hosts.
    private mutating func postpone(
        _ id: TransferID, _ consultation: Consultation, _ isReplacement: Bool
    ) throws -> Bool {
        let onlyWaits = !witness.transfers[id]!.isPlaced && witness.onlyWaits(id)
        guard downloads.postpones(id, consultation.number, isReplacement: isReplacement, witness.now) else {
            if onlyWaits { throw Witness.Violation(text: "comes from the cache to wait for hosts that are behind") }
            return false
        }
        witness.transfers[id]!.postponed = isReplacement ? .answer : .again
        if !isReplacement { forgetLookUp(id) }
        try settle("\(name(id)) is stored, and waits for hosts")
        return true
    }

    private mutating func forgetLookUp(_ id: TransferID) {
        witness.transfers[id]!.asked.removeLast()
        downloads.forgetLookUp(id)
    }

    private mutating func comeBack(_ id: TransferID) {
        witness.transfers[id]!.transport = .waiting
        witness.transfers[id]!.host = HostAndPort(witness.transfers[id]!.hop)
        witness.transfers[id]!.waitsSince = witness.now
        witness.transfers[id]!.front = witness.transfers[id]!.isUnderWay ? downloads.priority(id) : nil
    }

    /// A stored response, all at once.
    private mutating func play(_ id: TransferID, _ consultation: Consultation) throws {
        witness.transfers[id]!.transport = .receiving
        witness.transfers[id]!.isPlaying = true
        witness.transfers[id]!.isPlaced = false
        witness.transfers[id]!.hasStarted = true
        witness.transfers[id]!.isUnderWay = true
        for subscriber in witness.liveSubscribers where witness.subscribers[subscriber]!.transfer == id {
            let start = witness.subscribers[subscriber]!.clockStart
            witness.subscribers[subscriber]!.clockStart = start ?? witness.now
        }
        downloads.consulted(id, consultation.number, .play, witness.now)
        try settle("\(name(id)) is stored")
        try head(id, [.hit, .validated, .stale].randomElement(using: &random)!)
        guard downloads.request(id) != nil else { return }
        if downloads.disposition(id) == .receive {
            let count = Int.random(in: 1...300, using: &random)
            probe(id)
            witness.transfers[id]!.received += Int64(count)
            downloads.bodyReceived(id, count, witness.now)
            try settle("\(name(id)) has \(count) stored")
        }
        guard downloads.request(id) != nil else { return }
        if downloads.transfers[id].question != nil {
            witness.transfers[id]!.hasHeldEnd = true
            heldFailures[id] = false
        } else {
            ended(id, failed: false)
        }
        downloads.finished(id, witness.now)
        try settle("\(name(id)) has been played")
    }

    /// A 304, or an answer that is of no use.
    private mutating func answerForCache(_ id: TransferID) throws {
        witness.transfers[id]!.transport = .receiving
        witness.transfers[id]!.isDraining = true
        witness.transfers[id]!.since = witness.now
        if random.oneIn(2) {
            witness.transfers[id]!.takesOver = true
            downloads.storedTakesOver(id, witness.now)
            try settle("\(name(id)): what is stored takes over")
        } else {
            witness.transfers[id]!.asksAgain = true
            downloads.asksAgain(id, witness.now)
            try settle("\(name(id)) asks again")
        }
    }

    // MARK: Hooks

    private mutating func answer(_ id: TransferID) throws {
        guard let question = witness.transfers[id]!.question else { return }
        let before = downloads.actions.count
        downloads.answered(id, question.number &- 1, .refused(.lost), witness.now)
        guard downloads.actions.count == before else { throw Witness.Violation(text: "took an answer of long ago") }
        let answer = self.answer(to: question)
        witness.transfers[id]!.question = nil
        witness.seeAnswered(id)
        witness.transfers[id]!.since = witness.now
        let isAboutHead = [.response, .challenge].contains(question.kind)
        if isAboutHead, !asksOn(id, question, answer) { prepare(id, answer) }
        if case .request(let request) = answer { witness.transfers[id]!.hop = request.url }
        if case .body(let bytes) = answer { witness.transfers[id]!.made = bytes }
        downloads.answered(id, question.number, answer, witness.now)
        if isAboutHead, downloads.request(id) != nil { settleHead(id) }
        try settle("\(name(id)) is answered \(question): \(answer)")
    }

    private mutating func answer(to question: Question) -> Answer {
        if random.oneIn(3) { return .unchanged }
        if random.oneIn(5) { return .refused(Failure(.invalidOperation, "the hook refuses")) }
        switch question.kind {
        case .request:
            let url = testURL("https://c.example/\(Int.random(in: 0..<4, using: &random))")
            let method = random.oneIn(4) ? "POST" : "GET"
            return .request(OutgoingRequest(url: url, method: method, fields: [], body: nil))
        case .response:
            let (head, retryAfter) = randomHead()
            return .response(head, retryAfter: retryAfter)
        case .challenge: return .credential(Credential(user: "u", password: "p"))
        case .redirect:
            return random.oneIn(4)
                ? .redirect(.failure(Failure(.invalidURL, "no host")))
                : .redirect(.success(testURL("https://d.example/\(Int.random(in: 0..<9, using: &random))")))
        case .body: return .body(bytes: Int64.random(in: 0...600, using: &random))
        }
    }

    /// The challenge is the answer: the hook is asked about it as about any response.
    private func asksOn(_ id: TransferID, _ question: Question, _ answer: Answer) -> Bool {
        guard question.kind == .challenge, case .unchanged = answer else { return false }
        return witness.transfers[id]!.request.hooks!.kinds.contains(.modifyResponse)
    }

    /// What the answer makes of the response, before the rules hear it.
    private mutating func prepare(_ id: TransferID, _ answer: Answer) {
        witness.transfers[id]!.hasHead = true
        switch answer {
        case .response(let head, let retryAfter):
            witness.transfers[id]!.lastStatus = head.status
            witness.transfers[id]!.mediaType = head.mediaType
            witness.transfers[id]!.retryAfter = retryAfter
        case .credential, .refused: witness.transfers[id]!.isDraining = true
        case .unchanged, .request, .body, .redirect: break
        }
        if witness.transfers[id]!.hasHeldEnd {
            witness.transfers[id]!.hasHeldEnd = false
            ended(id, failed: heldFailures.removeValue(forKey: id) ?? false)
        }
    }

    /// What has become of it.
    private mutating func settleHead(_ id: TransferID) {
        let isDraining = downloads.disposition(id) == .discard
        switch downloads.transfers[id].phase {
        case .receiving where downloads.transfers[id].question == nil:
            witness.transfers[id]!.isDraining = isDraining
            let isRefused = !ResponseRules.isSuccess(witness.transfers[id]!.lastStatus) || isDraining
            witness.transfers[id]!.isClosed = isRefused && downloads.transfers[id].credential == nil
        case .transforming, .decoding:
            witness.transfers[id]!.isClosed = !ResponseRules.isSuccess(witness.transfers[id]!.lastStatus)
        case .waiting, .asking, .consulting, .connecting, .receiving, .resting: break
        }
    }

    private mutating func ended(_ id: TransferID, failed: Bool) {
        witness.transfers[id]!.transport = .ended
        if failed { witness.transfers[id]!.failed = true } else { witness.transfers[id]!.finished = true }
    }

    private mutating func head(_ id: TransferID, _ outcome: CacheOutcome = .network) throws {
        let location: Result<ParsedURL, Failure>? =
            switch Int.random(in: 0..<8, using: &random) {
            case 0: nil
            case 1: .failure(Failure(.invalidURL, "no host"))
            case 2: .success(testURL("http://a.example/down"))
            default: .success(testURL("https://b.example/\(Int.random(in: 0..<20, using: &random))"))
            }
        var (head, retryAfter) = randomHead()
        head.outcome = outcome
        let status = head.status
        witness.transfers[id]!.outcome = outcome
        witness.transfers[id]!.mediaType = head.mediaType
        witness.transfers[id]!.retryAfter = retryAfter
        witness.transfers[id]!.transport = .receiving
        witness.transfers[id]!.lastStatus = status
        witness.transfers[id]!.since = witness.now
        // Where it turns out to be a redirect, nobody is told of a response.
        witness.transfers[id]!.hasHead = true
        let disposition = downloads.headReceived(
            id, head, location: location, retryAfter: retryAfter, witness.now)
        if downloads.request(id) != nil, downloads.transfers[id].question != nil {
            witness.transfers[id]!.hasHead = false
        }
        if disposition == .discard, downloads.request(id) != nil {
            witness.transfers[id]!.isDraining = true
            if downloads.transfers[id].redirect != nil { witness.transfers[id]!.hasHead = false }
        }
        if witness.transfers[id]!.hasHead {
            let isRefused = !ResponseRules.isSuccess(status)
            witness.transfers[id]!.isClosed = isRefused || witness.transfers[id]!.isDraining
        }
        if disposition == .receive, random.oneIn(2), witness.transfers[id]!.isExchanging { downloads.stores(id) }
        try settle("\(name(id)) answers \(status) from \(outcome): \(disposition)")
    }

    private mutating func randomHead() -> (ResponseHead, retryAfter: Int64?) {
        let statuses: [Int32] = [200, 200, 200, 200, 302, 302, 303, 307, 404, 304, 401, 503, 429]
        let status = statuses.randomElement(using: &random)!
        let type = ["", "image/png", "text/html"].randomElement(using: &random)!
        let length = random.oneIn(3) ? Int64.random(in: 0...300, using: &random) : nil
        let head = ResponseHead(
            status: status, httpVersion: random.oneIn(4) ? 20 : 11,
            fields: type.isEmpty ? [] : [HeaderField("Content-Type", type)], contentLength: length,
            isEncoded: random.oneIn(9))
        let after: Int64? = random.oneIn(2) ? [0, 30, 500].randomElement(using: &random) : nil
        return (head, RetryRules.isTransient(status: status) ? after : nil)
    }

    /// Reports that come too late, of transfers and decoders that are over.
    private mutating func reportStale() throws {
        let over = everyTransfer.suffix(40).filter { witness.transfers[$0]!.isForgotten }
        guard let id = over.randomElement(using: &random) else { return }
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 3, isEncoded: false)
        downloads.connected(id, witness.now)
        downloads.beginsAnew(id, witness.now)
        guard downloads.headReceived(id, head, location: nil, witness.now) == .discard else {
            throw Witness.Violation(text: "receives for what is over")
        }
        downloads.bodyReceived(id, 3, witness.now)
        downloads.finished(id, witness.now)
        downloads.failed(id, .lost, witness.now)
        downloads.answered(id, witness.transfers[id]!.lastQuestion, .unchanged, witness.now)
        downloads.consulted(id, witness.transfers[id]!.lastConsultation, .play, witness.now)
        downloads.storedTakesOver(id, witness.now)
        downloads.asksAgain(id, witness.now)
        downloads.decodeStepped(id, variant: 0, .finished, hasHeader: true, hasPartial: true, witness.now)
        guard downloads.actions.isEmpty else { throw Witness.Violation(text: "acts for what is over") }
        try settle("reports of \(name(id)), which is over")
    }

    // MARK: Workers and time

    private mutating func stepDecoder() throws {
        try tellRefused()
        let busy = everyTransfer.flatMap { id in
            witness.transfers[id]!.stepsInFlight.keys.sorted().map { (id: id, variant: $0) }
        }
        guard let (id, variant) = busy.randomElement(using: &random) else { return }
        let step = witness.transfers[id]!.stepsInFlight.removeValue(forKey: variant)!
        var verdict = random.oneIn(step == .salvage ? 2 : 10) ? DecodeVerdict.failed(.bad) : .finished
        if case .feed = step, verdict == .finished { verdict = .fed }
        if verdict != .fed { witness.transfers[id]!.endedVariants.insert(variant) }
        if case .failed = verdict { witness.transfers[id]!.isClosed = true }
        let hasPartial = step == .feed(showing: true) && verdict == .fed && !random.oneIn(3)
        let hasHeader =
            witness.transfers[id]!.headers.contains(variant) || hasPartial || verdict == .finished || random.oneIn(2)
        if hasHeader { witness.transfers[id]!.headers.insert(variant) }
        downloads.hasFreeWorker = !random.oneIn(3)
        let demand = random.oneIn(4) ? Int64.random(in: 0...500, using: &random) : 0
        let beside: Int64 = random.oneIn(4) ? 70 : 0
        let most = witness.transfers[id]!.demands[variant] ?? (0, 0)
        witness.transfers[id]!.demands[variant] = (max(most.canvases, demand), max(most.beside, beside))
        downloads.decodeStepped(
            id, variant: variant, verdict, hasHeader: hasHeader, hasPartial: hasPartial, demand: demand, beside: beside,
            witness.now)
        try settle(
            "\(name(id)) variant \(variant) \(step): \(verdict), header \(hasHeader), partial \(hasPartial), "
                + "\(demand) bytes")
    }

    /// The step is handed to the workers: who have no thread for as long as they have had none.
    private mutating func offerThread(_ action: Action) {
        guard !hasThread, case .decode(let id, let variant, _) = action else { return }
        hasThread = random.oneIn(8)
        guard !hasThread else { return }
        witness.transfers[id]!.refused.insert(variant)
        refusedSteps.append((id, variant))
    }

    /// They have failed before they began.
    private mutating func tellRefused() throws {
        while !refusedSteps.isEmpty {
            let (id, variant) = refusedSteps.removeFirst()
            // Of an attempt that is over the engine drops the report.
            guard witness.transfers[id]!.refused.remove(variant) != nil else { continue }
            let step = witness.transfers[id]!.stepsInFlight.removeValue(forKey: variant)!
            witness.transfers[id]!.endedVariants.insert(variant)
            witness.transfers[id]!.isClosed = true
            witness.transfers[id]!.wasRefused = true
            downloads.hasFreeWorker = !random.oneIn(3)
            downloads.decodeStepped(
                id, variant: variant, .failed(.noThread), hasHeader: false, hasPartial: false, witness.now)
            try settle("\(name(id)) variant \(variant) \(step): there is no thread")
            let isAwaited = witness.liveSubscribers.contains {
                witness.subscribers[$0]!.transfer == id && witness.subscribers[$0]!.variant == variant
            }
            guard !isAwaited else { throw Witness.Violation(text: "somebody waits for a decoder that has no thread") }
        }
    }

    /// Time passes, and the rules are called when they have asked to be.
    private mutating func pass() throws {
        let span = ([1, 10, 60, 400, 3_000] as [Int64]).randomElement(using: &random)!
        let end = witness.now.advanced(byMilliseconds: span)
        while let deadline = downloads.nextDeadline, deadline <= end {
            witness.now = max(witness.now, deadline)
            let strayBytes = random.oneIn(10) ? Silence.floodBytes : 0
            downloads.deadlineReached(witness.now) { _ in Silence(strayBytes: strayBytes) }
            witness.isGraceOver = downloads.background?.isOver ?? false
            try settle("deadline, \(strayBytes) stray bytes", afterDeadlines: true)
            if let next = downloads.nextDeadline, next <= witness.now {
                throw Witness.Violation(text: "asks again for a time that has been dealt with")
            }
        }
        witness.now = end
        transcript.append("\(span) ms pass")
    }

    /// A turn that takes its time: what has come meanwhile is heard of in the next one.
    private mutating func passUnheard() throws {
        let began = witness.now
        let span = ([20, 150, 900, 11_000] as [Int64]).randomElement(using: &random)!
        witness.now = began.advanced(byMilliseconds: span)
        transcript.append("\(span) ms pass in a turn")
        witness.heardUntil = began
        downloads.deadlineReached(witness.now, heardUntil: began)
        witness.isGraceOver = downloads.background?.isOver ?? false
        try settle("deadline, heard until the turn began", afterDeadlines: true)
        witness.heardUntil = nil

        let delay = TurnDelay(awake: span * 1_000_000, asleep: random.oneIn(10) ? 11_000_000_000 : 0)
        let leavings = witness.leavings
        downloads.turnBegins(after: delay, witness.now)
        witness.seeDelay(max(0, span - 100) * 1_000_000)
        try settle("the next turn is late: \(delay)")
        guard witness.leavings - leavings == (span > 10_000 || delay.asleep > 0 ? 1 : 0) else {
            throw Witness.Violation(text: "connections are left, or not, at the wrong time")
        }
        if let id = witness.running.randomElement(using: &random) { try report(id) }
        downloads.deadlineReached(witness.now)
        witness.isGraceOver = downloads.background?.isOver ?? false
        try settle("deadline", afterDeadlines: true)
        if let next = downloads.nextDeadline, next <= witness.now {
            throw Witness.Violation(text: "asks again for a time that has been dealt with")
        }
    }

    /// The process was stopped: what came meanwhile is reported before any deadline is looked at.
    private mutating func passStopped() throws {
        let span = ([40, 600, 4_000] as [Int64]).randomElement(using: &random)!
        witness.now = witness.now.advanced(byMilliseconds: span)
        transcript.append("\(span) ms pass in which the process is stopped")
        downloads.turnBegins(after: TurnDelay(awake: span * 1_000_000), witness.now)
        witness.seeDelay(max(0, span - 100) * 1_000_000)
        try settle("the turn is late")
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            if let id = witness.running.randomElement(using: &random) { try report(id) }
            if let id = witness.asked.randomElement(using: &random) { try answer(id) }
            if let id = witness.consulting.randomElement(using: &random) { try answerConsultation(id) }
            try stepDecoder()
        }
        downloads.deadlineReached(witness.now)
        witness.isGraceOver = downloads.background?.isOver ?? false
        try settle("deadline", afterDeadlines: true)
    }

    private mutating func changeNetwork() throws {
        let leavings = witness.leavings
        downloads.networkChanged()
        try settle("the network changes")
        guard witness.leavings == leavings + 1 else { throw Witness.Violation(text: "the transport is not told") }
    }

    private mutating func settle(_ event: String, afterDeadlines: Bool = false) throws {
        transcript.append(event)
        acceptInternal()
        repeat {
            let all = downloads.takeActions()
            let actions = all.filter { !hasComeAndGone($0) }
            witness.passing = all.count { if case .end = $0 { hasComeAndGone($0) } else { false } }
            witness.placed = witness.placedNow(downloads).union(givenUpAgain(actions))
            witness.lined = Set(
                witness.liveTransfers.filter { downloads.request($0) != nil && downloads.transfers[$0].cache.isCounted }
            )
            try witness.seePassedTurns(downloads)
            noteHeldRequests { ![.connecting, .receiving].contains($0.transport) }
            for case .start(let id) in actions { noteShortWait(id, .first) { $0 == .asking } }
            for case .send(let id) in actions { noteShortWait(id, .consulted) { $0 == .consulting } }
            for action in actions {
                transcript.append("    \(describe(action))")
                handOver(action)
                noteShortWait(action)
                try witness.see(action)
                offerThread(action)
                noteAsked(action)
            }
            // Those that were stopped first.
            noteHeldRequests { _ in true }
            try witness.seePassedTurns(downloads)
        } while downloads.reviewBacklogs(witness.now)
        startNumbers = [:]
        for id in witness.liveTransfers {
            witness.transfers[id]!.isLined = downloads.transfers[id].cache.isCounted
            startNumbers[id] = downloads.transfers[id].startNumber
        }
        try witness.check(downloads, afterDeadlines: afterDeadlines)
    }

    /// Of a hop that has come to wait for a place and has got one within the event, such as by another's end at the same moment:
    /// its start is one from the queue.
    private mutating func noteShortWait(_ action: Action) {
        switch action {
        case .follow(let id, let redirect): noteShortWait(id, .redirect(redirect)) { $0 == .ended }
        case .authenticate(let id, let credential): noteShortWait(id, .credential(credential)) { $0 == .ended }
        default: break
        }
    }

    private mutating func noteShortWait(
        _ id: TransferID, _ request: HopRequest, where hadItsPlace: (Witness.Transport) -> Bool
    ) {
        guard downloads.request(id) != nil, let number = startNumbers[id],
            downloads.transfers[id].startNumber != number, let transport = witness.transfers[id]?.transport,
            hadItsPlace(transport)
        else { return }
        witness.hold(id, request, downloads.priority(id))
    }

    /// Of hops that have come to wait for a place.
    private mutating func noteHeldRequests(where isLooked: (Witness.TransferRecord) -> Bool) {
        for id in witness.liveTransfers where downloads.request(id) != nil {
            guard downloads.transfers[id].phase == .waiting, let held = downloads.transfers[id].heldRequest,
                witness.transfers[id]!.heldRequest == nil,
                witness.transfers[id]!.transport != .waiting, isLooked(witness.transfers[id]!)
            else { continue }
            transcript.append("    \(name(id)) waits at \(downloads.host(of: id).host)")
            witness.hold(id, held, downloads.priority(id))
        }
    }

    /// Of the rules' own subscribers and transfers, those that gave way within the event in which they came.
    private func hasComeAndGone(_ action: Action) -> Bool {
        switch action {
        case .end(let subscriber, .failure(let failure, _)):
            witness.subscribers[subscriber] == nil && failure.code == .cancelled
        case .forget(let id): witness.transfers[id] == nil
        default: false
        }
    }

    /// Transfers of nobody's whose turn came within the event, and that gave way within it.
    private func givenUpAgain(_ actions: [Action]) -> [TransferID] {
        actions.compactMap { action in
            guard case .forget(let id) = action, let transfer = witness.transfers[id], !transfer.isLined,
                [.waiting, .resting].contains(transfer.transport), witness.isUnattended(id)
            else { return nil }
            return id
        }
    }

    /// Subscribers of the rules' own.
    private mutating func acceptInternal() {
        for subscriber in downloads.subscribers.keys {
            guard downloads.subscribers[subscriber].isInternal, witness.subscribers[subscriber] == nil else { continue }
            let id = downloads.transfer(of: subscriber)
            var record = Witness.SubscriberRecord(
                options: downloads.subscribers[subscriber].options, transfer: id, priority: .low)
            record.isInternal = true
            witness.accept(subscriber, record, downloads.transfers[id].request)
        }
    }

    // MARK: Names

    private func name(_ id: TransferID) -> String { "T\(id.rawValue & 0xFFFF_FFFF).\(id.rawValue >> 32)" }
    private func name(_ id: SubscriberID) -> String { "S\(id & 0xFFFF_FFFF).\(id >> 32)" }

    private func describe(_ action: Action) -> String {
        switch action {
        case .start(let id): "start \(name(id))"
        case .follow(let id, let redirect): "follow \(name(id)) \(redirect.method) \(redirect.url.canonical)"
        case .authenticate(let id, _): "authenticate \(name(id))"
        case .ask(let id, let question): "ask \(name(id)) \(question)"
        case .consult(let id, let consultation): "consult \(name(id)) \(consultation.kind) \(consultation.number)"
        case .send(let id): "send \(name(id))"
        case .store(let id): "store \(name(id))"
        case .setPaused(let id, let isPaused): "\(isPaused ? "pause" : "resume") \(name(id))"
        case .restart(let id): "restart \(name(id))"
        case .setPriority(let id, let priority): "hurry \(name(id)) \(priority)"
        case .leaveConnections: "leave connections"
        case .reserve(let id, let variant, let bytes): "reserve \(bytes) for \(name(id)) variant \(variant)"
        case .reserveMore(let id, let variant, let bytes): "\(bytes) more for \(name(id)) variant \(variant)"
        case .stop(let id): "stop \(name(id))"
        case .stopFlooded(let id): "stop \(name(id)), flooded"
        case .forget(let id): "forget \(name(id))"
        case .decode(let id, let variant, let step): "decode \(name(id)) variant \(variant) \(step)"
        case .emit(let subscriber, let notice): "tell \(name(subscriber)) \(notice)"
        case .observe(let id, let milestone, let subscribers): "observe \(name(id)) \(milestone) of \(subscribers)"
        case .end(let subscriber, .success(let variant)): "end \(name(subscriber)) success \(variant as Any)"
        case .end(let subscriber, .failure(let failure, let salvaged)):
            "end \(name(subscriber)) \(failure.code) \(failure.status) salvaged \(salvaged as Any)"
        }
    }
}

extension Failure {
    fileprivate static let noThread = Failure(.outOfMemory, "no thread")
}

/// Hooks that are asked by the tests' transcripts, never themselves.
final class SilentHooks: Hooks {
    let kinds: HookKinds

    init(_ kinds: HookKinds) { self.kinds = kinds }

    func modifyRequest(_: OutgoingRequest, answer: @escaping @Sendable (HookAnswer<OutgoingRequest>) -> Void) {}
    func modifyResponse(_: Response, answer: @escaping @Sendable (HookAnswer<ModifiedResponse>) -> Void) {}
    func transformBody(_: BodySlice, answer: @escaping @Sendable (HookAnswer<[UInt8]>) -> Void) {}
    func redirect(_: Response, to: ParsedURL, answer: @escaping @Sendable (HookAnswer<String>) -> Void) {}
    func authenticate(_: Response, answer: @escaping @Sendable (HookAnswer<Credential>) -> Void) {}
}
