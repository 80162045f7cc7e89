/// When a decoder does what: begun early when somebody wants to see something or the body is large, at most one step
/// in flight, partial images paced by time, the newest bytes winning (features B6, R26, R27).
extension Downloads {
    /// A worker has done the step. `hasHeader` and `hasPartial`: what the step brought. `demand`: what the decoder has said
    /// that it needs, in bytes; 0: no more than its header let expect. `beside`: bytes that its picture keeps besides.
    package mutating func decodeStepped(
        _ id: TransferID, variant: Int, _ verdict: DecodeVerdict, hasHeader: Bool, hasPartial: Bool,
        demand: Int64 = 0, beside: Int64 = 0, _ now: Instant
    ) {
        guard transfers.contains(id), variant < transfers[id].variants.count else { return }
        reserveMore(id, variant, upTo: demand, beside: beside)
        let hasEnded = endOverdue(now)
        guard transfers.contains(id) else { return startWaiting(now) }
        if hasHeader, !transfers[id].variants[variant].hasHeader {
            transfers[id].variants[variant].hasHeader = true
            forEachSubscriber(of: variant, id) { $0.emit($1, .header(variant: variant), needs: .header) }
            releaseProgress(of: variant, id)
        }
        if hasPartial {
            transfers[id].variants[variant].hasPartial = true
            transfers[id].variants[variant].lastPartial = now
            forEachSubscriber(of: variant, id) { $0.offerPartial($1, now) }
        }
        let failure = transfers[id].failure
        switch verdict {
        case .fed:
            if transfers[id].variants[variant].phase == .busy { transfers[id].variants[variant].phase = .open }
            if !transfers[id].variants[variant].owesHeader { releaseProgress(of: variant, id) }
            stepDecoder(id, variant, now)
            if hasEnded { startWaiting(now) }
        case .finished:
            endVariant(id, variant, failure.map { .failure($0, salvaged: variant) } ?? .success(variant: variant), now)
        case .failed(let own):
            endVariant(id, variant, .failure(failure ?? own, salvaged: variant), now)
        }
    }

    mutating func stepDecoders(_ id: TransferID, _ now: Instant) {
        guard transfers.contains(id) else { return }
        for variant in transfers[id].variants.indices { stepDecoder(id, variant, now) }
    }

    /// Has the decoder do what is due, unless a worker has it.
    mutating func stepDecoder(_ id: TransferID, _ variant: Int, _ now: Instant) {
        let state = transfers[id].variants[variant]
        guard state.isIdle, state.subscriberCount > 0, transfers[id].phase != .transforming, !transfers[id].awaitsLook
        else { return }
        if transfers[id].phase == .decoding {
            guard state.phase == .open || reserveForEnd(id, variant) else { return }
            transfers[id].variants[variant].phase = .finishing
            actions.append(.decode(id, variant: variant, transfers[id].hasWholeBody ? .finish : .salvage))
            return
        }
        // Where nobody watches, what is begun early only uses time that is to spare: decoders that have to wait for a
        // thread would hold their canvases for nothing.
        let hasSpareTime = hasFreeWorker && transfers[id].received >= limits.earlyDecodeBytes
        let isEarly = state.phase == .open || state.wantsEarly || hasSpareTime
        guard isEarly, state.hasNewBytes || state.hasUnshown else { return }
        // Not what an earlier attempt has shown, and not more often than progress is told.
        let unshown = transfers[id].received - state.shownBytes
        let isEnough = unshown > 0 && limits.hasPassed(unshown, of: transfers[id].expected)
        let shows = isEnough && state.mayShow(now)
        if state.hasNewBytes || shows {
            guard state.phase == .open || reserveEarly(id, variant) else { return }
            transfers[id].variants[variant].phase = .busy
            transfers[id].variants[variant].hasNewBytes = false
            transfers[id].variants[variant].hasUnshown = !shows
            if shows { transfers[id].variants[variant].shownBytes = transfers[id].received }
            actions.append(.decode(id, variant: variant, .feed(showing: shows)))
        } else if isEnough, state.partialCount > 0, !state.isTimerSet, let next = state.nextPartial {
            transfers[id].variants[variant].isTimerSet = true
            remind(next, .partial(id, variant: variant))
        }
    }

    // MARK: Telling

    mutating func releaseProgress(of variant: Int, _ id: TransferID) {
        guard transfers[id].progressCount > 0 else { return }
        forEachSubscriber(of: variant, id) { downloads, subscriber in
            if downloads.subscribers[subscriber].isProgressHeld { downloads.emitProgress(subscriber) }
        }
    }

    /// Each at its own pace; the decoder goes at that of the fastest. Too early, the newest waits for its time.
    mutating func offerPartial(_ subscriber: SubscriberID, _ now: Instant) {
        guard subscribers[subscriber].options.events.contains(.partial), let variant = subscribers[subscriber].variant
        else { return }
        let due = subscribers[subscriber].partialDue ?? now
        if due <= now {
            subscribers[subscriber].lastPartial = now
            subscribers[subscriber].isPartialHeld = false
            actions.append(.emit(subscriber, .partial(variant: variant)))
        } else {
            subscribers[subscriber].isPartialHeld = true
            guard !subscribers[subscriber].isPartialTimerSet else { return }
            subscribers[subscriber].isPartialTimerSet = true
            remind(due, .heldPartial(subscriber))
        }
    }

    /// Whether anybody takes what pixels there are of a picture that failed.
    package func salvages(_ id: TransferID, variant: Int) -> Bool {
        var isAsked = false
        forEachSubscriber(of: id) {
            if subscribers[$0].variant == variant, subscribers[$0].options.salvages { isAsked = true }
        }
        return isAsked
    }

    private mutating func forEachSubscriber(
        of variant: Int, _ id: TransferID, _ body: (inout Downloads, SubscriberID) -> Void
    ) {
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].variant == variant { body(&downloads, subscriber) }
        }
    }

    // MARK: Ending

    private mutating func endVariant(_ id: TransferID, _ variant: Int, _ outcome: Outcome, _ now: Instant) {
        transfers[id].variants[variant].phase = .done
        hasRoom = true
        // The final progress comes also to who waited for a header that there is none of.
        if transfers[id].hasWholeBody { releaseProgress(of: variant, id) }
        // Other bytes may make a better picture.
        if case .failure = outcome { unshare(id) }
        forEachSubscriber(of: variant, id) { downloads, subscriber in
            var outcome = outcome
            if case .failure(let failure, _) = outcome, !downloads.subscribers[subscriber].options.salvages {
                outcome = .failure(failure)
            }
            downloads.end(subscriber, outcome, now)
        }
        if transfers.contains(id) { updateHeld(id) }
        startWaiting(now)
    }
}
