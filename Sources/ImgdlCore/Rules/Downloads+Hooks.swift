/// The host's hooks on a transfer's way (features R1–R3, M16, K11, B23). While one is asked the transfer's own clocks
/// stand still; the subscribers' total timeouts, and cancelling, do not wait for the answer.
extension Downloads {
    /// Whether this question still waits for its answer.
    package func isAsking(_ id: TransferID, _ number: UInt64) -> Bool {
        transfers.contains(id) && transfers[id].question?.number == number
    }

    /// The hook has answered. Answers of transfers that are over, and to questions of long ago, are ignored.
    package mutating func answered(_ id: TransferID, _ number: UInt64, _ answer: Answer, _ now: Instant) {
        guard isAsking(id, number) else { return }
        if case .response(let head, _) = answer { transfers[id].status = head.status }
        endOverdue(now)
        guard isAsking(id, number), let question = transfers[id].question else { return startWaiting(now) }
        transfers[id].question = nil
        updateOwed(id)
        if case .refused = answer { transfers[id].isRefused = true }
        switch question.kind {
        case .request: answeredRequest(id, answer, now)
        case .redirect(let target): answeredRedirect(id, target, answer, now)
        case .body: answeredBody(id, answer, now)
        case .challenge: answeredChallenge(id, answer, now)
        case .response: answeredResponse(id, answer, now)
        }
        startWaiting(now)
    }

    mutating func ask(_ id: TransferID, _ kind: Question.Kind) {
        transfers[id].questionCount += 1
        let question = Question(kind, number: transfers[id].questionCount)
        transfers[id].question = question
        updateOwed(id)
        actions.append(.ask(id, question))
    }

    // MARK: The request

    /// It has its place: its request is sent, or a hook asked for it.
    mutating func begin(_ id: TransferID, _ now: Instant) {
        if let held = transfers[id].heldRequest {
            transfers[id].heldRequest = nil
            return send(id, held, now)
        }
        if transfers[id].cache.hasBegun { return consult(id, .again) }
        guard transfers[id].asks(.modifyRequest) else { return sendFirst(id, now) }
        transfers[id].phase = .asking
        ask(id, .request)
    }

    private mutating func sendFirst(_ id: TransferID, _ now: Instant) {
        if consults(id) { return consult(id, .first) }
        send(id, .first, now)
    }

    private mutating func answeredRequest(_ id: TransferID, _ answer: Answer, _ now: Instant) {
        switch answer {
        case .refused(let failure): return fail(id, failure, now)
        case .request(let request):
            transfers[id].firstURL = request.url
            transfers[id].firstMethod = request.method
            transfers[id].isChosenConditional = ResponseRules.isConditional(request.fields)
            transfers[id].method = request.method
            transfers[id].sendsBody = request.body != nil
        case .unchanged, .response, .body, .redirect, .credential: break
        }
        sendFirst(id, now)
    }

    // MARK: Redirects

    /// The body of a redirect has been read: it is followed, or a hook asked whether it is.
    mutating func redirected(_ id: TransferID, _ redirect: Redirect, _ now: Instant) {
        transfers[id].redirect = nil
        guard transfers[id].asks(.redirect) else { return follow(id, redirect, now) }
        transfers[id].phase = .asking
        ask(id, .redirect(redirect.url))
    }

    private mutating func answeredRedirect(
        _ id: TransferID, _ target: ParsedURL, _ answer: Answer, _ now: Instant
    ) {
        var location = Result<ParsedURL, Failure>.success(target)
        switch answer {
        case .refused(let failure): return fail(id, failure, now)
        case .redirect(let replaced): location = replaced
        case .unchanged, .request, .response, .body, .credential: break
        }
        switch decideRedirect(id, transfers[id].status, location) {
        case .follow(let redirect): follow(id, redirect, now)
        case .refuse(let failure): fail(id, failure, now)
        case .none: break
        }
    }

    // MARK: Responses

    /// Asks about the head that has just come, where a hook wants to be asked: first for a credential, then whether it
    /// is to be taken for another one. False when nobody is asked.
    mutating func asksAbout(
        _ id: TransferID, _ head: ResponseHead, _ retryAfter: Int64?, challenge: Bool, _ now: Instant
    ) -> Bool {
        let kind: Question.Kind
        // What is stored has nobody to give a credential to.
        let isChallenge = challenge && head.status == 401 && !transfers[id].cache.isPlaying
        if isChallenge, !transfers[id].wasChallenged, transfers[id].asks(.authenticate) {
            transfers[id].wasChallenged = true
            kind = .challenge
        } else if transfers[id].asks(.modifyResponse) {
            kind = .response
        } else {
            return false
        }
        transfers[id].askedHead = AskedHead(head: head, retryAfter: retryAfter)
        ask(id, kind)
        pause(id, .question, now)
        return true
    }

    private mutating func answeredChallenge(_ id: TransferID, _ answer: Answer, _ now: Instant) {
        guard let asked = transfers[id].askedHead else { return }
        switch answer {
        case .credential(let credential):
            transfers[id].credential = credential
            transfers[id].hasAnsweredChallenge = true
        case .refused(let failure):
            observeAnswer(id)
            condemn(id, failure)
        case .unchanged, .request, .response, .body, .redirect:
            if asksAbout(id, asked.head, asked.retryAfter, challenge: false, now) { return }
            observeAnswer(id)
            judge(id, asked.head, asked.retryAfter, now)
        }
        goOn(id, now)
    }

    private mutating func answeredResponse(_ id: TransferID, _ answer: Answer, _ now: Instant) {
        guard let asked = transfers[id].askedHead else { return }
        observeAnswer(id)
        switch answer {
        case .refused(let failure): condemn(id, failure)
        case .response(let head, let retryAfter):
            judge(id, head, retryAfter, now)
        case .unchanged, .request, .body, .redirect, .credential: judge(id, asked.head, asked.retryAfter, now)
        }
        goOn(id, now)
    }

    /// The response has been dealt with: its body comes, and what came meanwhile is looked at.
    private mutating func goOn(_ id: TransferID, _ now: Instant) {
        guard transfers.contains(id) else { return }
        transfers[id].askedHead = nil
        resume(id, .question, now)
        touch(id, now)
        if transfers[id].received > 0, !transfers[id].isDraining { useBody(id, now) }
        guard transfers.contains(id) else { return }
        let heldEnd = transfers[id].heldEnd
        if heldEnd != nil { transfers[id].heldEnd = nil }
        switch heldEnd {
        case .success: finished(id, now)
        case .failure(let failure): failed(id, failure, now)
        case nil:
            enforceHeldLimits(id, now)
            press(id, now)
        }
    }

    // MARK: Bodies

    /// The body is whole: it is decoded, or a hook asked for what is to be decoded.
    mutating func completed(_ id: TransferID, _ now: Instant) {
        guard transfers[id].transformsBody else { return decodeWhole(id, now) }
        transfers[id].phase = .transforming
        ask(id, .body)
    }

    private mutating func answeredBody(_ id: TransferID, _ answer: Answer, _ now: Instant) {
        if case .refused(let failure) = answer {
            unshare(id)
            forEachSubscriber(id) { $0.end($1, .failure(failure), now) }
            return
        }
        if case .body(let bytes) = answer { replaceBody(id, bytes) }
        for variant in transfers[id].variants.indices { transfers[id].variants[variant].hasNewBytes = true }
        decodeWhole(id, now)
    }

    private mutating func decodeWhole(_ id: TransferID, _ now: Instant) {
        transfers[id].phase = .decoding
        forEachSubscriber(id) { downloads, subscriber in
            if downloads.subscribers[subscriber].variant == nil {
                downloads.end(subscriber, .success(variant: nil), now)
            }
        }
        stepDecoders(id, now)
    }
}
