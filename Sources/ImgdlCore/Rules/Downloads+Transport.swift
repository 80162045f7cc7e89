/// What the transport reports, and what follows from it. Reports of transfers that are over are ignored.
extension Downloads {
    package mutating func connected(_ id: TransferID, _ now: Instant) {
        guard transfers.get(id.rawValue)?.phase == .connecting else { return }
        transfers[id.rawValue].phase = .receiving
        touch(id, now)
    }

    /// `location`: the Location field resolved, or why it could not be; nil when there is none.
    package mutating func headReceived(
        _ id: TransferID, _ head: ResponseHead, location: Result<ParsedURL, Failure>?, _ now: Instant
    ) -> BodyDisposition {
        guard let transfer = transfers.get(id.rawValue), transfer.isRunning else { return .discard }
        transfers[id.rawValue].phase = .receiving
        transfers[id.rawValue].status = head.status
        touch(id, now)

        if transfer.request.followsRedirects {
            let decision = RedirectRules.decide(
                status: head.status, location: location, hops: transfer.hops.isEmpty ? [transfer.request.url] : transfer.hops,
                method: transfer.method, sendsBody: transfer.sendsBody, maximum: limits.maximumRedirects,
                allowsDowngrade: transfer.request.allowsDowngrade)
            switch decision {
            case .none: break
            case .follow(let redirect):
                transfers[id.rawValue].redirect = redirect
                touch(id, now)
                return .discard
            case .refuse(let failure):
                return condemn(id, failure, now)
            }
        }

        transfers[id.rawValue].hasHead = true
        transfers[id.rawValue].expected = ResponseRules.expectedBytes(head)
        forEachSubscriber(id) { $0.emit($1, .response, needs: .response) }
        if let failure = ResponseRules.failure(status: head.status, request: transfer.request) {
            let disposition = refuseStatus(id, failure, now)
            if disposition == .discard { return .discard }
        }
        let expected = transfers.get(id.rawValue)?.expected ?? -1
        if transfer.method != "HEAD" {
            forEachSubscriber(id) { downloads, subscriber in
                let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
                if expected > limit {
                    downloads.end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: expected)), now)
                }
            }
        }
        startWaiting(now)
        return transfers.contains(id.rawValue) ? .receive : .discard
    }

    /// `count` more bytes; they are in the engine's hands already.
    package mutating func bodyReceived(_ id: TransferID, _ count: Int, _ now: Instant) {
        guard let transfer = transfers.get(id.rawValue), transfer.isRunning else { return }
        // A drip of bytes does not prolong a drain.
        guard !transfer.isDraining else { return }
        touch(id, now)
        let received = transfer.received + Int64(count)
        transfers[id.rawValue].received = received
        if received > transfer.bodyLimit {
            forEachSubscriber(id) { downloads, subscriber in
                let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
                if received > limit {
                    downloads.end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: nil)), now)
                }
            }
            guard transfers.contains(id.rawValue) else { return startWaiting(now) }
        }
        if transfer.progressCount > 0 {
            forEachSubscriber(id) {
                $0.emit($1, .progress(received: received, expected: transfer.expected), needs: .progress)
            }
        }
        for variant in transfer.variants.indices {
            transfers[id.rawValue].variants[variant].hasNewBytes = true
            stepDecoder(id, variant, now)
        }
    }

    package mutating func finished(_ id: TransferID, _ now: Instant) {
        guard let transfer = transfers.get(id.rawValue), transfer.isRunning else { return }
        if let redirect = transfer.redirect { return follow(id, redirect, now) }
        if let doom = transfer.doom { return failed(id, doom, now) }
        releaseSlot(id)
        transfers[id.rawValue].phase = .decoding
        if transfer.received != transfer.expected || transfer.received == 0 {
            forEachSubscriber(id) {
                $0.emit($1, .progress(received: transfer.received, expected: transfer.received), needs: .progress)
            }
        }
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].variant == nil {
                downloads.end(subscriber, .success(variant: nil), now)
            }
        }
        for variant in transfer.variants.indices { stepDecoder(id, variant, now) }
        startWaiting(now)
    }

    package mutating func failed(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        guard let transfer = transfers.get(id.rawValue), transfer.isRunning else { return }
        // What the body of a redirect or of an error page comes to does not matter.
        if let redirect = transfer.redirect { return follow(id, redirect, now) }
        var failure = transfer.doom ?? failure
        if failure.status == 0 { failure.status = transfer.status }
        unshare(id, transfer.request)
        releaseSlot(id)
        transfers[id.rawValue].phase = .decoding
        transfers[id.rawValue].failure = failure
        let hasPixels = transfer.received > 0 && transfer.doom == nil
        forEachSubscriber(id) { downloads, subscriber in
            let options = downloads.subscribers[subscriber].options
            if !(hasPixels && options.salvages && options.decode != nil) {
                downloads.end(subscriber, .failure(failure), now)
            }
        }
        for variant in transfer.variants.indices { stepDecoder(id, variant, now) }
        startWaiting(now)
    }

    /// Something was heard of it: its time begins anew.
    mutating func touch(_ id: TransferID, _ now: Instant) {
        transfers[id.rawValue].lastActivity = now
        guard let deadline = transfers[id.rawValue].deadline(limits) else { return }
        earliestRunningDeadline = earliestRunningDeadline.map { min($0, deadline) } ?? deadline
    }

    private mutating func follow(_ id: TransferID, _ redirect: Redirect, _ now: Instant) {
        let transfer = transfers[id.rawValue]
        transfers[id.rawValue].hops = (transfer.hops.isEmpty ? [transfer.request.url] : transfer.hops) + [redirect.url]
        transfers[id.rawValue].method = redirect.method
        transfers[id.rawValue].sendsBody = redirect.sendsBody
        transfers[id.rawValue].redirect = nil
        transfers[id.rawValue].phase = .connecting
        actions.append(.follow(id, redirect))
        touch(id, now)
    }

    /// It will end in this failure, once a short rest of the body has been read: the connection can be used again.
    /// Later requests do not join it.
    private mutating func condemn(_ id: TransferID, _ failure: Failure, _ now: Instant) -> BodyDisposition {
        transfers[id.rawValue].doom = failure
        touch(id, now)
        unshare(id, transfers[id.rawValue].request)
        return .discard
    }

    /// The body of such a response is never decoded for those who did not ask for it (features T10).
    private mutating func refuseStatus(_ id: TransferID, _ failure: Failure, _ now: Instant) -> BodyDisposition {
        var accepting = 0
        forEachSubscriber(id) { if $0.subscribers[$1].options.acceptsAnyStatus { accepting += 1 } }
        guard accepting > 0 else { return condemn(id, failure, now) }
        unshare(id, transfers[id.rawValue].request)
        forEachSubscriber(id) { downloads, subscriber in
            if !downloads.subscribers[subscriber].options.acceptsAnyStatus {
                downloads.end(subscriber, .failure(failure), now)
            }
        }
        return .receive
    }
}
