/// The way of a request to the transport, and of what the transport reports to the rules.
extension Engine: TransportEvents {
    // MARK: To the transport

    func start(_ id: TransferID) {
        open(id)
        active.look(at: id.slot) { transfer in
            transfer.exchange = nil
            transfer.startHop(transfer.outgoing?.url, redirect: nil)
            if !transfer.isSent { observeStart(id) }
            transfer.isSent = true
            sendHop(id, transfer)
        }
    }

    func follow(_ id: TransferID, _ redirect: Redirect) {
        guard let transfer = transfer(id) else { return }
        transfer.exchange = nil
        advance(id, transfer, redirect)
        sendHop(id, transfer)
    }

    /// To the next hop.
    func advance(_ id: TransferID, _ transfer: ActiveTransfer, _ redirect: Redirect) {
        measureFollow(id)
        if let status = transfer.response?.head.status { transfer.hops.append(Hop(url: transfer.url, status: status)) }
        if let authentication = transfer.authentication, !authentication.holds(for: redirect.url) {
            transfer.authentication?.isLeft = true
        }
        transfer.startHop(redirect.url, redirect: redirect)
    }

    func authenticate(_ id: TransferID, _ credential: Credential) {
        guard let transfer = transfer(id) else { return }
        identify(transfer, credential)
        transfer.exchange = nil
        sendHop(id, transfer)
    }

    /// A hook has found a credential for who asks.
    func identify(_ transfer: ActiveTransfer, _ credential: Credential) {
        transfer.authentication = Authentication(origin: transfer.url, credential: credential)
        transfer.dropBody()
        transfer.startHop(transfer.url, redirect: transfer.redirect)
    }

    /// The hop that begins goes to the transport.
    func sendHop(_ id: TransferID, _ transfer: ActiveTransfer) {
        guard let transport else { return }
        let request = transportRequest(id, transfer)
        noteAsked(id, transfer)
        noteCookies(id, transfer, request)
        transport.start(id, request)
    }

    /// Of the hop that begins.
    private func transportRequest(_ id: TransferID, _ transfer: ActiveTransfer) -> TransportRequest {
        var request = hopRequest(id, transfer)
        // Only where there are some: the array is the same for many requests, and would become another.
        if let added = transfer.exchange?.added, !added.isEmpty { request.fields += added }
        return request
    }

    /// Without what the cache adds.
    func hopRequest(_ id: TransferID, _ transfer: ActiveTransfer) -> TransportRequest {
        hopRequest(transfer, downloads.priority(id))
    }

    func hopRequest(_ transfer: ActiveTransfer, _ priority: Priority = .normal) -> TransportRequest {
        var next = firstHopRequest(transfer, priority)
        if let redirect = transfer.redirect { next = RedirectRules.request(for: redirect, of: next) }
        if let authentication = transfer.authentication, authentication.holds(for: transfer.url) {
            next.credential = authentication.credential
        }
        return next
    }

    /// The request before any redirect.
    func firstHopRequest(_ transfer: ActiveTransfer, _ priority: Priority = .normal) -> TransportRequest {
        let request = transfer.request
        var next = TransportRequest(
            url: request.url, request.manner, maximumHeaderBytes: downloads.limits.maximumHeaderBytes,
            priority: priority)
        if let outgoing = transfer.outgoing {
            next.url = outgoing.url
            next.method = outgoing.method
            next.fields = outgoing.fields
            next.body = outgoing.body
            let isElsewhere = !outgoing.url.isSameOrigin(as: request.url)
            next.credential = outgoing.url.credential ?? (isElsewhere ? nil : request.identity.credential)
            if isElsewhere { next.forgetClient() }
        }
        return next
    }

    // MARK: From the transport

    /// All that has come is read, then all ends are told, then what waits is started: so the code of each step is still
    /// in the processor's cache for the next transfer, and what callbacks say of these ends decides what starts.
    func readTransport(_ read: () -> Void) {
        downloads.holdStarts()
        read()
        // To read takes its time, and what has ended has ended since.
        clock.passes()
        // What callbacks ask for may end something, too, and all ends are told before the thread sleeps.
        while reportEnds() { performCommands() }
        downloads.releaseStarts(clock.now())
        performActions()
    }

    /// Whether there were any.
    private func reportEnds() -> Bool {
        endings = .gathered
        transport?.reportEnds()
        let isAny = endings == .found
        endings = .single
        if isAny { performActions() }
        return isAny
    }

    /// How ends are dealt with: each at once, or those that the transport reports in one go together.
    enum Endings {
        case single
        case gathered
        /// There are some.
        case found
    }

    /// Commands come first (see `performCommands`), but none between gathered ends: a new request would be given the
    /// place in a table of one whose end has not been told.
    private func prepareEnd() {
        if endings == .found { return }
        performCommands()
        if endings == .gathered { endings = .found }
    }

    private func performEnd() { if endings == .single { performActions() } }

    /// It is sent as of now: that is the time from which its answer ages, and with the cookies that the jar has by now.
    func transferBeginsAnew(_ id: TransferID) {
        downloads.beginsAnew(id, clock.now())
        guard let transfer = transfer(id) else { return }
        transfer.exchange?.begin(clock.wallMicroseconds(), contextSent(id, transfer), store)
        noteAsked(id, transfer)
        if let before = transfer.cookiesSent.popLast() { noteCookies(id, transfer, before.request) }
    }

    func transferConnected(_ id: TransferID) {
        downloads.connected(id, clock.now())
        performActions()
    }

    func transferSent(_ id: TransferID) { downloads.advanced(id, clock.now()) }

    func transferAdvanced(_ id: TransferID) { downloads.advanced(id, clock.now()) }

    func transferWaits(_ id: TransferID, _ isWaiting: Bool) { downloads.bodyWaits(id, isWaiting, clock.now()) }

    func transferReceived(_ id: TransferID, head: ResponseHead) -> BodyDisposition {
        guard let transfer = transfer(id) else { return .discard }
        measurements.look(at: id.slot) { $0.update { $0.answer(head.httpVersion) } }
        invalidate(id, head, transfer)
        guard let exchange = transfer.exchange, let store else { return received(head, id, transfer) }
        guard let head = receiveForCache(id, head, transfer, exchange, store) else {
            performActions()
            return downloads.disposition(id)
        }
        return received(head, id, transfer)
    }

    private func received(_ head: ResponseHead, _ id: TransferID, _ transfer: ActiveTransfer) -> BodyDisposition {
        receive(head, of: transfer)
        _ = downloads.headReceived(
            id, head, location: location(head, of: transfer), retryAfter: retryAfter(head), clock.now())
        // A hook may answer at once: only then is it known what becomes of the body.
        performActions()
        playKept(id, transfer)
        return downloads.disposition(id)
    }

    /// The head as it came, or as a hook wants it taken.
    func receive(_ head: ResponseHead, of transfer: ActiveTransfer) {
        transfer.response = Response(url: transfer.url, head: head, hops: transfer.hops)
        transfer.expected = ResponseRules.expectedBytes(head)
    }

    func retryAfter(_ head: ResponseHead) -> Int64? { RetryRules.retryAfter(head, wallTime: clock.wallTime()) }

    func transferReceived(_ id: TransferID, body: UnsafeRawBufferPointer) {
        guard let isTaken = active.look(at: id.slot, { take(body, of: id, $0) }) else { return }
        if isTaken {
            downloads.bodyReceived(id, body.count, clock.now())
            performActions()
        } else {
            transport?.cancel(id)
            failed(id, Failure(.outOfMemory, "no memory for the body"))
        }
    }

    /// False when there is no memory.
    private func take(_ body: UnsafeRawBufferPointer, of id: TransferID, _ transfer: ActiveTransfer) -> Bool {
        if downloads.disposition(id) == .discard {
            // What is read of an unwanted body belongs to no picture.
            transfer.appendPreview(body)
            return true
        }
        if downloads.needsProbe(id), let size = transfer.probe(body, codec) { downloads.probed(id, size) }
        guard transfer.append(body) else { return false }
        transfer.exchange?.write(transfer)
        measurements.look(at: id.slot) { $0.setBodyBytes(transfer.received) }
        return true
    }

    func transferHolds(_ id: TransferID, _ bytes: Int, isEncoded: Bool) {
        downloads.bodyHeld(id, Int64(bytes), isEncoded: isEncoded, clock.now())
        performActions()
    }

    func transferHoldsCodings(_ id: TransferID, _ bytes: Int) { downloads.codingsHeld(id, Int64(bytes)) }

    func bodyLimit(_ id: TransferID) -> Int64 { downloads.bodyLimit(id) }

    func transferFinished(_ id: TransferID, _ times: TransferTimes) {
        prepareEnd()
        measureExchange(id, times)
        if downloads.contains(id), let failure = active.look(at: id.slot, { endBody(id, $0) }) ?? nil {
            return failed(id, failure)
        }
        downloads.finished(id, clock.now())
        performEnd()
    }

    func transferFailed(_ id: TransferID, _ failure: Failure, _ times: TransferTimes) {
        prepareEnd()
        measureExchange(id, times)
        failed(id, failure)
    }

    private func failed(_ id: TransferID, _ failure: Failure) {
        if downloads.contains(id) { active.look(at: id.slot) { $0.exchange?.end(isWhole: false, $0) } }
        downloads.failed(id, failure, clock.now())
        performEnd()
    }

    func location(_ head: ResponseHead, of transfer: ActiveTransfer) -> Result<ParsedURL, Failure>? {
        guard RedirectRules.isRedirect(head.status), let reference = head.first(named: "Location"),
            let transport
        else { return nil }
        return Result { () throws(Failure) in try transport.resolveReference(reference, against: transfer.url) }
    }
}
