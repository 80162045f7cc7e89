/// The HTTP cache on a transfer's way. It is consulted before the transfer waits for a place, since what is stored
/// needs none; where the transfer may not start now, or a hook has its say about the request first, when its turn has
/// come. Each hop and each attempt is consulted about. While the answer is out the transfer's own clocks stand still;
/// cancelling does not wait for it.
///
///     consulting ──play──▶ receiving, without a place      takesOver: what the server answers leads to what is stored
///         │  ▲─────────────────────┐                       asksAgain: … is of no use, so it is asked otherwise
///         └──forward──▶ (waiting) ──▶ connecting
extension Downloads {
    /// Whether this consultation still waits for its answer.
    package func isConsulting(_ id: TransferID, _ number: UInt64) -> Bool {
        transfers.contains(id) && transfers[id].phase == .consulting && transfers[id].cache.number == number
    }

    /// Whether the cache has a say in the exchange that begins. Schemes other than HTTP's know no cache.
    func consults(_ id: TransferID) -> Bool {
        switch transfers[id].request.cacheMode {
        case .off: return false
        case .only: break
        case .use, .reload, .refresh: if !hasStore || !transfers[id].isSafe { return false }
        }
        let scheme = transfers[id].laterHops.last?.scheme ?? transfers[id].firstURL.scheme
        return scheme == "http" || scheme == "https"
    }

    /// Whether it is consulted before the transfer waits.
    func consultsEarly(_ id: TransferID) -> Bool {
        guard consults(id), !isSuspended, !transfers[id].asks(.modifyRequest) else { return false }
        return background == nil || background?.isOver == false && transfers[id].continuesInBackground
    }

    /// Answers of transfers that are over, and to consultations of long ago, are ignored.
    package mutating func consulted(_ id: TransferID, _ number: UInt64, _ answer: CacheAnswer, _ now: Instant) {
        guard isConsulting(id, number) else { return }
        endOverdue(now)
        guard isConsulting(id, number) else { return startWaiting(now) }
        uncountConsultation(id)
        switch answer {
        case .forward(let fallbackUntil):
            transfers[id].cache.fallbackUntil = fallbackUntil
            send(id, .consulted, now)
        case .later: comeBack(id, now)
        case .play: play(id, now)
        case .unavailable(let failure): fail(id, failure, now)
        }
        startWaiting(now)
    }

    /// Whether it holds nobody up that waits: it has left the queue.
    package func isRunning(_ id: TransferID) -> Bool { transfers.contains(id) && holdsPlace(id) }

    /// Whether the response that is there is a redirect that will be followed.
    package func isRedirecting(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].redirect != nil }

    package func isBodiless(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].method == "HEAD" }

    /// So long is the body of a stored response that nobody needs.
    package mutating func bodySkipped(_ id: TransferID, _ count: Int64, _ now: Instant) {
        guard transfers.contains(id), transfers[id].cache.isPlaying else { return }
        transfers[id].received = count
        if count > transfers[id].lowest.bodyBytes { enforceBodyLimits(id, now) }
    }

    /// It has a place, or gave one up in the background.
    func holdsPlace(_ id: TransferID) -> Bool {
        transfers[id].place >= 0 || transfers[id].pauses.contains(.background)
    }

    private mutating func play(_ id: TransferID, _ now: Instant) {
        leaveTransport(id, now)
        transfers[id].phase = .receiving
        transfers[id].isAtTransport = true
        transfers[id].hasHead = false
        transfers[id].drained = 0
        transfers[id].cache.isPlaying = true
        transfers[id].cache.isExchanging = false
        transfers[id].isUnderWay = true
        forEachSubscriber(id) { $0.start($1, now) }
    }

    // MARK: The server's answers

    /// In place of `headReceived`: the answer leads to what is stored, which is consulted about once the rest is
    /// drained.
    package mutating func storedTakesOver(_ id: TransferID, _ now: Instant) {
        drainForCache(id, now) { $0.takesOver = true }
    }

    /// In place of `headReceived`: the answer is of no use. The server is asked again once the rest is drained; no
    /// retry is used.
    package mutating func asksAgain(_ id: TransferID, _ now: Instant) {
        drainForCache(id, now) { $0.asksAgain = true }
    }

    private mutating func drainForCache(_ id: TransferID, _ now: Instant, _ change: (inout CacheUse) -> Void) {
        guard transfers.contains(id), transfers[id].isAtTransport else { return }
        transfers[id].phase = .receiving
        change(&transfers[id].cache)
        touch(id, now)
    }

    /// The server's answer is over that was drained for the cache's sake.
    mutating func turnsToCache(_ id: TransferID, _ now: Instant) -> Bool {
        if transfers[id].cache.takesOver {
            consultInsteadOfServer(id, .answer, now)
            return true
        }
        guard transfers[id].cache.asksAgain else { return false }
        transfers[id].cache.asksAgain = false
        send(id, .consulted, now)
        return true
    }

    /// The server cannot be reached, or not in time, and what is stored may do.
    mutating func standsIn(_ id: TransferID, _ failure: Failure, _ now: Instant) -> Bool {
        guard let until = transfers[id].cache.fallbackUntil, now <= until, !transfers[id].hasHead,
            transfers[id].doom == nil, CacheUse.isUnreachable(failure.code), !mayAllRetry(id, failure)
        else { return false }
        forEachSubscriber(id) { $0.subscribers[$1].doom = nil }
        consultInsteadOfServer(id, .standIn, now)
        return true
    }

    private mutating func consultInsteadOfServer(_ id: TransferID, _ kind: Consultation.Kind, _ now: Instant) {
        leaveTransport(id, now)
        transfers[id].cache.takesOver = false
        transfers[id].cache.isExchanging = false
        transfers[id].cache.fallbackUntil = nil
        consult(id, kind)
        startWaiting(now)
    }

    /// The body that comes goes into the store, too.
    package mutating func stores(_ id: TransferID) {
        if transfers.contains(id) { transfers[id].cache.isStoring = true }
    }

    /// Before `finished`: the bytes are those that were stored when the transfer began (features O3).
    package mutating func isUnchanged(_ id: TransferID) {
        if transfers.contains(id) { transfers[id].cache.isUnchanged = true }
    }

    /// Whether anybody has a use for the body of a stored response.
    package func needsStoredBody(_ id: TransferID) -> Bool {
        guard transfers.contains(id), transfers[id].method != "HEAD" else { return false }
        if transfers[id].request.hooks != nil { return true }
        return contains(id) { !$0.isInternal && !$0.options.ignoresCached }
    }

    /// Whether anybody wants to hear only of a change.
    package func comparesWithStored(_ id: TransferID) -> Bool {
        transfers.contains(id) && contains(id) { $0.options.ignoresCached }
    }

    /// How its subscribers decode, where none of them wants more than a picture; nil: somebody does.
    package func wantedPictures(_ id: TransferID) -> [DecodeOptions]? {
        guard transfers.contains(id), transfers[id].request.hooks == nil, transfers[id].method == "GET" else {
            return nil
        }
        var wanted: Set<Int> = []
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            guard let variant = subscribers[subscriber].variant, !subscribers[subscriber].options.wantsBody else {
                return nil
            }
            wanted.insert(variant)
            next = self.subscriber(after: subscriber)
        }
        return wanted.map { transfers[id].variants[$0].options }
    }

    private func contains(_ id: TransferID, _ isOne: (borrowing Subscriber) -> Bool) -> Bool {
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            if isOne(subscribers[subscriber]) { return true }
            next = self.subscriber(after: subscriber)
        }
        return false
    }
}

extension CacheUse {
    /// Failures that say the server cannot be reached: one that sends a flood in place of an answer is not, either.
    static func isUnreachable(_ code: ErrorCode) -> Bool {
        switch code {
        case .resolveFailed, .connectFailed, .connectionLost, .connectTimeout, .idleTimeout, .proxyFailed, .flood: true
        default: false
        }
    }
}
