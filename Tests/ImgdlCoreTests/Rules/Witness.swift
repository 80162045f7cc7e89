@testable import ImgdlCore

/// Watches what the rules do and knows what they must never do. It decides nothing by itself: what it holds follows
/// from the events and from the actions alone.
struct Witness {
    struct Violation: Error { let text: String }

    struct SubscriberRecord {
        let options: SubscriberOptions
        let transfer: TransferID
        var priority: Priority
        var wasCancelled = false
        var hasEnded = false
        var variant: Int?
        var executor: Backlogs.Executor = 0
        /// started, response, header, then progress and partial images.
        var lastRank = -1
        var received: Int64 = 0
        var hasFinalProgress = false
        var clockStart: Instant?
        /// Of the rules' own.
        var isInternal = false
        /// It joined an attempt that was under way.
        var joined: Instant?
        var retries = 0
        /// Between two attempts: when the next one is due by its own policy, at the latest.
        var wakes: Instant?
        var lastPartial: Instant?
    }

    enum Transport: Equatable {
        case waiting, connecting, receiving, ended
        /// In its place, with nothing at the transport: a hook is asked.
        case asking
        /// The cache is asked.
        case consulting
        /// Between two attempts.
        case resting
    }

    struct TransferRecord {
        var transport = Transport.waiting {
            didSet { if transport == .ended { (held, waitingSince) = (0, nil) } }
        }
        var isForgotten = false
        /// Its observer has been told that it has stopped.
        var isObservedStopped = false
        /// It has left the queue once, or was answered from the cache.
        var hasStarted = false
        /// So it has in this attempt.
        var isUnderWay = false
        /// An observer is told of its start.
        var wasSent = false
        /// It has a place, or had to give it up in the background.
        var isPlaced = false
        var consultation: Consultation?
        var lastConsultation: UInt64 = 0
        /// The answer to it, until it is sent.
        var isForwarded = false
        var isExchanging = false
        var isPlaying = false
        var takesOver = false
        var asksAgain = false
        var fallbackUntil: Instant?
        var outcome = CacheOutcome.network
        var isUnchanged = false
        var hasHead = false
        var isDraining = false
        var request: TransferRequest
        /// What its hop asks; where it has its place, or waits for one.
        var hop: ParsedURL
        var host: HostAndPort
        /// Is sent when it has a place at its host.
        var heldRequest: HopRequest?
        var question: Question?
        var lastQuestion: UInt64 = 0
        /// Its end has been reported, and waits for an answer.
        var hasHeldEnd = false
        /// What the transport has been told.
        var isPaused = false
        /// Of its body, at the transport.
        var held: Int64 = 0
        /// Its body waits for its turn.
        var waitingSince: Instant?
        var retryAfter: Int64?
        /// Between which moments it may be tried again.
        var rest: ClosedRange<Instant>?
        /// Its turn has passed, and it waits for executors.
        var isPassed = false
        var mediaType = ""
        var lastStatus: Int32 = 0
        var waitsSince = Instant(nanoseconds: 0)
        /// It has come back to the front of this priority, and nothing has come before it since.
        var front: Priority?
        /// False: its priority has changed within the event, perhaps after it had come back, and then it is the last of the new
        /// one.
        var isFrontSure = true
        /// Of the rules: its own clocks stand still; those of its subscribers do.
        var pausedAt: Instant?
        var heldSince: Instant?
        var received: Int64 = 0
        /// What is to be asked of the cache again, since what it found would only have waited for hosts.
        var postponed: Consultation.Kind?
        /// A hook has given so many bytes for its body.
        var made: Int64?
        /// What it holds of a body.
        var bodyBytes: Int64 { made ?? received + held }
        /// nil while it may still come to a good end.
        var failed = false
        var finished = false
        /// The clock that runs: of the hop, of the drain, or since the last byte.
        var since = Instant(nanoseconds: 0)
        var stepsInFlight: [Int: DecodeStep] = [:]
        /// What its decoders have said at most: bytes of canvases, and beside them.
        var demands: [Int: (canvases: Int64, beside: Int64)] = [:]
        /// Of these steps, those that had no thread.
        var refused: Set<Int> = []
        /// It, or a decoder of it, had no thread.
        var wasRefused = false
        var headers: Set<Int> = []
        var endedVariants: Set<Int> = []
        /// Refused, or with a broken picture: nobody may join.
        var isClosed = false
        /// When it rested there was another transfer of the same bytes, and that one may have been joined instead.
        var mayBeAlone = false
        /// What this attempt has asked for, hop by hop, and when at the earliest: what is outdated since then is.
        var asked: [(url: ParsedURL, moment: UInt64)] = []
        var hopCount = 1
        /// Of what was found, which has a part in what its hop brings.
        var storedMoment: UInt64?
        /// Something of it was outdated before another request of the same bytes came.
        var mayHaveParted = false
        /// It waits to be consulted about: whatever its last exchange came to is over.
        var isLined = false
        var mayBeJoined: Bool { !isForgotten && (!failed || isLined) && !isClosed }
        var mustBeJoined: Bool { mayBeJoined && !mayBeAlone }

        init(_ request: TransferRequest) {
            self.request = request
            hop = request.url
            host = HostAndPort(hop)
        }
    }

    /// One that went to another host with its place, and those that had a place there at that moment.
    struct Move {
        let isHeld: Bool
        let there: [TransferID]
    }

    /// One that left the queue, with those that ran and that waited at that moment.
    struct Start {
        let id: TransferID
        let running: [TransferID]
        let waiting: [TransferID]
        let isBack: Bool
        /// Where those that ran and waited were.
        let hosts: [TransferID: HostAndPort]
        /// Transfers of those that ran, which had been paused for the background within the event, and which had gone on.
        let paused: Set<TransferID>
        let resumed: Set<TransferID>
    }

    /// Reserved and not given back.
    struct Charge {
        /// For the body that is handed over, instead of a variant.
        static let body = -1
        /// For what its transfer holds besides its body.
        static let kept = -2

        let transfer: TransferID
        let variant: Int
        let bytes: Int64
        /// Its transfer is over, or begins anew: somebody still looks at the picture, or a worker has it.
        var isAbandoned = false
        /// Executors that have it and have not taken it.
        var waitsFor: Set<Backlogs.Executor> = []
        /// It has come to wait for one within the event.
        var isFresh = false
    }

    var limits: Limits
    var hasStore = false
    var isSuspended = false
    var isInBackground = false
    var isGraceOver = false
    /// Nothing that waits, is paused or is held back goes on before they are released.
    var holdsStarts = false
    var starts: [Start] = []
    /// Subscribers of the rules' own that came and gave way within the event: an observer may be told of them.
    var passing = 0
    /// Transfers that had no place, and have been told to go on within the event.
    var resumed: Set<TransferID> = []
    var moves: [Move] = []
    /// How often the transport was told to leave its connections.
    var leavings = 0
    /// Of the rules: transfers with a place, or without one in the background.
    var placed: Set<TransferID> = []
    /// Of the rules: those without one that the cache is asked about, or will be.
    var lined: Set<TransferID> = []
    /// What has left the queue within the event, or been consulted about without a place.
    var begun: [TransferID] = []
    /// Hook tables and executors that were behind when the event came; these with what they have left when they no longer are.
    var tablesBehind: Set<ObjectIdentifier> = []
    var executorsBehind: [Backlogs.Executor: Int64] = [:]
    var executorsBehindBefore: Set<Backlogs.Executor> = []
    /// When the event came.
    private var prioritiesBefore: [TransferID: Priority] = [:]
    var hasReconfigured = false
    var startsSinceAged = 0
    var charges: [Charge] = []
    var reservedNow: [Charge] = []
    var oldestDecode: OldestDecode?
    var now = Instant(nanoseconds: 0)
    /// What came before then has been told; nil: all that came before now.
    var heardUntil: Instant?
    private var heard: Instant { heardUntil ?? now }
    var subscribers: [SubscriberID: SubscriberRecord] = [:]
    var transfers: [TransferID: TransferRecord] = [:]

    init(_ limits: Limits) { self.limits = limits }

    /// Oldest first.
    private(set) var liveSubscribers: [SubscriberID] = []
    private(set) var liveTransfers: [TransferID] = []
    var running: [TransferID] { liveTransfers.filter { isRunning($0) } }
    func isRunning(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id], transfer.isPlaced, !transfer.isPlaying else { return false }
        return [.asking, .consulting, .connecting, .receiving].contains(transfer.transport)
    }
    func isAtTransport(_ id: TransferID) -> Bool {
        let transfer = transfers[id]!
        return [.connecting, .receiving].contains(transfer.transport) && !transfer.hasHeldEnd && !transfer.isPlaying
    }
    var consulting: [TransferID] { liveTransfers.filter { transfers[$0]!.consultation != nil } }
    /// Those of whom a hook is asked something.
    var asked: [TransferID] { liveTransfers.filter { transfers[$0]!.question != nil } }
    var resting: [TransferID] { liveTransfers.filter { transfers[$0]!.transport == .resting } }

    var abandonedCharges: [Int] {
        charges.indices.filter { charges[$0].isAbandoned && charges[$0].waitsFor.isEmpty }
    }

    /// Of what its transfer still has.
    func charge(_ id: TransferID, _ variant: Int) -> Int? {
        charges.firstIndex { $0.transfer == id && $0.variant == variant && !$0.isAbandoned }
    }

    /// The highest of its live subscribers.
    private var priorities: [TransferID: Priority] {
        var priorities: [TransferID: Priority] = [:]
        for subscriber in liveSubscribers {
            let (id, priority) = (subscribers[subscriber]!.transfer, subscribers[subscriber]!.priority)
            priorities[id] = max(priorities[id] ?? .low, priority)
        }
        return priorities
    }

    mutating func accept(_ subscriber: SubscriberID, _ record: SubscriberRecord, _ request: TransferRequest) {
        if transfers[record.transfer] == nil {
            transfers[record.transfer] = TransferRecord(request)
            transfers[record.transfer]!.waitsSince = now
            liveTransfers.append(record.transfer)
        }
        subscribers[subscriber] = record
        if transfers[record.transfer]!.hasStarted { subscribers[subscriber]!.clockStart = now }
        if transfers[record.transfer]!.isUnderWay { subscribers[subscriber]!.joined = now }
        liveSubscribers.append(subscriber)
    }

    func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
        if !condition { throw Violation(text: text()) }
    }

    // MARK: Actions

    mutating func see(_ action: Action) throws {
        switch action {
        case .start(let id):
            if transfers[id]?.transport == .asking {
                try require(transfers[id]!.question == nil, "sent before the hook has answered")
            } else {
                try leaveQueue(id)
            }
            try require(transfers[id]!.request.cacheMode == .off || !hasStore(id), "sent without a look into the cache")
            transfers[id]!.wasSent = true
            connect(id)
        case .consult(let id, let consultation): try see(id, consultation)
        case .send(let id):
            try live(id)
            let transfer = transfers[id]!
            if transfer.asksAgain {
                try require(transfer.transport == .ended, "sent again before its end")
            } else {
                try require(transfer.isForwarded && transfer.consultation == nil, "sent before the cache has answered")
                if [.waiting, .resting].contains(transfer.transport) { try leaveQueue(id) }
            }
            transfers[id]!.wasSent = true
            transfers[id]!.isForwarded = false
            connect(id)
            transfers[id]!.isExchanging = true
        case .store(let id):
            try live(id)
            let transfer = transfers[id]!
            try require(transfer.isExchanging && !transfer.isPlaying, "stores what is stored")
        case .follow(let id, let redirect):
            try live(id)
            let transfer = transfers[id]!
            if [.waiting, .resting].contains(transfer.transport) {
                try require(transfer.heldRequest == .redirect(redirect), "another redirect than the one that waited")
                try leaveQueue(id)
            } else {
                let isRedirected = [.ended, .asking].contains(transfer.transport) && transfer.isDraining
                try require(isRedirected, "followed no redirect")
            }
            try require(transfer.question == nil, "followed before the hook has answered")
            transfers[id]!.hop = redirect.url
            connect(id)
        case .authenticate(let id, let credential):
            try live(id)
            if [.waiting, .resting].contains(transfers[id]!.transport) {
                try require(transfers[id]!.heldRequest == .credential(credential), "a credential that did not wait")
                try leaveQueue(id)
            } else {
                let isChallenged = transfers[id]!.transport == .ended && transfers[id]!.isDraining
                try require(isChallenged, "a credential for nothing")
            }
            transfers[id]!.received = 0
            let isExchanging = transfers[id]!.isExchanging
            connect(id)
            transfers[id]!.isExchanging = isExchanging
        case .ask(let id, let question): try see(id, question)
        case .setPaused(let id, let isPaused):
            try live(id)
            let transfer = transfers[id]!
            try require([.connecting, .receiving].contains(transfer.transport), "paused what is not at the transport")
            try require(!transfer.hasHeldEnd && transfer.isPaused != isPaused, "paused for nothing")
            transfers[id]!.isPaused = isPaused
            if !isPaused, transfers[id]!.heldSince != nil { resumed.insert(id) }
            if isPaused { resumed.remove(id) }
        case .restart(let id): try restart(id)
        case .setPriority(let id, _):
            try live(id)
            try require(isAtTransport(id), "a priority for what is not at the transport")
        case .reserve(let id, let variant, let bytes):
            try live(id)
            try require(charge(id, variant) == nil, "reserved twice")
            charges.append(Charge(transfer: id, variant: variant, bytes: bytes))
            reservedNow.append(charges.last!)
        case .reserveMore(let id, let variant, let bytes):
            try live(id)
            try require(bytes > 0, "nothing more is counted")
            let before = charges.filter { $0.transfer == id && $0.variant == variant && !$0.isAbandoned }.map(\.bytes)
            let demand = transfers[id]!.demands[variant] ?? (0, 0)
            try require(
                before.reduce(bytes, +) <= max(before.first ?? 0, demand.canvases) + demand.beside, "counted twice")
            charges.append(Charge(transfer: id, variant: variant, bytes: bytes))
        case .stop(let id), .stopFlooded(let id):
            try live(id)
            try require(isAtTransport(id), "stopped what is not at the transport")
            transfers[id]!.transport = .ended
            transfers[id]!.failed = true
        case .forget(let id):
            try live(id)
            try require(!isAtTransport(id), "forgotten at the transport")
            let isHooked = transfers[id]!.request.hooks?.kinds.contains(.modifyRequest) ?? false
            try require(
                transfers[id]!.isObservedStopped == transfers[id]!.wasSent || isHooked, "an observer is told of no end")
            try require(!liveSubscribers.contains { subscribers[$0]!.transfer == id }, "forgotten with a subscriber")
            transfers[id]!.isForgotten = true
            liveTransfers.removeAll { $0 == id }
            abandonCharges(id)
        case .decode(let id, let variant, let step):
            try live(id)
            let transfer = transfers[id]!
            try require(transfer.stepsInFlight[variant] == nil, "a second step in flight")
            try require(!transfer.endedVariants.contains(variant), "a step after the last")
            try require(!transfer.isDraining && transfer.hasHead, "a decode of no answer")
            try require(transfer.question == nil, "a decode before the hook has answered")
            switch step {
            case .feed(let isShowing):
                let isWatched = liveSubscribers.map { subscribers[$0]! }.contains {
                    $0.transfer == id && $0.options.decode != nil && $0.options.events.contains(.partial)
                }
                let transforms = transfer.request.hooks?.kinds.contains(.transformBody) ?? false
                try require(!transforms, "decoded early what a hook is to change")
                try require(isWatched || !isShowing, "a picture shown to nobody")
                try require(transfer.transport == .receiving && transfer.received > 0, "a feed without bytes")
            case .finish: try require(transfer.finished && !transfer.failed, "finish without an end")
            case .salvage: try require(transfer.failed, "salvage without a failure")
            }
            transfers[id]!.stepsInFlight[variant] = step
        case .leaveConnections: leavings += 1
        case .emit(let subscriber, let notice): try see(subscriber, notice)
        case .end(let subscriber, let outcome): try see(subscriber, outcome)
        case .observe(let id, let milestone, let subscribers):
            try live(id)
            let count = liveSubscribers.filter { self.subscribers[$0]!.transfer == id }.count
            guard case .stopped(let code) = milestone else { break }
            let mayBeMore = count...count + passing
            try require(mayBeMore.contains(subscribers), "observed after the end of a subscriber")
            try require(transfers[id]!.hasStarted, "an observer is told of one that never left the queue")
            try require(transfers[id]!.wasSent || transfers[id]!.request.hooks != nil, "observed what was not sent")
            try require(!transfers[id]!.isObservedStopped, "stopped a second time")
            let isWell = transfers[id]!.finished && !transfers[id]!.failed
            try require(code != .ok || isWell, "well for the observer, though it failed")
            transfers[id]!.isObservedStopped = true
        }
    }

    private mutating func leaveQueue(_ id: TransferID) throws {
        begun.append(id)
        try require([.waiting, .resting].contains(transfers[id]?.transport), "started what did not wait")
        try require(!isSuspended && !isGraceOver, "started though nothing may")
        if let rest = transfers[id]!.rest { try require(rest.contains(now), "did not wait as it was told to") }
        transfers[id]!.rest = nil
        transfers[id]!.hasStarted = true
        transfers[id]!.isUnderWay = true
        transfers[id]!.isPlaced = true
        let isWoken = transfers[id]!.transport == .resting
        if isWoken { transfers[id]!.waitsSince = now }
        let waiting = liveTransfers.filter { transfers[$0]!.transport == .waiting && !lined.contains($0) || $0 == id }
        let isBack = isWoken || transfers[id]!.front != nil
        let running = running
        let hosts = Dictionary(uniqueKeysWithValues: Set(running + waiting).map { ($0, transfers[$0]!.host) })
        starts.append(
            Start(
                id: id, running: running, waiting: waiting, isBack: isBack, hosts: hosts, paused: pausedForBackground,
                resumed: resumed))
        transfers[id]!.front = nil
        for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
            if subscribers[subscriber]!.clockStart == nil { subscribers[subscriber]!.clockStart = now }
        }
    }

    mutating func noteAsked(_ id: TransferID, isNextHop: Bool, _ moment: UInt64) {
        let record = transfers[id]!
        transfers[id]!.storedMoment = nil
        if isNextHop { transfers[id]!.hopCount += 1 }
        if record.asked.count == transfers[id]!.hopCount { transfers[id]!.asked.removeLast() }
        transfers[id]!.asked.append((record.hop, moment))
    }

    /// Its hop waits for a place, instead of being sent.
    mutating func hold(_ id: TransferID, _ request: HopRequest, _ priority: Priority) {
        switch request {
        case .first: break
        case .consulted: transfers[id]!.isForwarded = true
        case .redirect(let redirect): transfers[id]!.hop = redirect.url
        case .credential: transfers[id]!.received = 0
        }
        transfers[id]!.heldRequest = request
        transfers[id]!.host = HostAndPort(transfers[id]!.hop)
        transfers[id]!.transport = .waiting
        transfers[id]!.waitsSince = now
        transfers[id]!.front = priority
        transfers[id]!.isPlaced = false
        transfers[id]!.isPaused = false
        transfers[id]!.asksAgain = false
        transfers[id]!.hasHead = false
        transfers[id]!.isDraining = false
        transfers[id]!.finished = false
        transfers[id]!.failed = false
    }

    /// A request goes to the transport.
    private mutating func connect(_ id: TransferID) {
        let host = HostAndPort(transfers[id]!.hop)
        if host != transfers[id]!.host {
            let there = running.filter { $0 != id && transfers[$0]!.host == host }
            moves.append(Move(isHeld: transfers[id]!.heldSince != nil, there: there))
        }
        transfers[id]!.host = host
        transfers[id]!.heldRequest = nil
        transfers[id]!.transport = .connecting
        transfers[id]!.isExchanging = false
        transfers[id]!.isPlaying = false
        transfers[id]!.takesOver = false
        transfers[id]!.asksAgain = false
        transfers[id]!.outcome = .network
        transfers[id]!.isPaused = false
        transfers[id]!.hasHead = false
        transfers[id]!.isDraining = false
        transfers[id]!.finished = false
        transfers[id]!.failed = false
        transfers[id]!.since = now
    }

    private mutating func see(_ id: TransferID, _ question: Question) throws {
        try live(id)
        let transfer = transfers[id]!
        let kind: HookKinds =
            switch question.kind {
            case .request: .modifyRequest
            case .response: .modifyResponse
            case .body: .transformBody
            case .redirect: .redirect
            case .challenge: .authenticate
            }
        try require(transfer.request.hooks?.kinds.contains(kind) ?? false, "asked what nobody wants to be asked")
        try require(transfer.question == nil && question.number > transfer.lastQuestion, "asked twice at a time")
        switch question.kind {
        case .request:
            try leaveQueue(id)
            transfers[id]!.transport = .asking
        case .redirect:
            try require(transfer.transport == .ended && transfer.isDraining, "asked about no redirect")
            transfers[id]!.transport = .asking
            transfers[id]!.failed = false
            transfers[id]!.finished = false
        case .body: try require(transfer.transport == .ended && transfer.finished, "asked about half a body")
        case .response, .challenge: try require(transfer.transport == .receiving, "asked about no response")
        }
        transfers[id]!.question = question
        transfers[id]!.lastQuestion = question.number
    }

    private mutating func restart(_ id: TransferID) throws {
        try live(id)
        let transfer = transfers[id]!
        try require(transfer.transport == .ended && transfer.question == nil, "tried again while it goes on")
        var longest = Int64.max
        for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
            subscribers[subscriber]!.retries += 1
            subscribers[subscriber]!.joined = nil
            // Response and header of the next attempt are told again.
            subscribers[subscriber]!.lastRank = min(0, subscribers[subscriber]!.lastRank)
            let policy = subscribers[subscriber]!.options.retry
            try require(subscribers[subscriber]!.retries <= policy.count, "more attempts than asked for")
            longest = min(longest, policy.maximum)
            let own = RetryRules.longestWait(policy, attempt: subscribers[subscriber]!.retries)
            subscribers[subscriber]!.wakes = now.advanced(byMilliseconds: max(transfer.retryAfter ?? 0, own))
        }
        let after = transfer.retryAfter ?? 0
        try require(longest < .max && after <= longest, "tried again for nobody, or against Retry-After")
        var fresh = TransferRecord(transfer.request)
        fresh.transport = .resting
        fresh.hasStarted = true
        fresh.wasSent = transfer.wasSent
        fresh.lastConsultation = transfer.lastConsultation
        (fresh.pausedAt, fresh.heldSince) = (transfer.pausedAt, transfer.heldSince)
        fresh.lastQuestion = transfer.lastQuestion
        fresh.lastStatus = transfer.lastStatus
        // Requests made meanwhile may have a transfer of their own: later ones join that.
        fresh.mayBeAlone = liveTransfers.contains { other in
            other != id && transfers[other]!.mayBeJoined && transfers[other]!.request == transfer.request
        }
        // It may have to wait for a place when its rest is over.
        fresh.rest = now.advanced(byMilliseconds: after)...Instant(nanoseconds: .max)
        transfers[id] = fresh
        abandonCharges(id)
    }

    func placedNow(_ downloads: borrowing Downloads) -> Set<TransferID> {
        Set(
            downloads.running
                + downloads.parked.filter {
                    downloads.request($0) != nil && downloads.transfers[$0].pauses.contains(.background)
                })
    }

    func hasStore(_ id: TransferID) -> Bool {
        let request = transfers[id]!.request
        return hasStore && ["GET", "HEAD"].contains(request.method) && request.hooks == nil
    }

    private mutating func see(_ id: TransferID, _ consultation: Consultation) throws {
        try live(id)
        let transfer = transfers[id]!
        try require(transfer.request.cacheMode != .off, "consulted for who wants no cache")
        try require(transfer.consultation == nil && consultation.number > transfer.lastConsultation, "consulted twice")
        try require(transfer.question == nil, "consulted before the hook has answered")
        let isPlaced = placed.contains(id)
        if !isPlaced { begun.append(id) }
        if let postponed = transfers[id]!.postponed.take() {
            try require(postponed == consultation.kind && !isPlaced, "consulted about something else than before")
            transfers[id]!.consultation = consultation
            transfers[id]!.lastConsultation = consultation.number
            return
        }
        switch consultation.kind {
        case .first:
            if isPlaced, transfer.transport != .asking { try leaveQueue(id) }
            let waits = [.waiting, .resting].contains(transfer.transport)
            try require(isPlaced || waits && !transfer.isUnderWay, "consulted out of turn")
        case .again: try leaveQueue(id)
        case .redirect(let redirect):
            try require([.ended, .asking].contains(transfer.transport) && transfer.isDraining, "followed no redirect")
            transfers[id]!.hop = redirect.url
        case .challenge:
            try require(transfer.transport == .ended && transfer.isDraining, "answered no challenge")
            transfers[id]!.received = 0
        case .answer: try require(transfer.transport == .ended && transfer.takesOver && !isPlaced, "nothing takes over")
        case .standIn:
            // Others may have been consulted about first.
            let isStale = transfer.fallbackUntil.map { $0 >= now || transfer.isLined } ?? false
            let hasFailed = transfer.transport == .ended && transfer.failed
            try require(hasFailed && isStale && !isPlaced, "stands in for nothing")
        }
        transfers[id]!.consultation = consultation
        transfers[id]!.lastConsultation = consultation.number
        transfers[id]!.transport = .consulting
        transfers[id]!.isPlaced = isPlaced
        transfers[id]!.isExchanging = false
        transfers[id]!.isPlaying = false
        transfers[id]!.takesOver = false
        transfers[id]!.fallbackUntil = nil
        transfers[id]!.hasHead = false
        transfers[id]!.isDraining = false
        transfers[id]!.finished = false
        transfers[id]!.failed = false
    }

    private mutating func abandonCharges(_ id: TransferID) {
        for index in charges.indices where charges[index].transfer == id { charges[index].isAbandoned = true }
    }

    private func live(_ id: TransferID) throws {
        try require(transfers[id].map { !$0.isForgotten } ?? false, "an action after forget")
    }

    private mutating func see(_ id: SubscriberID, _ notice: Notice) throws {
        guard var subscriber = subscribers[id] else { throw Violation(text: "told nobody") }
        let transfer = transfers[subscriber.transfer]!
        try require(!subscriber.hasEnded, "told after its end")
        try require(!isLate(subscriber), "told after its total timeout")
        let (rank, event): (Int, EventMask) =
            switch notice {
            case .started: (0, .started)
            case .response: (1, .response)
            // Bytes that do not hold the whole header yet are progress before it.
            case .progress: (subscriber.lastRank < 3 ? 2 : 4, .progress)
            case .header: (3, .header)
            case .partial: (4, .partial)
            }
        try require(subscriber.options.events.contains(event), "told what it did not ask for")
        let isRepeatable = rank == subscriber.lastRank && (rank == 2 || rank == 4)
        try require(rank > subscriber.lastRank || isRepeatable, "told out of order, or twice")
        subscriber.lastRank = rank
        switch notice {
        case .started: try require(transfer.hasStarted, "started in the queue")
        case .response: try require(transfer.hasHead, "a response before its head")
        case .header(let variant): try require(transfer.headers.contains(variant), "a header nobody has read")
        case .progress(let received, let expected):
            try require(received == transfer.received && received >= subscriber.received, "progress that is not")
            try require(!transfer.isDraining, "progress of a drain")
            if subscriber.options.events.contains(.header), let variant = subscriber.variant {
                let isRead = transfer.headers.contains(variant) || transfer.stepsInFlight[variant] == nil
                try require(isRead, "progress while the decoder reads what may be the header")
            }
            try require(!subscriber.hasFinalProgress, "progress after the final one")
            subscriber.received = received
            subscriber.hasFinalProgress = transfer.finished && received == expected
        case .partial:
            if let last = subscriber.lastPartial {
                try require(
                    now.milliseconds(since: last) >= subscriber.options.partialInterval, "partial images too fast")
            }
            subscriber.lastPartial = now
        }
        subscribers[id] = subscriber
    }

    private mutating func see(_ id: SubscriberID, _ outcome: Outcome) throws {
        guard let subscriber = subscribers[id] else { throw Violation(text: "ended nobody") }
        let transfer = transfers[subscriber.transfer]!
        try require(!subscriber.hasEnded, "ended twice")
        subscribers[id]!.hasEnded = true
        liveSubscribers.removeAll { $0 == id }
        switch outcome {
        case .success(let variant):
            try require(!isLate(subscriber), "success after its total timeout")
            try require(transfer.finished && !transfer.failed && !transfer.isDraining, "success of a failure")
            let refusal = ResponseRules.refusal(
                status: transfer.lastStatus, mediaType: transfer.mediaType, subscriber.options,
                request: transfer.request)
            try require(refusal == nil, "success of a response it does not take")
            try require((variant == nil) == (subscriber.options.decode == nil), "the wrong kind of success")
            let isKnown = transfer.outcome.isCached || transfer.isUnchanged
            try require(!isKnown || !subscriber.options.ignoresCached, "success, though nothing has changed")
            try require(transfer.received <= subscriber.options.maximumBodyBytes, "more than it takes")
            if let variant { try require(transfer.endedVariants.contains(variant), "a picture that is not there") }
            if subscriber.options.events.contains(.progress) {
                // An earlier attempt may have told of more.
                try require(subscriber.received >= transfer.received, "success without the final progress")
            }
        case .failure(let failure, let salvaged):
            try require(failure.status == transfer.lastStatus, "status \(failure.status) of \(transfer.lastStatus)")
            try require(salvaged == nil || subscriber.options.salvages, "pixels for who wanted none")
            switch failure.code {
            case .cancelled:
                let gaveWay = subscriber.isInternal && isUnattended(subscriber.transfer)
                try require(subscriber.wasCancelled || gaveWay, "cancelled, though it never was")
            case .totalTimeout: try require(isLate(subscriber), "timed out too early")
            case .backgroundExpired:
                let isExpired = isInBackground && isGraceOver && subscriber.options.continuesInBackground
                try require(isExpired, "expired in the foreground, or without having asked for the background")
            case .bodyLimit: break
            case .outOfMemory:
                try require(transfer.wasRefused && !subscriber.wasCancelled, "out of memory, though it had its threads")
            case .notModified:
                let isKnown = transfer.outcome.isCached || transfer.isUnchanged
                try require(isKnown && subscriber.options.ignoresCached, "not modified, though nobody has said so")
            case .connectTimeout, .idleTimeout:
                let deadline = ownDeadline(subscriber, transfer, failure.code)
                try require(deadline <= heard, "its own timeout came before it was heard")
            default: try require(!subscriber.wasCancelled, "cancelled, but told otherwise")
            }
        }
    }

    private func isLate(_ subscriber: SubscriberRecord) -> Bool {
        guard let start = subscriber.clockStart, subscriber.options.totalTimeout > 0,
            transfers[subscriber.transfer]!.heldSince == nil
        else { return false }
        return start.advanced(byMilliseconds: subscriber.options.totalTimeout) <= now
    }

    // MARK: States

    /// What holds whenever an event has been dealt with.
    mutating func check(_ downloads: borrowing Downloads, afterDeadlines: Bool) throws {
        try seeBacklogs(downloads)
        try seeHosts(downloads)
        try seePace(downloads)
        for id in resting where downloads.transfers[id].phase == .waiting {
            try require(transfers[id]!.rest!.contains(now), "woken too early")
            transfers[id]!.transport = .waiting
            transfers[id]!.waitsSince = now
            transfers[id]!.front = downloads.priority(id)
        }
        let priorities = priorities
        for id in liveTransfers {
            if prioritiesBefore[id].map({ $0 != priorities[id] }) ?? false { transfers[id]!.isFrontSure = false }
            if transfers[id]!.front != priorities[id] || limits.order == .lifo { transfers[id]!.front = nil }
            if transfers[id]!.front == nil { transfers[id]!.isFrontSure = true }
        }
        prioritiesBefore = priorities
        try seeDecodeLine(downloads)
        try seeMemory(downloads)
        try seeRoomToCome(downloads)
        try seePauses(downloads)
        try seeMoves()
        try seeStarts(priorities)
        for id in resting where afterDeadlines && !transfers[id]!.isPassed {
            let own = liveSubscribers.map { subscribers[$0]! }.filter { $0.transfer == id }.compactMap(\.wakes)
            try require(own.allSatisfy { $0 > now }, "somebody waits for another's retry")
        }
        let live = liveTransfers
        try require(downloads.subscriberCount == liveSubscribers.count, "subscribers not counted right")
        try require(downloads.transferCount == live.count, "transfers not counted right")
        let running = running
        let placed = running.filter { transfers[$0]!.heldSince == nil }
        let parked = running.filter { transfers[$0]!.heldSince != nil }
        try require(downloads.runningCount == placed.count, "running not counted right")
        try require(downloads.restingCount == resting.count, "resting not counted right")
        // Some of those wait for others to be consulted about first.
        let consulting = live.filter { downloads.transfers[$0].cache.isCounted }
        let waiting = live.filter { transfers[$0]!.transport == .waiting && !downloads.transfers[$0].cache.isCounted }
        try require(downloads.waitingCount == waiting.count, "waiting not counted right")
        let asked = consulting.count { transfers[$0]!.consultation != nil }
        try require(downloads.askedCount == asked && asked <= limits.maximumConsulting, "too many are consulted about")
        let mayConsult =
            downloads.memory.isFull ? asked < 1 && downloads.heldDecodes.isEmpty : asked < limits.maximumConsulting
        let held = consulting.filter { downloads.transfers[$0].heldConsultation != nil }
        try require(downloads.heldConsultationCount == held.count, "those that wait for hosts not counted right")
        try require(held.allSatisfy { transfers[$0]!.consultation == nil }, "held, and consulted about")
        let mayRecall = downloads.recalledCount < limits.maximumConcurrent
        let isHeldUp = consulting.contains {
            let isOut = transfers[$0]!.consultation != nil
            return !isOut && !downloads.waitsForHosts($0) && (mayRecall || !held.contains($0))
        }
        try require(!isHeldUp || !mayConsult || holdsStarts, "somebody waits to be consulted about for nothing")
        try require(downloads.consultingCount == consulting.count, "consultations not counted right")
        let decoding = live.count - waiting.count - running.count - resting.count - consulting.count
        try require(downloads.decodingCount == decoding, "decoding not counted right")
        let still = running.count { !downloads.transfers[$0].pauses.isDisjoint(with: [.background, .memory]) }
        try require(downloads.pausedCount == still, "paused not counted right")
        let finishing = live.count { downloads.transfers[$0].isHeldForExecutors }
        try require(downloads.heldForExecutorsCount == finishing, "those that wait for executors not counted right")
        let owing = live.count {
            downloads.transfers[$0].phase == .transforming && downloads.transfers[$0].question != nil
        }
        try require(downloads.transformingCount == owing, "those that wait for a hook's answer not counted right")
        let isNothingInWork = decoding == finishing + owing && placed.isEmpty && consulting.count == held.count
        let mayStart = !holdsStarts && !isSuspended && placed.count < limits.maximumConcurrent && !isGraceOver
        if mayStart, !downloads.memory.isFull || isNothingInWork {
            try require(eligible(waiting, placed).isEmpty, "a place is free and somebody waits")
        }
        try seeUnattended(waiting, placed, isMemoryFull: downloads.memory.isFull)
        if placed.count < limits.maximumConcurrent, !holdsStarts, !isGraceOver {
            // They go on where a redirect has led them meanwhile.
            let hosts = Dictionary(uniqueKeysWithValues: parked.map { ($0, HostAndPort(transfers[$0]!.hop)) })
            try require(
                eligible(parked, placed, hosts).isEmpty, "a place is free and somebody is paused for want of one")
        }
        for id in live {
            try require(priorities[id] != nil, "a transfer nobody wants")
            try require(downloads.priority(id) == priorities[id], "not the priority of its subscribers")
        }
        if let earliest = running.compactMap({ deadline($0) }).min() {
            guard let next = downloads.nextDeadline else { throw Violation(text: "no deadline for what runs") }
            try require(next <= earliest, "would be woken too late for a transfer")
            try require(!afterDeadlines || earliest > heard, "over its time and still running")
        }
        for subscriber in liveSubscribers where afterDeadlines {
            try require(!isLate(subscribers[subscriber]!), "over its total time and still there")
        }
    }

    /// nil while it is paused, its body waits or a hook is asked: the clocks stand still; and for what is stored, which
    /// nobody waits for.
    private func deadline(_ id: TransferID) -> Instant? {
        let transfer = transfers[id]!
        guard transfer.pausedAt == nil, transfer.question == nil, !transfer.isPlaying,
            ![.asking, .consulting].contains(transfer.transport)
        else { return nil }
        let own = liveSubscribers.map { subscribers[$0]! }.filter { $0.transfer == id }
        if transfer.isDraining {
            let idle = own.map { $0.options.idleTimeout(limits) }.min() ?? limits.idleTimeout
            return transfer.since.advanced(byMilliseconds: min(limits.drainTimeout, idle))
        }
        if transfer.waitingSince != nil { return nil }
        let code = transfer.transport == .connecting ? ErrorCode.connectTimeout : .idleTimeout
        return own.map { ownDeadline($0, transfer, code) }.min()
    }

    private func ownDeadline(_ subscriber: SubscriberRecord, _ transfer: TransferRecord, _ code: ErrorCode) -> Instant {
        let options = subscriber.options
        let timeout = code == .connectTimeout ? options.connectTimeout(limits) : options.idleTimeout(limits)
        return max(transfer.since, subscriber.joined ?? transfer.since).advanced(byMilliseconds: timeout)
    }
}
