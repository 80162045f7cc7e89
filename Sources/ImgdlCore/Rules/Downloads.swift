/// The rules of the game: who shares what, who goes next, who is told what, and how each subscriber ends.
///
/// An event goes in, with the time where it matters; actions come out, to be performed in order. No input, no clock and
/// no lock inside; the engine's thread owns it. What holds, whatever the order of events (Tests/ImgdlCoreTests):
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
    /// By slot, for the queue.
    var waitingIDs: [TransferID?] = []
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
        let id: TransferID
        if let joined = joinable[request] {
            id = joined
        } else {
            id = TransferID(rawValue: transfers.insert(Transfer(request)))
            if transfers[id.rawValue].isShareable { joinable[request] = id }
        }
        let subscriber = join(id, options)
        let transfer = transfers[id.rawValue]
        if transfer.phase == .waiting {
            enqueue(id, joining: transfer.subscriberCount > 1)
            startWaiting(now)
        } else {
            catchUp(subscriber, now)
        }
        return (subscriber, id)
    }

    package mutating func cancel(_ subscriber: SubscriberID, _ now: Instant) {
        guard subscribers.contains(subscriber) else { return }
        end(subscriber, .failure(Failure(.cancelled, "cancelled")), now)
        startWaiting(now)
    }

    /// Every subscriber there is; nothing that waits is started in between.
    package mutating func cancelAll(_ now: Instant) {
        for subscriber in subscribers.keys { end(subscriber, .failure(Failure(.cancelled, "cancelled")), now) }
        startWaiting(now)
    }

    package mutating func setPriority(_ subscriber: SubscriberID, _ priority: Priority) {
        guard let old = subscribers.get(subscriber), old.options.priority != priority else { return }
        subscribers[subscriber].options.priority = priority
        let id = old.transfer
        let before = transfers[id.rawValue].priority
        transfers[id.rawValue].count(old.options.priority, -1)
        transfers[id.rawValue].count(priority, 1)
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

    package func request(_ id: TransferID) -> TransferRequest? { transfers.get(id.rawValue)?.request }

    package func decodeOptions(_ id: TransferID, variant: Int) -> DecodeOptions? {
        transfers.get(id.rawValue)?.variants[variant].options
    }

    package func priority(_ id: TransferID) -> Priority { transfers.get(id.rawValue)?.priority ?? .low }

    // MARK: The queue

    private mutating func enqueue(_ id: TransferID, joining: Bool) {
        let slot = SlotTable<Transfer>.slot(id.rawValue)
        if joining { return }
        while waitingIDs.count <= slot { waitingIDs.append(nil) }
        waitingIDs[slot] = id
        waiting.insert(slot, priority: transfers[id.rawValue].priority, order: limits.order)
    }

    /// The transfer's subscribers have changed: it moves if its priority has (features K13, I18).
    private mutating func requeue(_ id: TransferID, _ before: Priority) {
        let transfer = transfers[id.rawValue]
        guard transfer.phase == .waiting, transfer.subscriberCount > 0, transfer.priority != before else { return }
        let slot = SlotTable<Transfer>.slot(id.rawValue)
        waiting.remove(slot)
        waiting.insert(slot, priority: transfer.priority, order: limits.order)
    }

    mutating func startWaiting(_ now: Instant) {
        while !isSuspended, runningCount < limits.maximumConcurrent, let slot = waiting.popFirst(),
            let id = waitingIDs[slot]
        {
            waitingIDs[slot] = nil
            runningCount += 1
            transfers[id.rawValue].phase = .connecting
            actions.append(.start(id))
            touch(id, now)
            forEachSubscriber(id) { downloads, subscriber in
                downloads.startClock(subscriber, now)
                downloads.emit(subscriber, .started, needs: .started)
            }
        }
    }

    // MARK: Subscribers

    private mutating func join(_ id: TransferID, _ options: SubscriberOptions) -> SubscriberID {
        var variant: Int?
        if let decode = options.decode {
            variant = transfers[id.rawValue].variants.firstIndex { $0.options == decode }
            if variant == nil {
                variant = transfers[id.rawValue].variants.count
                var new = Variant(options: decode, partialInterval: options.partialInterval)
                new.hasNewBytes = transfers[id.rawValue].received > 0
                transfers[id.rawValue].variants.append(new)
            }
        }
        let last = transfers[id.rawValue].lastSubscriber
        let before = transfers[id.rawValue].priority
        var subscriber = Subscriber(options: options, transfer: id, variant: variant)
        subscriber.previous = last
        let new = subscribers.insert(subscriber)
        if last == 0 { transfers[id.rawValue].firstSubscriber = new } else { subscribers[last].next = new }
        transfers[id.rawValue].lastSubscriber = new
        transfers[id.rawValue].subscriberCount += 1
        transfers[id.rawValue].count(options.priority, 1)
        transfers[id.rawValue].bodyLimit = min(transfers[id.rawValue].bodyLimit, options.maximumBodyBytes)
        if options.events.contains(.progress) { transfers[id.rawValue].progressCount += 1 }
        if let variant { transfers[id.rawValue].variants[variant].join(options) }
        if transfers[id.rawValue].subscriberCount > 1 { requeue(id, before) }
        return new
    }

    /// One that joined a running transfer learns at once what it has missed (features K14, B15).
    private mutating func catchUp(_ subscriber: SubscriberID, _ now: Instant) {
        let joined = subscribers[subscriber]
        let transfer = transfers[joined.transfer.rawValue]
        startClock(subscriber, now)
        emit(subscriber, .started, needs: .started)
        guard transfer.hasHead else { return }
        emit(subscriber, .response, needs: .response)
        let limit = joined.options.maximumBodyBytes
        if transfer.received > limit || (transfer.expected > limit && transfer.method != "HEAD") {
            end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: transfer.expected > limit ? transfer.expected : nil)), now)
            return
        }
        if let variant = joined.variant {
            if transfer.variants[variant].hasHeader { emit(subscriber, .header(variant: variant), needs: .header) }
        }
        if transfer.received > 0 { emitProgress(subscriber) }
        if let variant = joined.variant {
            if transfer.variants[variant].hasPartial, transfer.variants[variant].phase != .done {
                offerPartial(subscriber, now)
            }
            if transfer.variants[variant].phase == .done {
                end(subscriber, .success(variant: variant), now)
            } else {
                stepDecoder(joined.transfer, variant, now)
            }
        } else if transfer.phase == .decoding {
            end(subscriber, .success(variant: nil), now)
        }
    }

    /// The clock of a total timeout starts with the transfer, not in the queue (features I32).
    private mutating func startClock(_ subscriber: SubscriberID, _ now: Instant) {
        let timeout = subscribers[subscriber].options.totalTimeout
        guard timeout > 0 else { return }
        remind(now.advanced(byMilliseconds: timeout), .totalTimeout(subscriber))
    }

    mutating func emit(_ subscriber: SubscriberID, _ notice: Notice, needs event: EventMask) {
        if subscribers[subscriber].options.events.contains(event) { actions.append(.emit(subscriber, notice)) }
    }

    /// One that wants the header too learns of it first (DESIGN section 2, promise 2): until then its progress waits.
    mutating func emitProgress(_ subscriber: SubscriberID) {
        let told = subscribers[subscriber]
        let transfer = transfers[told.transfer.rawValue]
        if told.options.events.contains(.header), let variant = told.variant, transfer.variants[variant].owesHeader {
            return
        }
        let isWhole = transfer.phase == .decoding && transfer.failure == nil
        let expected = isWhole ? transfer.received : transfer.expected
        emit(subscriber, .progress(received: transfer.received, expected: expected), needs: .progress)
    }

    /// The one way a subscriber ends. With the last one its transfer ends too.
    mutating func end(_ subscriber: SubscriberID, _ outcome: Outcome, _ now: Instant) {
        guard let ended = subscribers.remove(subscriber) else { return }
        let id = ended.transfer
        var outcome = outcome
        if case .failure(var failure, let salvaged) = outcome, failure.status == 0 {
            failure.status = transfers[id.rawValue].status
            outcome = .failure(failure, salvaged: salvaged)
        }
        let before = transfers[id.rawValue].priority
        if ended.previous == 0 { transfers[id.rawValue].firstSubscriber = ended.next } else { subscribers[ended.previous].next = ended.next }
        if ended.next == 0 { transfers[id.rawValue].lastSubscriber = ended.previous } else { subscribers[ended.next].previous = ended.previous }
        transfers[id.rawValue].subscriberCount -= 1
        transfers[id.rawValue].count(ended.options.priority, -1)
        if ended.options.events.contains(.progress) { transfers[id.rawValue].progressCount -= 1 }
        if let variant = ended.variant { transfers[id.rawValue].variants[variant].leave(ended.options) }
        actions.append(.end(subscriber, outcome))
        if transfers[id.rawValue].subscriberCount == 0 {
            endTransfer(id)
        } else {
            requeue(id, before)
        }
    }

    private mutating func endTransfer(_ id: TransferID) {
        guard let transfer = transfers.remove(id.rawValue) else { return }
        unshare(id, transfer.request)
        switch transfer.phase {
        case .waiting:
            let slot = SlotTable<Transfer>.slot(id.rawValue)
            waiting.remove(slot)
            waitingIDs[slot] = nil
        case .connecting, .receiving:
            runningCount -= 1
            actions.append(.stop(id))
        case .decoding:
            break
        }
        actions.append(.forget(id))
        if transfers.count == 0 { deadlines.removeAll() }
    }

    /// Later requests start anew. Compares identity: the key may already belong to a newer transfer (features D3).
    mutating func unshare(_ id: TransferID, _ request: TransferRequest) {
        if joinable[request] == id { joinable[request] = nil }
    }

    /// In the order in which they came; `body` may end the one it is given.
    mutating func forEachSubscriber(_ id: TransferID, _ body: (inout Downloads, SubscriberID) -> Void) {
        var next = transfers.get(id.rawValue)?.firstSubscriber ?? 0
        while next != 0 {
            let current = next
            next = subscribers[current].next
            body(&self, current)
        }
    }
}
