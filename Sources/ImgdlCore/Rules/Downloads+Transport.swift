/// What the transport reports, and what follows from it. Reports of transfers that are over are ignored.
extension Downloads {
    package mutating func connected(_ id: TransferID, _ now: Instant) {
        guard isAtTransport(id), transfers[id].phase == .connecting else { return }
        transfers[id].phase = .receiving
        transfers[id].sent = now
        touch(id, now)
    }

    /// A pause had kept it from being sent: it makes its connection from now on, in all the time that there is for one.
    package mutating func beginsAnew(_ id: TransferID, _ now: Instant) {
        guard isAtTransport(id), [.connecting, .receiving].contains(transfers[id].phase), !transfers[id].hasHead else {
            return
        }
        transfers[id].phase = .connecting
        touch(id, now)
    }

    /// A slow upload is not idle, nor is a slow body that has to be decoded.
    package mutating func advanced(_ id: TransferID, _ now: Instant) {
        guard isAtTransport(id), transfers[id].phase == .receiving, !transfers[id].isDraining else { return }
        touch(id, now)
    }

    /// `location`: the Location field resolved, or why it could not be; nil when there is none. `retryAfter`: the field of
    /// that name in milliseconds from now, nil when there is none. A hook may have to be asked: what becomes of the body
    /// is then known later.
    package mutating func headReceived(
        _ id: TransferID, _ head: ResponseHead, location: Result<ParsedURL, Failure>?, retryAfter: Int64? = nil,
        _ now: Instant
    ) -> BodyDisposition {
        guard isAtTransport(id) else { return .discard }
        transfers[id].phase = .receiving
        transfers[id].status = head.status
        transfers[id].outcome = head.outcome
        transfers[id].httpVersion = head.httpVersion
        transfers[id].answered = now
        noteCookie(id, head)
        endOverdue(now)
        guard transfers.contains(id) else {
            startWaiting(now)
            return .discard
        }
        switch redirect(id, head.status, location) {
        case .none:
            if !asksAbout(id, head, retryAfter, challenge: true, now) {
                observeAnswer(id)
                judge(id, head, retryAfter, now)
            }
        case .follow(let redirect):
            transfers[id].redirect = redirect
            if transfers[id].cache.isExchanging { actions.append(.store(id)) }
        case .refuse(let failure):
            observeAnswer(id)
            condemn(id, failure)
        }
        // A drain has less time than a body.
        if transfers.contains(id) { touch(id, now) }
        press(id, now)
        startWaiting(now)
        return disposition(id)
    }

    /// What the transport is to do with the body, as far as is known.
    package func disposition(_ id: TransferID) -> BodyDisposition {
        transfers.contains(id) && !transfers[id].isDraining ? .receive : .discard
    }

    /// `count` more bytes; they are in the engine's hands already.
    package mutating func bodyReceived(_ id: TransferID, _ count: Int, _ now: Instant) {
        guard isAtTransport(id) else { return }
        endOverdue(now)
        guard transfers.contains(id) else { return startWaiting(now) }
        // A drip of bytes does not prolong a drain.
        guard !transfers[id].isDraining else { return drained(id, count, now) }
        transfers[id].receive(Int64(count), now)
        if transfers[id].question != nil { updateOwed(id) }
        updatePace(id)
        memory.changeBodies(Int64(count))
        // They were on their way when it was paused: nobody has been told of a response.
        if transfers[id].question == nil {
            // A reminder that stands comes early enough: its time has only moved further off.
            if transfers[id].reminder == nil { watch(id) }
            useBody(id, now)
        }
        pressReceiving(id, now)
        startWaiting(now)
    }

    /// Bytes of its body have come and wait for their turn here, or do so no longer: what its idle clock had left before, it
    /// has left then.
    package mutating func bodyWaits(_ id: TransferID, _ isWaiting: Bool, _ now: Instant) {
        guard isAtTransport(id), transfers[id].phase == .receiving else { return }
        guard isWaiting else {
            settleWait(id, now)
            transfers[id].waitingSince = nil
            return watch(id)
        }
        if transfers[id].waitingSince == nil { transfers[id].waitingSince = now }
    }

    /// The time that it has waited so far is no time of its clocks. While it is paused they stand still anyhow.
    mutating func settleWait(_ id: TransferID, _ now: Instant) {
        guard let since = transfers[id].waitingSince, transfers[id].waitsForTurn, transfers[id].pauses.isEmpty else {
            return
        }
        shiftClocks(id, by: now.nanoseconds - since.nanoseconds, now)
        transfers[id].waitingSince = now
    }

    /// So many bytes that nobody takes at present are held where they came: they count as what was received does. Limits of the
    /// body hold for what is in its codings still when these are undone.
    package mutating func bodyHeld(_ id: TransferID, _ bytes: Int64, isEncoded: Bool = false, _ now: Instant) {
        guard isAtTransport(id), transfers[id].heldBytes != bytes else { return }
        changeHeld(id, bytes)
        if transfers[id].heldIsEncoded != isEncoded { transfers[id].heldIsEncoded = isEncoded }
        enforceHeldLimits(id, now)
        startWaiting(now)
    }

    /// What is held will come, and is more than somebody takes.
    mutating func enforceHeldLimits(_ id: TransferID, _ now: Instant) {
        guard transfers.contains(id), isBodyWanted(id) else { return }
        if transfers[id].bodyBytes > transfers[id].lowest.bodyBytes { enforceBodyLimits(id, now) }
    }

    /// So much memory is held at the transport to undo the codings of its body.
    package mutating func codingsHeld(_ id: TransferID, _ bytes: Int64) {
        if isAtTransport(id) { changeCodings(id, bytes) }
    }

    /// The most that one of its subscribers takes of the body.
    package func bodyLimit(_ id: TransferID) -> Int64 {
        guard isAtTransport(id), isBodyWanted(id) else { return .max }
        var limit: Int64 = 0
        forEachSubscriber(of: id) {
            limit = max(limit, isBodyWanted($0) ? subscribers[$0].options.maximumBodyBytes : .max)
        }
        return limit
    }

    /// Whether what comes is the body of an answer, as far as is known. That of a challenge is nobody's where a hook has a
    /// credential.
    private func isBodyWanted(_ id: TransferID) -> Bool {
        !transfers[id].isDraining && transfers[id].question?.kind != .challenge
    }

    /// While a hook is asked about a response, this subscriber takes the body of one that it would take as it came: there is
    /// as much of it, whatever the hook makes of the head.
    private func isBodyWanted(_ subscriber: SubscriberID) -> Bool {
        let id = transfer(of: subscriber)
        guard transfers[id].question != nil, let head = transfers[id].askedHead?.head else { return true }
        return ResponseRules.refusal(
            status: head.status, mediaType: head.mediaType, coding: head.remainingCoding,
            subscribers[subscriber].options, request: transfers[id].request) == nil
    }

    /// More of the body is there: who takes no more ends, the others hear of it, decoders get it.
    mutating func useBody(_ id: TransferID, _ now: Instant) {
        if transfers[id].received > transfers[id].lowest.bodyBytes { enforceBodyLimits(id, now) }
        guard transfers.contains(id), transfers[id].heldEnd == nil else { return }
        let isDecoded = !transfers[id].variants.isEmpty
        if isDecoded, !transfers[id].transformsBody {
            for variant in transfers[id].variants.indices { transfers[id].variants[variant].hasNewBytes = true }
        }
        if transfers[id].progressCount > 0 { forEachSubscriber(id) { $0.emitProgress($1) } }
        if isDecoded { stepDecoders(id, now) }
    }

    package mutating func finished(_ id: TransferID, _ now: Instant) {
        guard endsExchange(id, .success(()), now) else { return }
        if hasFollowed(id, now) { return startWaiting(now) }
        if let doom = transfers[id].doom { return fail(id, doom, now) }
        leaveTransport(id, now)
        transfers[id].phase = .transforming
        observeStop(id, nil)
        forEachSubscriber(id) { $0.emitProgress($1) }
        if transfers[id].cache.isUnchanged { endUnchanged(id, now) }
        if transfers.contains(id) { completed(id, now) }
        startWaiting(now)
    }

    package mutating func failed(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        // No answer of a hook's brings back what the transport could not hold for it.
        if failure.code == .bodyLimit, isAtTransport(id), transfers[id].question != nil {
            return endWithoutAnswer(id, failure, now)
        }
        guard endsExchange(id, .failure(failure), now) else { return }
        // What the body of a redirect or of an error page comes to does not matter.
        if hasFollowed(id, now) { return startWaiting(now) }
        fail(id, transfers[id].doom ?? failure, now)
    }

    /// The transport has nothing of it any more. False when nothing follows from that: it waits for a hook's answer, or
    /// comes too late for everybody.
    private mutating func endsExchange(_ id: TransferID, _ end: Result<Void, Failure>, _ now: Instant) -> Bool {
        guard isAtTransport(id) else { return false }
        transfers[id].waitingSince = nil
        changeCodings(id, 0)
        if transfers[id].question == nil {
            transfers[id].isAtTransport = false
            changeHeld(id, 0)
        } else {
            transfers[id].heldEnd = end
        }
        let hasEnded = endOverdue(now)
        let goesOn = transfers.contains(id) && transfers[id].question == nil
        if hasEnded, !goesOn { startWaiting(now) }
        return goesOn
    }

    /// The transport has nothing of it any more, and nobody waits for what the hook says.
    private mutating func endWithoutAnswer(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        transfers[id].waitingSince = nil
        transfers[id].isAtTransport = false
        changeHeld(id, 0)
        changeCodings(id, 0)
        endOverdue(now)
        guard transfers.contains(id) else { return startWaiting(now) }
        unshare(id)
        forEachSubscriber(id) { $0.end($1, .failure(failure), now) }
        startWaiting(now)
    }

    /// It has its place and nothing at the transport any more: it is tried again, or ends once decoders have salvaged
    /// what there is.
    mutating func fail(_ id: TransferID, _ failure: Failure, _ now: Instant) {
        if standsIn(id, failure, now) { return }
        if retry(id, failure, now) { return startWaiting(now) }
        unshare(id)
        leaveTransport(id, now)
        transfers[id].phase = .decoding
        transfers[id].failure = failure
        observeStop(id, failure)
        // What a hook was to change is not what it seems, and what nobody takes is not looked at.
        let hasPixels = transfers[id].received > 0 && !transfers[id].transformsBody && transfers[id].doom == nil
        forEachSubscriber(id) { downloads, subscriber in
            if hasPixels, downloads.subscribers[subscriber].maySalvage { return }
            downloads.end(subscriber, .failure(downloads.subscribers[subscriber].doom ?? failure), now)
        }
        stepDecoders(id, now)
        startWaiting(now)
    }

    private func isAtTransport(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].isAtTransport }

    private mutating func drained(_ id: TransferID, _ count: Int, _ now: Instant) {
        transfers[id].drained += Int64(count)
        // The transport sees to that, but for a body that it was told to receive before a hook refused it.
        guard transfers[id].drained > limits.drainBytes else { return startWaiting(now) }
        actions.append(.stop(id))
        finished(id, now)
    }

    // MARK: Redirects

    private func redirect(
        _ id: TransferID, _ status: Int32, _ location: Result<ParsedURL, Failure>?
    ) -> RedirectRules.Decision {
        guard RedirectRules.isRedirect(status), transfers[id].request.followsRedirects else { return .none }
        return decideRedirect(id, status, location)
    }

    /// What is stored sets none again.
    private mutating func noteCookie(_ id: TransferID, _ head: ResponseHead) {
        guard RedirectRules.isRedirect(head.status), transfers[id].request.identity.usesCookies,
            !transfers[id].cache.isPlaying,
            head.fields.first(named: "Set-Cookie") != nil
        else { return }
        transfers[id].latestCookie = transfers[id].laterHops.count
    }

    func decideRedirect(
        _ id: TransferID, _ status: Int32, _ location: Result<ParsedURL, Failure>?
    ) -> RedirectRules.Decision {
        RedirectRules.decide(
            status: status, location: location, hops: transfers[id].hops, method: transfers[id].method,
            sendsBody: transfers[id].sendsBody, latestCookie: transfers[id].latestCookie,
            maximum: limits.maximumRedirects, allowsDowngrade: transfers[id].request.allowsDowngrade)
    }

    /// The rest of a body that nobody wants has been read: what it stood in the way of.
    private mutating func hasFollowed(_ id: TransferID, _ now: Instant) -> Bool {
        if let redirect = transfers[id].redirect {
            redirected(id, redirect, now)
        } else if let credential = transfers[id].credential {
            transfers[id].credential = nil
            // What came of the challenge's body while the hook was asked.
            forgetBody(id)
            transfers[id].voidBody()
            authenticate(id, credential, now)
        } else {
            return turnsToCache(id, now)
        }
        return true
    }

    /// What is stored for whom it is asked as now may answer.
    private mutating func authenticate(_ id: TransferID, _ credential: Credential, _ now: Instant) {
        if consults(id) { return consult(id, .challenge(credential)) }
        send(id, .credential(credential), now)
    }

    mutating func follow(_ id: TransferID, _ redirect: Redirect, _ now: Instant) {
        transfers[id].laterHops.append(redirect.url)
        transfers[id].method = redirect.method
        transfers[id].sendsBody = redirect.sendsBody
        if consults(id) { return consult(id, .redirect(redirect)) }
        send(id, .redirect(redirect), now)
    }

    // MARK: Refusals

    /// The final response is there: who does not want it, or not so much of it, ends (features B19, C9, C10, K9).
    mutating func judge(_ id: TransferID, _ head: ResponseHead, _ retryAfter: Int64?, _ now: Instant) {
        transfers[id].hasHead = true
        transfers[id].expected = ResponseRules.expectedBytes(head)
        transfers[id].head = head
        transfers[id].hasRemainingCoding = head.remainingCoding != nil
        transfers[id].retryAfter = retryAfter
        var doom: Failure?
        var isAccepted = false
        forEachSubscriber(id) { downloads, subscriber in
            let refusal = downloads.refusal(subscriber)
            // Most have none, and keep what they know in common.
            if refusal != nil || downloads.subscribers[subscriber].doom != nil {
                downloads.subscribers[subscriber].doom = refusal
            }
            if let refusal { doom = doom ?? refusal } else { isAccepted = true }
        }
        if let doom, !isAccepted { return refuse(id, doom) }
        if transfers[id].cache.isExchanging { actions.append(.store(id)) }
        // Whoever joins a good response is asked what it accepts; an error page is not shared any further.
        if !ResponseRules.isSuccess(head.status) { unshare(id) }
        forEachSubscriber(id) { $0.emit($1, .response, needs: .response) }
        if doom != nil {
            forEachSubscriber(id) { downloads, subscriber in
                if let own = downloads.subscribers[subscriber].doom { downloads.end(subscriber, .failure(own), now) }
            }
        }
        guard transfers[id].expected > transfers[id].lowest.bodyBytes, let announced = transfers[id].announcedBody
        else { return }
        forEachSubscriber(id) { downloads, subscriber in
            let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
            if announced > limit {
                downloads.end(subscriber, .failure(downloads.bodyLimit(id, limit, announced: announced)), now)
            }
        }
    }

    func bodyLimit(_ id: TransferID, _ limit: Int64, announced: Int64) -> Failure {
        ResponseRules.bodyLimit(limit, announced: announced, isStored: transfers[id].cache.isPlaying)
    }

    /// Why this subscriber does not take the response that is there.
    func refusal(_ subscriber: SubscriberID) -> Failure? {
        let id = transfer(of: subscriber)
        // Most take whatever is a success, which is seen without a copy of their options.
        let isTaken = subscribers[subscriber].takesAnySuccess && transfers[id].isPlainSuccess
        if !isTaken,
            let refusal = ResponseRules.refusal(
                status: transfers[id].status, mediaType: transfers[id].head?.mediaType ?? "",
                coding: transfers[id].head?.remainingCoding, withholdsBasic: withholdsBasic(id),
                isConditional: transfers[id].isChosenConditional, subscribers[subscriber].options,
                request: transfers[id].request)
        {
            return refusal
        }
        let isKnown = transfers[id].outcome.isCached || transfers[id].cache.isUnchanged
        return isKnown && subscribers[subscriber].options.ignoresCached ? unchanged(id) : nil
    }

    /// Somebody gave a password for the server that asks for one, and it was not sent.
    private func withholdsBasic(_ id: TransferID) -> Bool {
        guard transfers[id].status == 401, let head = transfers[id].head, let asked = transfers[id].hops.last,
            transfers[id].hops.allSatisfy({ $0.isSameOrigin(as: asked) })
        else { return false }
        let hasPassword = transfers[id].request.identity.credential != nil || transfers[id].hasAnsweredChallenge
        return hasPassword && ResponseRules.withholdsBasic(head, asked: asked, request: transfers[id].request)
    }

    private func unchanged(_ id: TransferID) -> Failure {
        Failure(.notModified, "not modified since it was stored", status: transfers[id].status)
    }

    /// What came is what was stored: some want to hear only if it is not (features O3).
    private mutating func endUnchanged(_ id: TransferID, _ now: Instant) {
        let failure = unchanged(id)
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].options.ignoresCached {
                downloads.end(subscriber, .failure(failure), now)
            }
        }
    }

    /// Nobody takes it. The response is told to those alone who do not wait for a better one. The body of such a response
    /// is never decoded (features T10).
    private mutating func refuse(_ id: TransferID, _ doom: Failure) {
        condemn(id, doom)
        forEachSubscriber(id) { downloads, subscriber in
            if !downloads.mayRetry(subscriber, doom) { downloads.emit(subscriber, .response, needs: .response) }
        }
    }

    /// It will end in this failure, once a short rest of the body has been read: the connection can be used again.
    /// Later requests do not join it.
    mutating func condemn(_ id: TransferID, _ failure: Failure) {
        transfers[id].doom = failure
        unshare(id)
    }

    /// Who set a limit that has been passed ends; the lowest limit of the others is the next to look at.
    mutating func enforceBodyLimits(_ id: TransferID, _ now: Instant) {
        let received = transfers[id].bodyBytes
        transfers[id].lowest.bodyBytes = .max
        forEachSubscriber(id) { downloads, subscriber in
            let limit = downloads.subscribers[subscriber].options.maximumBodyBytes
            if received > limit, downloads.isBodyWanted(subscriber) {
                downloads.end(subscriber, .failure(ResponseRules.bodyLimit(limit, announced: nil)), now)
            } else {
                let lowest = downloads.transfers[id].lowest.bodyBytes
                downloads.transfers[id].lowest.bodyBytes = min(lowest, limit)
            }
        }
    }
}
