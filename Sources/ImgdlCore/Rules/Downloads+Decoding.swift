/// When a decoder does what: begun early when somebody wants to see something or the body is large, at most one step in
/// flight, partial images paced by time, the newest bytes winning (features B6, R26, R27).
extension Downloads {
    /// A worker has done the step. `hasHeader` and `hasPartial`: what the step brought.
    package mutating func decodeStepped(
        _ id: TransferID, variant: Int, _ verdict: DecodeVerdict, hasHeader: Bool, hasPartial: Bool, _ now: Instant
    ) {
        guard let transfer = transfers.get(id.rawValue), variant < transfer.variants.count else { return }
        if hasHeader, !transfer.variants[variant].hasHeader {
            transfers[id.rawValue].variants[variant].hasHeader = true
            forEachSubscriber(of: variant, id) { downloads, subscriber in
                guard downloads.subscribers[subscriber].options.events.contains(.header) else { return }
                downloads.emit(subscriber, .header(variant: variant), needs: .header)
                if transfer.received > 0 { downloads.emitProgress(subscriber) }
            }
        }
        if hasPartial {
            transfers[id.rawValue].variants[variant].hasPartial = true
            transfers[id.rawValue].variants[variant].lastPartial = now
            forEachSubscriber(of: variant, id) { $0.offerPartial($1, now) }
        }
        switch verdict {
        case .fed:
            if transfer.variants[variant].phase == .busy { transfers[id.rawValue].variants[variant].phase = .open }
            stepDecoder(id, variant, now)
        case .finished:
            endVariant(id, variant, transfer.failure.map { .failure($0, salvaged: variant) } ?? .success(variant: variant), now)
        case .failed(let failure):
            endVariant(id, variant, .failure(transfer.failure ?? failure, salvaged: variant), now)
        }
    }

    /// Has the decoder do what is due, unless a worker has it.
    mutating func stepDecoder(_ id: TransferID, _ variant: Int, _ now: Instant) {
        guard let transfer = transfers.get(id.rawValue) else { return }
        var state = transfer.variants[variant]
        guard state.phase == .unopened || state.phase == .open, state.subscriberCount > 0 else { return }

        if transfer.phase == .decoding {
            state.phase = .finishing
            actions.append(.decode(id, variant: variant, transfer.failure == nil ? .finish : .salvage))
        } else {
            let isEarly = state.phase == .open || state.wantsEarly || transfer.received >= limits.earlyDecodeBytes
            guard isEarly, state.hasNewBytes || state.hasUnshown else { return }
            let shows = state.mayShow(now)
            if state.hasNewBytes || shows {
                state.phase = .busy
                state.hasNewBytes = false
                state.hasUnshown = !shows
                actions.append(.decode(id, variant: variant, .feed(showing: shows)))
            } else if state.partialCount > 0, !state.isTimerSet, let last = state.lastPartial {
                state.isTimerSet = true
                remind(last.advanced(byMilliseconds: state.partialInterval), .partial(id, variant: variant))
            }
        }
        transfers[id.rawValue].variants[variant] = state
    }

    /// Each at the pace it asked for: the decoder goes at that of the fastest. Too early, the newest waits for its time.
    mutating func offerPartial(_ subscriber: SubscriberID, _ now: Instant) {
        let offered = subscribers[subscriber]
        guard offered.options.events.contains(.partial), let variant = offered.variant else { return }
        let due = offered.lastPartial?.advanced(byMilliseconds: offered.options.partialInterval) ?? now
        if due <= now {
            subscribers[subscriber].lastPartial = now
            subscribers[subscriber].isPartialHeld = false
            actions.append(.emit(subscriber, .partial(variant: variant)))
        } else {
            subscribers[subscriber].isPartialHeld = true
            guard !offered.isPartialTimerSet else { return }
            subscribers[subscriber].isPartialTimerSet = true
            remind(due, .heldPartial(subscriber))
        }
    }

    mutating func showHeldPartial(_ subscriber: SubscriberID, _ now: Instant) {
        guard subscribers.contains(subscriber) else { return }
        subscribers[subscriber].isPartialTimerSet = false
        if subscribers[subscriber].isPartialHeld { offerPartial(subscriber, now) }
    }

    private mutating func endVariant(_ id: TransferID, _ variant: Int, _ outcome: Outcome, _ now: Instant) {
        let transfer = transfers[id.rawValue]
        transfers[id.rawValue].variants[variant].phase = .done
        if !transfer.variants[variant].hasHeader, transfer.phase == .decoding, transfer.failure == nil {
            forEachSubscriber(of: variant, id) { downloads, subscriber in
                if downloads.subscribers[subscriber].options.events.contains(.header) {
                    downloads.emitProgress(subscriber)
                }
            }
        }
        // Other bytes may make a better picture.
        if case .failure = outcome { unshare(id, transfer.request) }
        forEachSubscriber(of: variant, id) { downloads, subscriber in
            var outcome = outcome
            if case .failure(let failure, _) = outcome, !downloads.subscribers[subscriber].options.salvages {
                outcome = .failure(failure)
            }
            downloads.end(subscriber, outcome, now)
        }
        startWaiting(now)
    }

    private mutating func forEachSubscriber(
        of variant: Int, _ id: TransferID, _ body: (inout Downloads, SubscriberID) -> Void
    ) {
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].variant == variant { body(&downloads, subscriber) }
        }
    }
}
