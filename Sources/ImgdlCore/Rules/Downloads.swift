/// The rules of the game: who shares what, who goes next, who is told what, and how each subscriber ends.
///
/// An event goes in, with the time where it matters; actions come out, to be performed in order. No input, no clock
/// and no lock inside; the engine's thread owns it. What holds, whatever the order of events (Tests/ImgdlCoreTests):
/// - each subscriber gets exactly one `end`, and nothing after it;
/// - never more transfers run than the limit, and none without a subscriber;
/// - `forget` is the last action of each transfer.
///
///     waiting ──start──▶ connecting ──▶ receiving ──▶ decoding ──▶ gone
///        │                   ▲   redirect   │            │
///        └───────────────────┴─── last subscriber leaves ┴──▶ gone
package struct Downloads {
    package internal(set) var limits: Limits
    package internal(set) var isSuspended = false
    package internal(set) var runningCount = 0
    var transfers = SlotTable<Transfer>()
    var subscribers = SlotTable<Subscriber>()
    /// Which transfer a new request for the same bytes joins. One that failed or was cancelled is not here any more.
    var joinable: [TransferRequest: TransferID] = [:]
    var waiting = WaitingQueue()
    var deadlines = DeadlineHeap<DeadlineOwner>()
    var actions: [Action] = []

    enum DeadlineOwner: Equatable {
        /// Connecting, idle or draining for too long; looked at when the time has come, since each byte moves it.
        case transfer(TransferID)
        case totalTimeout(SubscriberID)
        /// The decoder may show the picture so far.
        case partial(TransferID, variant: Int)
        /// The subscriber may see a partial image that was too early for it.
        case heldPartial(SubscriberID)
    }

    package init(_ limits: Limits = Limits()) { self.limits = limits }

    package var transferCount: Int { transfers.count }
    package var subscriberCount: Int { subscribers.count }
    package var waitingCount: Int { waiting.count }

    /// What is to be done, oldest first; empty afterwards.
    package mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Requests

    /// A new subscriber: it joins the transfer of the same bytes, or waits with one of its own (features B3, B4).
    package mutating func submit(
        _ request: TransferRequest, _ options: SubscriberOptions, _ now: Instant
    ) -> (subscriber: SubscriberID, transfer: TransferID) {
        if let id = joinable[request] {
            let subscriber = join(id, options)
            if transfers[id].phase != .waiting { catchUp(subscriber, now) }
            return (subscriber, id)
        }
        let id = TransferID(rawValue: transfers.insert(Transfer(request)))
        if transfers[id].isShareable { joinable[request] = id }
        let subscriber = join(id, options)
        waiting.insert(SlotTable<Transfer>.slot(id), priority: options.priority, order: limits.order)
        startWaiting(now)
        return (subscriber, id)
    }

    package mutating func cancel(_ subscriber: SubscriberID, _ now: Instant) {
        end(subscriber, .failure(Failure(.cancelled, "cancelled")), now)
        startWaiting(now)
    }

    /// Every subscriber there is; nothing that waits is started in between.
    package mutating func cancelAll(_ now: Instant) {
        for subscriber in subscribers.keys { end(subscriber, .failure(Failure(.cancelled, "cancelled")), now) }
        startWaiting(now)
    }

    package mutating func setPriority(_ subscriber: SubscriberID, _ priority: Priority) {
        guard subscribers.contains(subscriber) else { return }
        let id = subscribers[subscriber].transfer
        let before = transfers[id].priority
        transfers[id].count(subscribers[subscriber].options.priority, -1)
        transfers[id].count(priority, 1)
        subscribers[subscriber].options.priority = priority
        requeue(id, before)
    }

    // MARK: The downloader

    package mutating func setMaximumConcurrent(_ maximum: Int, _ now: Instant) {
        limits.maximumConcurrent = maximum
        startWaiting(now)
    }

    package mutating func setOrder(_ order: ExecutionOrder) { limits.order = order }

    package mutating func setSuspended(_ suspended: Bool, _ now: Instant) {
        isSuspended = suspended
        startWaiting(now)
    }

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
    package var decodingCount: Int { transfers.count - waiting.count - runningCount }

    package func priority(_ id: TransferID) -> Priority { transfers.contains(id) ? transfers[id].priority : .low }

    // MARK: The queue

    /// The transfer's subscribers have changed: it moves if its priority has (features K13, I18).
    mutating func requeue(_ id: TransferID, _ before: Priority) {
        let priority = transfers[id].priority
        guard transfers[id].phase == .waiting, priority != before else { return }
        let slot = SlotTable<Transfer>.slot(id)
        waiting.remove(slot)
        waiting.insert(slot, priority: priority, order: limits.order)
    }

    mutating func startWaiting(_ now: Instant) {
        while !isSuspended, runningCount < limits.maximumConcurrent, let slot = waiting.popFirst() {
            let id = TransferID(rawValue: transfers.key(of: slot))
            runningCount += 1
            transfers[id].phase = .connecting
            transfers[id].isObserved = true
            actions.append(.start(id))
            touch(id, now)
            forEachSubscriber(id) { downloads, subscriber in
                downloads.startClock(subscriber, now)
                downloads.emit(subscriber, .started, needs: .started)
            }
        }
    }
}
