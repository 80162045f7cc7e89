/// What the transport reports, and what follows from it. Reports of transfers that are over are ignored.
extension Downloads {
    package mutating func connected(_ id: TransferID, _ now: Instant) {
        guard isRunning(id), transfers[id].phase == .connecting else { return }
        transfers[id].phase = .receiving
        touch(id, now)
    }

    /// A slow upload is not idle.
    package mutating func sent(_ id: TransferID, _ now: Instant) {
        guard isRunning(id), transfers[id].phase == .receiving, !transfers[id].isDraining else { return }
        touch(id, now)
    }

    /// `location`: the Location field resolved, or why it could not be; nil when there is none.
    package mutating func headReceived(
        _ id: TransferID, _ head: ResponseHead, location: Result<ParsedURL, Failure>?, _ now: Instant
    ) -> BodyDisposition {
        guard isRunning(id) else { return .discard }
        transfers[id].phase = .receiving
        transfers[id].status = head.status
        transfers[id].httpVersion = head.httpVersion
        switch redirect(id, head.status, location) {
        case .none: break
        case .follow(let redirect): transfers[id].redirect = redirect
        case .refuse(let failure): condemn(id, failure)
        }
        if transfers[id].redirect == nil {
            actions.append(.observe(id, .answered, subscribers: transfers[id].subscriberCount))
        }
        if !transfers[id].isDraining { answered(id, head, now) }
        // A drain has less time than a body.
        if transfers.contains(id) { touch(id, now) }
        press(id, now)
        startWaiting(now)
        return transfers.contains(id) && !transfers[id].isDraining ? .receive : .discard
    }

    /// Whether its bytes are a subscriber's, and not the rest of a redirect's or a refused response's.
    package func takesBody(_ id: TransferID) -> Bool { isRunning(id) && !transfers[id].isDraining }

    /// `count` more bytes; they are in the engine's hands already.
    package mutating func bodyReceived(_ id: TransferID, _ count: Int, _ now: Instant) {
        // A drip of bytes does not prolong a drain.
        guard isRunning(id), !transfers[id].isDraining else { return }
        touch(id, now)
        transfers[id].received += Int64(count)
        countBody(id, count, now)
        if transfers[id].received > transfers[id].bodyLimit {
            enforceBodyLimits(id, now)
            startWaiting(now)
            guard transfers.contains(id) else { return }
        }
        for variant in transfers[id].variants.indices { transfers[id].variants[variant].hasNewBytes = true }
        if transfers[id].progressCount > 0 { forEachSubscriber(id) { $0.emitProgress($1) } }
        stepDecoders(id, now)
        relieve(now)
    }

    package mutating func finished(_ id: TransferID, _ now: Instant) {
        guard isRunning(id) else { return }
        if let redirect = transfers[id].redirect { return follow(id, redirect, now) }
        if let doom = transfers[id].doom { return failed(id, doom, now) }
        leaveTransport(id, now)
        transfers[id].phase = .decoding
        observeStop(id, nil)
        if transfers[id].received != transfers[id].expected || transfers[id].received == 0 {
            forEachSubscriber(id) { $0.emitProgress($1) }
        }
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].variant == nil {
                downloads.end(subscriber, .success(variant: nil), now)
            }
        }
        stepDecoders(id, now)
        startWaiting(now)
    }

    package mutating func failed(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        guard isRunning(id) else { return }
        // What the body of a redirect or of an error page comes to does not matter.
        if let redirect = transfers[id].redirect { return follow(id, redirect, now) }
        let failure = transfers[id].doom ?? failure
        unshare(id)
        leaveTransport(id, now)
        transfers[id].phase = .decoding
        transfers[id].failure = failure
        observeStop(id, failure)
        let hasPixels = transfers[id].received > 0
        forEachSubscriber(id) { downloads, subscriber in
            let isSalvaging = downloads.subscribers[subscriber].options.salvages
                && downloads.subscribers[subscriber].variant != nil && hasPixels
            if !isSalvaging { downloads.end(subscriber, .failure(failure), now) }
        }
        stepDecoders(id, now)
        startWaiting(now)
    }

    private func isRunning(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].isRunning }

    // MARK: Redirects

    private func redirect(
        _ id: TransferID, _ status: Int32, _ location: Result<ParsedURL, Failure>?
    ) -> RedirectRules.Decision {
        guard RedirectRules.isRedirect(status), transfers[id].request.followsRedirects else { return .none }
        return RedirectRules.decide(
            status: status, location: location, hops: transfers[id].hops, method: transfers[id].method,
            sendsBody: transfers[id].sendsBody, maximum: limits.maximumRedirects,
            allowsDowngrade: transfers[id].request.allowsDowngrade)
    }

    private mutating func follow(_ id: TransferID, _ redirect: Redirect, _ now: Instant) {
        transfers[id].laterHops.append(redirect.url)
        transfers[id].method = redirect.method
        transfers[id].sendsBody = redirect.sendsBody
        transfers[id].redirect = nil
        transfers[id].phase = .connecting
        actions.append(.follow(id, redirect))
        hopBegan(id, now)
        touch(id, now)
    }

    // MARK: Refusals

    /// The final response is there: who does not want it, or not so much of it, ends.
    private mutating func answered(_ id: TransferID, _ head: ResponseHead, _ now: Instant) {
        transfers[id].hasHead = true
        transfers[id].expected = ResponseRules.expectedBytes(head)
        forEachSubscriber(id) { $0.emit($1, .response, needs: .response) }
        if let failure = ResponseRules.failure(status: head.status, request: transfers[id].request) {
            refuseStatus(id, failure, now)
            if transfers[id].isDraining { return }
        }
        guard let announced = transfers[id].announcedBody, announced > transfers[id].bodyLimit else { return }
        forEachSubscriber(id) { downloads, subscriber in
            let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
            if announced > limit {
                downloads.end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: announced)), now)
            }
        }
    }

    /// The body of such a response is never decoded for those who did not ask for it (features T10).
    private mutating func refuseStatus(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        let accepts = { (downloads: borrowing Downloads, subscriber: SubscriberID) in
            ResponseRules.accepts(
                failure.status, downloads.subscribers[subscriber].options, request: downloads.transfers[id].request)
        }
        var isAccepted = false
        forEachSubscriber(id) { if accepts($0, $1) { isAccepted = true } }
        guard isAccepted else { return condemn(id, failure) }
        unshare(id)
        forEachSubscriber(id) { downloads, subscriber in
            if !accepts(downloads, subscriber) { downloads.end(subscriber, .failure(failure), now) }
        }
    }

    /// It will end in this failure, once a short rest of the body has been read: the connection can be used again.
    /// Later requests do not join it.
    private mutating func condemn(_ id: TransferID, _ failure: Failure) {
        transfers[id].doom = failure
        unshare(id)
    }

    /// Who set a limit that has been passed ends; the lowest limit of the others is the next to look at.
    private mutating func enforceBodyLimits(_ id: TransferID, _ now: Instant) {
        let received = transfers[id].received
        transfers[id].bodyLimit = .max
        forEachSubscriber(id) { downloads, subscriber in
            let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
            if received > limit {
                downloads.end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: nil)), now)
            } else {
                downloads.transfers[id].bodyLimit = min(downloads.transfers[id].bodyLimit, limit)
            }
        }
    }
}
