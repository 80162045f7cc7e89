/// The rules of the game: who shares what, who goes next, who is told what, and how each subscriber ends.
///
/// An event goes in, with the time where it matters; actions come out, to be performed in order. No input, no clock
/// and no lock inside; the engine's thread owns it. What holds, whatever the order of events (Tests/ImgdlCoreTests):
/// - each subscriber gets exactly one `end`, and nothing after it;
/// - never more transfers run than the limits, in all and to one host, and none without a subscriber;
/// - whoever waits comes in the end, whatever else comes, and what is paused goes on;
/// - `forget` is the last action of each transfer.
///
///     waiting ──start──▶ connecting ──▶ receiving ──▶ decoding ──▶ gone
///      ▲ │                   ▲   redirect   │            │
///      │ └───────────────────┴─── last subscriber leaves ┴──▶ gone
///      └──── resting ◀──── a failure that may pass
///
/// Where a hook is asked, `asking` comes before connecting and `transforming` before decoding; where there is a cache,
/// `consulting` comes before waiting or connecting (Downloads+Caching).
///
/// Not copied: the engine would, for a mere question, and count a score of objects up and down each time.
package struct Downloads: ~Copyable {
    package internal(set) var limits: Limits
    package internal(set) var isSuspended = false
    var transfers = SlotTable<Transfer>()
    var subscribers = SlotTable<Subscriber>()
    /// Of all that have not begun.
    private let freshTransfer = CommonUntilChanged.Common(TransferCourse())
    let freshSubscriber = CommonUntilChanged.Common(SubscriberCourse())
    /// The decoders of the last transfer that was made, of one subscriber who has not heard anything: most want the
    /// same.
    var usualVariants: (options: Boxed<SubscriberOptions>, variants: [Variant])?
    /// Which transfer a new request for the same bytes joins. One that failed or was cancelled is not here any more.
    var shared = SharedTransfers()
    var waiting: WaitingQueue
    /// Those that have a place, in no order.
    var running: [TransferID] = []
    var starts: UInt64 = 0
    var background: Background?
    var backgroundStays: UInt64 = 0
    /// Transfers that wait for their next attempt.
    var restingCount = 0
    /// Transfers without a place that the cache is consulted about.
    var consultingCount = 0
    /// Of those, the ones whose question is out, and the others, oldest first.
    var askedCount = 0
    var consultationLine = Queue<(id: TransferID, consultation: Consultation)>()
    /// Of the others, those that wait for hooks or executors that are behind, by whom; and of those that are asked about, the
    /// ones that have waited so.
    package var heldConsultationCount = 0
    var consultationsHeldByHooks = PassedTurns<ObjectIdentifier>()
    var consultationsHeldByExecutors = PassedTurns<Backlogs.Executor>()
    var recalledCount = 0
    /// Subscribers of the rules' own.
    var internalCount = 0
    /// There is a cache.
    package var hasStore = false
    /// Somebody is told of answers; of starts and ends the engine takes note in any case.
    package var hasObserver = true
    package var finishesNearlyDone = false
    /// Transfers that stand still in the background or for want of memory.
    package internal(set) var pausedCount = 0
    /// Paused in the background, without a place, in the order in which they were; those that have gone on or ended
    /// since are thrown out when they are looked at, …
    var parked: [TransferID] = []
    /// … and not counted.
    var parkedCount = 0
    var memory: MemoryRules
    /// The bytes that transfers hold besides bodies and canvases.
    var keptBytes: Int64 = 0
    var backlogs = Backlogs()
    /// A look at what may go on is due: what waits for executors, or what was handed over, has changed since the last
    /// one.
    var needsReview = false
    /// Transfers that wait for their turn until an executor has caught up.
    var passedTurns = PassedTurns<Backlogs.Executor>()
    /// The same until hooks have given answers that they owe.
    var turnsPassedByHooks = PassedTurns<ObjectIdentifier>()
    var owedAnswers = Shares<ObjectIdentifier>()
    /// The same until less of what comes from their source stands still.
    var turnsPassedBySources = PassedTurns<Source>()
    /// What slow transfers hold, and how many of them there are.
    var slow = Shares<Source>()
    var slowCount = 0
    /// When it is looked who is slow.
    var nextLook: Instant?
    /// Transfers without a place that wait for what a hook makes of their body.
    var transformingCount = 0
    /// Decoders that have all their bytes and wait for the same; those that have gone on are thrown out when they are
    /// looked at.
    var executorDecodes: [OpenVariant] = []
    /// Transfers that do nothing but wait for such a decoder, and the bytes of their bodies.
    var heldForExecutorsCount = 0
    var heldForExecutorsBytes: Int64 = 0
    /// HTTP/1.1 transfers are paused for memory, all but the leader and slow ones.
    var isPressing = false
    var leader: TransferID?
    /// It has ended, or is paused, and there may be another.
    var needsLeader = false
    /// It was slow, and the first of the others that is not will be the next.
    var isLeadOpen = false
    var pressed: [TransferID] = []
    /// Decoders and pictures whose canvas is reserved; leftovers are thrown out when it is looked at.
    var openVariants: [OpenVariant] = []
    var leftoversLookedAt = 64
    /// A thread that decodes has nothing to do; the engine says so.
    package var hasFreeWorker = true
    /// Decoders that have all their bytes and wait for room, in the order in which they came.
    var heldDecodes: [OpenVariant] = []
    /// Something has changed that they wait for since they were looked at.
    var hasRoom = false
    var deadlines = DeadlineHeap<DeadlineOwner>()
    /// When total timeouts are over: apart from all others, since nothing is given out before they are looked at.
    var totalTimeouts = DeadlineHeap<SubscriberID>()
    /// Several things have come about together: nothing starts in between.
    var holdsStarts = false
    var failedURLs = FailedURLs()
    /// For the waits between attempts. Of any kind: then the rules are a value that is passed on by its address alone,
    /// and not by some 900 bytes that are copied for each question.
    var random: any RandomNumberGenerator
    var actions = Queue<Action>()

    enum DeadlineOwner: Equatable {
        /// Connecting, idle or draining for too long; looked at when the time has come, since each byte moves it.
        case transfer(TransferID)
        /// The decoder may show the picture so far.
        case partial(TransferID, variant: Int)
        /// The subscriber may see a partial image that was too early for it.
        case heldPartial(SubscriberID)
        /// Of a stay in the background.
        case grace(UInt64)
        /// It is time for the next attempt.
        case rest(TransferID)
        /// It is time to look who is slow.
        case look
    }

    /// `seed`: of the waits between attempts, which are at random.
    package init(_ limits: Limits = Limits(), seed: UInt64 = 0) {
        self.limits = limits
        waiting = WaitingQueue(maximumPerHost: limits.maximumPerHost)
        memory = MemoryRules(budget: limits.memoryBudget)
        random = SmallGenerator(seed: seed)
    }

    package var transferCount: Int { transfers.count }
    package var subscriberCount: Int { subscribers.count }
    package var waitingCount: Int { waiting.count }

    package var hasActions: Bool { !actions.isEmpty }

    /// What is to be done, oldest first; none is left. `spare`: empty; the next ones get its memory.
    package mutating func takeActions(reusing spare: consuming Queue<Action>) -> Queue<Action> {
        guard !actions.isEmpty else { return spare }
        swap(&actions, &spare)
        return spare
    }

    // MARK: Requests

    /// What has become of a request.
    package struct Admission {
        package let subscriber: SubscriberID
        package let transfer: TransferID
        /// The transfer was there before.
        package let hasJoined: Bool
    }

    /// A new subscriber: it joins the transfer of the same bytes, or waits with one of its own (features B3, B4).
    /// `executor`: what it is handed waits there.
    package mutating func submit(
        _ request: consuming TransferRequest, _ options: consuming Boxed<SubscriberOptions>,
        executor: Backlogs.Executor = 0, _ now: Instant
    ) -> Admission {
        // Nor does it join one whose files could be used.
        if let failure = request.manner.refusal { return refuse(request, options, failure, now) }
        if let id = joinable(request, options, now) {
            let continuesInBackground = options.wrappedValue.continuesInBackground
            let subscriber = join(id, options, executor)
            if continuesInBackground { reconsider(id, now) }
            let isWoken = shortenRest(of: subscriber, now) || wakeForTurn(id, now)
            if transfers[id].isUnderWay {
                catchUp(subscriber, now)
            } else if transfers[id].hasStarted {
                start(subscriber, now)
            }
            // One that nobody waited for until now has the place of one that nobody waits for.
            let isAwaited = internalCount > 0 && transfers[id].phase == .waiting
            // It may have opened a decoder, and have a paused transfer go on.
            if background == nil, !isWoken, !isAwaited {
                pressIfFull(now)
                beginLooks(now)
            } else {
                startWaiting(now)
            }
            return Admission(subscriber: subscriber, transfer: id, hasJoined: true)
        }
        if let failure = blacklisted(request, options.wrappedValue, now) {
            return refuse(request, options, failure, now)
        }
        let id = insert(request)
        if transfers[id].isShareable { offer(id) }
        let subscriber = join(id, options, executor)
        if consultsEarly(id) { consult(id, .first) } else { enqueue(id, now) }
        startWaiting(now)
        return Admission(subscriber: subscriber, transfer: id, hasJoined: false)
    }

    mutating func insert(_ request: consuming TransferRequest) -> TransferID {
        TransferID(rawValue: transfers.insert(Transfer(request, freshTransfer)))
    }

    package mutating func cancel(_ subscriber: SubscriberID, _ now: Instant) {
        finishesWithout(subscriber, now)
        end(subscriber, .failure(Failure(.cancelled, "cancelled")), now)
        startWaiting(now)
    }

    /// Every subscriber there is; nothing that waits is started in between.
    package mutating func cancelAll(_ now: Instant) {
        let cancelled = Outcome.failure(Failure(.cancelled, "cancelled"))
        for subscriber in subscribers.keys { end(subscriber, cancelled, now) }
        startWaiting(now)
    }

    package mutating func setPriority(_ subscriber: SubscriberID, _ priority: Priority) {
        guard subscribers.contains(subscriber) else { return }
        let id = transfer(of: subscriber)
        let before = transfers[id].priority
        transfers[id].count(subscribers[subscriber].options.priority, -1)
        transfers[id].count(priority, 1)
        subscribers[subscriber].options.priority = priority
        requeue(id, before)
    }

    // MARK: Questions

    /// The one that has this slot; nil: none, as where it has ended and that has not been told yet.
    package func subscriber(at slot: Int) -> SubscriberID? {
        subscribers.isTaken(slot) ? subscribers.key(of: slot) : nil
    }

    /// It is not over.
    package func contains(_ id: TransferID) -> Bool { transfers.contains(id) }

    /// One that is not over has this slot.
    package func hasTransfer(at slot: Int) -> Bool { transfers.isTaken(slot) }

    package func request(_ id: TransferID) -> TransferRequest? {
        transfers.contains(id) ? transfers[id].request : nil
    }

    package func decodeOptions(_ id: TransferID, variant: Int) -> DecodeOptions? {
        transfers.contains(id) ? transfers[id].variants[variant].options : nil
    }

    package func subscriberCount(_ id: TransferID) -> Int {
        transfers.contains(id) ? transfers[id].subscriberCount : 0
    }

    /// Transfers that have ended at the network and are not over.
    package var decodingCount: Int {
        transfers.count - waiting.count - running.count - parkedCount - restingCount - consultingCount
    }

    package func priority(_ id: TransferID) -> Priority { transfers.contains(id) ? transfers[id].priority : .low }
}
