/// How a subscriber comes, what it is told, and how it goes.
extension Downloads {
    mutating func join(
        _ id: TransferID, _ boxed: consuming Boxed<SubscriberOptions>, _ executor: Backlogs.Executor = 0
    ) -> SubscriberID {
        let before = transfers[id].priority
        let last = transfers[id].lastSubscriber
        let isFirst = last == .none
        let wasProbed = isFirst || needsProbe(id)
        let variant = isFirst ? firstVariant(id, boxed) : boxed.wrappedValue.decode.map { transfers[id].variant($0) }
        if !wasProbed, variant != nil, transfers[id].received > 0 { transfers[id].awaitsLook = true }
        transfers[id].join(boxed, limits)
        if !isFirst {
            if let variant { transfers[id].variants[variant].join(boxed.wrappedValue) }
            requeue(id, before)
        }
        let new = subscribers.insert(
            Subscriber(
                options: boxed, transfer: id, variant: variant, executor: executor, previous: last, freshSubscriber))
        let link = SubscriberLink(new)
        if let slot = last.slot {
            subscribers[subscribers.key(of: slot)].next = link
        } else {
            transfers[id].firstSubscriber = link
        }
        transfers[id].lastSubscriber = link
        updateAttendance(id)
        return new
    }

    /// That of a new transfer's first subscriber, who has joined it: shared with the transfer before, if that has the
    /// same.
    private mutating func firstVariant(_ id: TransferID, _ boxed: Boxed<SubscriberOptions>) -> Int? {
        guard boxed.wrappedValue.decode != nil else { return nil }
        if let usual = usualVariants, usual.options.isSame(as: boxed) {
            transfers[id].variants = usual.variants
            return 0
        }
        var variant = Variant(options: boxed.wrappedValue.decode ?? DecodeOptions(), hasNewBytes: false)
        variant.join(boxed.wrappedValue)
        transfers[id].variants = [variant]
        usualVariants = (boxed, [variant])
        return 0
    }

    /// One that joined a running transfer learns at once what it has missed (features K14, B15).
    mutating func catchUp(_ subscriber: SubscriberID, _ now: Instant) {
        let id = transfer(of: subscriber)
        subscribers[subscriber].since = now
        start(subscriber, now)
        watch(id)
        guard transfers[id].hasHead else { return }
        emit(subscriber, .response, needs: .response)

        if let refusal = refusal(subscriber) { return end(subscriber, .failure(refusal), now) }
        let limit = subscribers[subscriber].options.maximumBodyBytes
        if let announced = transfers[id].announcedBody, announced > limit {
            return end(subscriber, .failure(bodyLimit(id, limit, announced: announced)), now)
        }
        if transfers[id].received > limit {
            return end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: nil)), now)
        }

        guard let variant = subscribers[subscriber].variant else {
            if transfers[id].received > 0 { emitProgress(subscriber) }
            if transfers[id].phase == .decoding { end(subscriber, .success(variant: nil), now) }
            return
        }
        let state = transfers[id].variants[variant]
        if state.hasHeader { emit(subscriber, .header(variant: variant), needs: .header) }
        if transfers[id].received > 0 { emitProgress(subscriber) }
        if state.phase == .done { return end(subscriber, .success(variant: variant), now) }
        if state.hasPartial { offerPartial(subscriber, now) }
        stepDecoder(id, variant, now)
    }

    /// The transfer has left the queue: with its first attempt, not with each. One that joins between two attempts has
    /// started, too: its total timeout does not wait for the next.
    mutating func start(_ subscriber: SubscriberID, _ now: Instant) {
        guard !subscribers[subscriber].hasStarted else { return }
        subscribers[subscriber].hasStarted = true
        emit(subscriber, .started, needs: .started)
        startClock(subscriber, now)
    }

    /// In the order in which they came.
    func forEachSubscriber(of id: TransferID, _ body: (SubscriberID) -> Void) {
        guard transfers.contains(id) else { return }
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            body(subscriber)
            next = self.subscriber(after: subscriber)
        }
    }

    // MARK: Telling

    /// STARTED is told once, RESPONSE and HEADER once for each attempt.
    mutating func emit(_ subscriber: SubscriberID, _ notice: Notice, needs event: EventMask) {
        guard subscribers[subscriber].options.events.contains(event) else { return }
        switch event {
        case .response:
            if subscribers[subscriber].hasResponse { return }
            subscribers[subscriber].hasResponse = true
        case .header:
            if subscribers[subscriber].hasHeader { return }
            subscribers[subscriber].hasHeader = true
        default: break
        }
        actions.append(.emit(subscriber, notice))
    }

    /// One that wants the header too learns of it first (DESIGN section 2, promise 2): its progress waits while the
    /// decoder still reads what may be the header, but not for bytes that have not come.
    mutating func emitProgress(_ subscriber: SubscriberID) {
        guard subscribers[subscriber].options.events.contains(.progress) else { return }
        let id = transfer(of: subscriber)
        if subscribers[subscriber].options.events.contains(.header), let variant = subscribers[subscriber].variant,
            transfers[id].variants[variant].owesHeader
        {
            subscribers[subscriber].isProgressHeld = true
            return
        }
        subscribers[subscriber].isProgressHeld = false
        let received = transfers[id].received
        let expected = transfers[id].hasWholeBody ? received : transfers[id].expected
        guard isProgress(subscriber, received, expected) else { return }
        subscribers[subscriber].toldReceived = received
        subscribers[subscriber].toldExpected = expected
        emit(subscriber, .progress(received: received, expected: expected), needs: .progress)
    }

    /// The numbers never go back, and come no closer than the interval says, but for the last ones (features C3).
    private func isProgress(_ subscriber: SubscriberID, _ received: Int64, _ expected: Int64) -> Bool {
        let told = subscribers[subscriber].toldReceived
        if received <= told { return received == told && expected != subscribers[subscriber].toldExpected }
        return received == expected || limits.hasPassed(received - max(told, 0), of: expected)
    }

    /// In the order in which they came; `body` may end the one it is given.
    mutating func forEachSubscriber(_ id: TransferID, _ body: (inout Downloads, SubscriberID) -> Void) {
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            next = self.subscriber(after: subscriber)
            body(&self, subscriber)
        }
    }

    // MARK: Links

    func transfer(of subscriber: SubscriberID) -> TransferID {
        transferID(at: Int(subscribers[subscriber].transferSlot))
    }

    func transferID(at slot: Int) -> TransferID { TransferID(rawValue: transfers.key(of: slot)) }

    func firstSubscriber(of id: TransferID) -> SubscriberID? { subscriber(transfers[id].firstSubscriber) }

    func subscriber(after subscriber: SubscriberID) -> SubscriberID? { self.subscriber(subscribers[subscriber].next) }

    private func subscriber(_ link: SubscriberLink) -> SubscriberID? { link.slot.map { subscribers.key(of: $0) } }

    /// For as long as nothing has left the queue there are no limits to look at.
    mutating func findLowestLimits(_ id: TransferID) {
        var lowest = LowestLimits.none
        forEachSubscriber(of: id) { lowest.include(subscribers[$0].$options, limits) }
        transfers[id].lowest = lowest
        transfers[id].knowsLowest = true
    }

    // MARK: Ending

    /// The one way a subscriber ends; does nothing for one that has. With the last one its transfer ends too.
    mutating func end(_ subscriber: SubscriberID, _ outcome: Outcome, _ now: Instant) {
        guard let ended = subscribers.remove(subscriber) else { return }
        let id = transferID(at: Int(ended.transferSlot))
        if ended.isInternal {
            internalCount -= 1
            transfers[id].internalCount -= 1
        }
        var outcome = outcome
        let status = transfers[id].status
        if status != 0, case .failure(var failure, let salvaged) = outcome, failure.status == 0 {
            failure.status = status
            outcome = .failure(failure, salvaged: salvaged)
        }
        if case .failure(let failure, _) = outcome, transfers[id].subscriberCount == 1 { observeStop(id, failure) }
        // A request may still have what is stored, whatever came of its validation.
        if !ended.isInternal { remember(id, ended.$options, outcome, now) }
        actions.append(.end(subscriber, outcome))

        let before = transfers[id].priority
        if let previous = self.subscriber(ended.previous) {
            subscribers[previous].next = ended.next
        } else {
            transfers[id].firstSubscriber = ended.next
        }
        if let next = self.subscriber(ended.next) {
            subscribers[next].previous = ended.previous
        } else {
            transfers[id].lastSubscriber = ended.previous
        }
        transfers[id].leave(ended.$options)
        hasRoom = true
        guard transfers[id].firstSubscriber != .none else { return endTransfer(id) }
        if let variant = ended.variant {
            transfers[id].variants[variant].leave(ended.options)
            updateHeld(id)
        }
        requeue(id, before)
        updateAttendance(id)
        wakeForTurn(id, now)
        if ended.options.continuesInBackground { reconsider(id, now) }
    }

    /// The final head is there, as the server sent it or a hook has made it.
    mutating func observeAnswer(_ id: TransferID) {
        guard hasObserver, transfers[id].isObserved else { return }
        actions.append(.observe(id, .answered, subscribers: transfers[id].subscriberCount))
    }

    /// Once for each transfer that was started.
    mutating func observeStop(_ id: TransferID, _ failure: Failure?) {
        guard transfers[id].isObserved else { return }
        transfers[id].isObserved = false
        actions.append(.observe(id, .stopped(failure?.code ?? .ok), subscribers: transfers[id].subscriberCount))
    }

    private mutating func endTransfer(_ id: TransferID) {
        unshare(id)
        switch transfers[id].phase {
        case .waiting:
            waiting.remove(SlotTable<Transfer>.slot(id))
        case .asking, .consulting, .connecting, .receiving:
            uncountConsultation(id)
            releasePlace(id)
            if hasExchange(id) { actions.append(.stop(id)) }
        case .resting:
            restingCount -= 1
        case .transforming, .decoding:
            break
        }
        forgetBody(id)
        forgetKept(id)
        setPauses(id, [])
        transfers.remove(id.rawValue)
        actions.append(.forget(id))
        guard transfers.count == 0 else { return }
        forgetDeadlines()
        remindOfGrace()
    }

    /// Which transfer of the same bytes a request with these options joins. One that rests before its next attempt it joins
    /// only where it would wait so long itself.
    func joinable(
        _ request: TransferRequest, _ options: borrowing Boxed<SubscriberOptions>, _ now: Instant
    ) -> TransferID? {
        var resting: Int?
        let slot = shared.find(request.hash) { slot in
            let id = transferID(at: slot)
            guard transfers[id].request == request else { return false }
            guard transfers[id].phase == .resting, transfers[id].restsUntil != nil else { return true }
            let own = ownRest(id, options.wrappedValue.retry, now)
            if RetryRules.waits(own.milliseconds(since: now), options.wrappedValue) { resting = slot }
            return false
        }
        return (slot ?? resting).map { transferID(at: $0) }
    }

    /// Whether later requests for the same bytes may join a transfer.
    func isShared(_ request: TransferRequest) -> Bool {
        shared.find(request.hash) { transfers[transferID(at: $0)].request == request } != nil
    }

    /// The transfers that a request for these bytes may join.
    func shared(by request: TransferRequest) -> [TransferID] {
        var all: [TransferID] = []
        _ = shared.find(request.hash) { slot in
            let id = transferID(at: slot)
            if transfers[id].request == request { all.append(id) }
            return false
        }
        return all
    }

    /// There must be none of the same bytes that can be joined yet, but for one that rests.
    mutating func offer(_ id: TransferID) {
        if shared.isFull { growShared() }
        shared.insert(SlotTable<Transfer>.slot(id), transfers[id].request.hash)
    }

    private mutating func growShared() {
        var all = SharedTransfers()
        swap(&all, &shared)
        all.grow { transfers[transferID(at: $0)].request.hash }
        swap(&all, &shared)
    }

    /// Later requests for the same bytes may join it, unless they have another one: so there are two of them at most.
    mutating func share(_ id: TransferID) {
        if transfers[id].isShareable, !isShared(transfers[id].request) { offer(id) }
    }

    /// Later requests start anew. A newer transfer of the same request, which they may join, stays (features D3).
    mutating func unshare(_ id: TransferID) {
        shared.remove(SlotTable<Transfer>.slot(id), transfers[id].request.hash)
    }
}
