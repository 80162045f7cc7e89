/// What the server answers, as far as it concerns the cache: to a condition, to a request for the rest of a body, or with a
/// response to be stored.
extension Engine {
    /// What was consulted about goes to the server.
    func send(_ id: TransferID) {
        guard let transfer = transfer(id) else { return }
        if !transfer.isSent { observeStart(id) }
        transfer.isSent = true
        if let exchange = transfer.exchange {
            exchange.begin(clock.wallMicroseconds(), contextSent(id, transfer), store)
            // While it waited a cookie may have come, or another transport.
            if exchange.isAnsweredToAnother { exchange.forgetStored() }
        }
        sendHop(id, transfer)
    }

    /// A head that is not the answer, or not as it came: nil where it is as if there were no cache.
    func receiveForCache(
        _ id: TransferID, _ head: ResponseHead, _ transfer: ActiveTransfer, _ exchange: CacheExchange,
        _ store: any Store
    ) -> ResponseHead? {
        exchange.receive(head, clock.wallMicroseconds())
        if transfer.request.identity.usesCookies { exchange.context = contextAnswered(id, transfer, head) }
        // A loader has answered, whoever is registered by now.
        if !head.isOfServer { exchange.context = nil }
        if exchange.isAnsweredToAnother {
            guard !exchange.leansOnStored(head.status) else {
                exchange.forgetStored()
                downloads.asksAgain(id, clock.now())
                return nil
            }
            exchange.forgetStored()
        }
        freshen(head, exchange)
        switch exchange.plan {
        case .fetch: break
        case .validate(let entry, let stale):
            if head.status == 304 {
                validated(id, entry, head, exchange, store)
                return nil
            }
            let mayUse = CacheRules.mayUse(
                entry.response, stale: stale, insteadOf: head.status, wallTime: clock.wallTime())
            if mayUse {
                exchange.replacement = CacheExchange.Replacement(entry: entry, outcome: .stale)
                downloads.storedTakesOver(id, clock.now())
                return nil
            }
        case .resume(let entry, let kept):
            switch ResumeRules.answer(to: entry.response, head) {
            case .continues(var whole):
                whole.outcome = .resumed
                exchange.head = whole
                transfer.kept = kept
                store.count(.resumed)
                return whole
            case .whole: break
            case .refetch:
                store.remove(entry.id)
                exchange.forget()
                downloads.asksAgain(id, clock.now())
                return nil
            }
        }
        exchange.isUnattended = downloads.isUnattended(id)
        exchange.settleOvertaken(store)
        return head
    }

    private func validated(
        _ id: TransferID, _ entry: StoredEntry, _ head: ResponseHead, _ exchange: CacheExchange, _ store: any Store
    ) {
        guard let validation = validation(of: entry, by: head, exchange) else {
            // Not about what is stored: it says nothing.
            exchange.forget()
            return downloads.asksAgain(id, clock.now())
        }
        let updated = exchange.timed(validation.response)
        var isLast = false
        if CacheRules.mayUpdate(entry.response, by: head, askedIn: exchange.context) {
            switch validation {
            case .kept: store.update(entry.id, updated, of: entry.response.version)
            case .dropped: isLast = true
            }
        }
        exchange.replacement = CacheExchange.Replacement(
            entry: entry.with(updated), outcome: .validated, isLast: isLast)
        downloads.storedTakesOver(id, clock.now())
    }

    /// The bytes that are kept come before those that the server sends.
    func playKept(_ id: TransferID, _ transfer: ActiveTransfer) {
        guard let kept = transfer.kept else { return }
        transfer.kept = nil
        guard downloads.disposition(id) == .receive else { return }
        adopt(kept, id, transfer)
        transfer.exchange?.write(transfer)
    }

    /// The rules want the response stored.
    func store(_ id: TransferID) {
        guard let transfer = transfer(id), let exchange = transfer.exchange, let store else { return }
        if exchange.beginWriting(store, isRedirect: downloads.isRedirecting(id)) { downloads.stores(id) }
        exchange.write(transfer)
        exchange.settle(transfer)
    }

    /// A HEAD's answer says whether what is stored is still good (RFC 9111 section 4.3.5).
    private func freshen(_ head: ResponseHead, _ exchange: CacheExchange) {
        guard exchange.request.method == "HEAD", head.status == 200 else { return }
        for entry in exchange.known
        where CacheRules.mayUpdate(entry.response, by: head, askedIn: exchange.context) {
            switch validation(of: entry, by: head, exchange) {
            case .kept(let updated):
                store?.update(entry.id, exchange.timed(updated), of: entry.response.version)
            case .dropped: store?.remove(entry.id)
            case nil: break
            }
        }
    }

    private func validation(
        of entry: StoredEntry, by head: ResponseHead, _ exchange: CacheExchange
    ) -> FreshenedResponse? {
        CacheRules.validated(
            entry.response, by: head, for: exchange.requestSent, requestTime: exchange.requestTime,
            responseTime: exchange.responseTime)
    }

    /// A method that changes something at the server makes what is stored invalid (RFC 9111 section 4.4), and what is on its
    /// way; whatever the request's mode, and without a store.
    func invalidate(_ id: TransferID, _ head: ResponseHead, _ transfer: ActiveTransfer) {
        guard let transport,
            let references = CacheRules.invalidates(
                method: transfer.redirect?.method ?? transfer.outgoing?.method ?? transfer.request.method, head)
        else { return }
        outdate(transfer.url)
        for reference in references {
            guard let url = try? transport.resolveReference(reference, against: transfer.url),
                url.isSameOrigin(as: transfer.url)
            else { continue }
            outdate(url)
        }
    }

    private func outdate(_ url: ParsedURL) {
        if let store { store.remove(key: url.cacheKey) } else { outdated.insert(url.cacheKey) }
    }

    /// A hop goes to its server.
    func noteAsked(_ id: TransferID, _ transfer: ActiveTransfer) {
        downloads.asked(id, at: transfer.exchange?.storedMoment ?? outdated.moment)
    }

    /// A request that comes after its URL was removed, or changed at its server, gets nothing that was asked for before.
    func partFromOutdated(_ request: TransferRequest) {
        if let store {
            for id in downloads.shared(by: request) {
                if let mark = transfer(id)?.exchange?.removals, store.isRemoved(mark) { downloads.unshare(id) }
            }
        }
        guard outdated.moment > 0 else { return }
        downloads.partFromOutdated(request) { url, moment in
            outdated.contains(url.cacheKey, since: moment)
                || outdated.contains(Self.outdatedKey(ofScheme: url.scheme), since: moment)
        }
    }

    /// For all its URLs: no URL is so short.
    static func outdatedKey(ofScheme scheme: String) -> String { scheme + ":" }

    /// Before the end of a body that is wanted is told: it is stored, and compared with what was. Why it is not the rest that
    /// was asked for, where it is not.
    func endBody(_ id: TransferID, _ transfer: ActiveTransfer) -> Failure? {
        guard let exchange = transfer.exchange else { return nil }
        if let failure = resumedWrongly(transfer) { return failure }
        guard downloads.disposition(id) == .receive else { return nil }
        exchange.end(isWhole: true, transfer)
        if let snapshot = exchange.snapshot, downloads.comparesWithStored(id), transfer.holds(snapshot) {
            downloads.isUnchanged(id)
        }
        return nil
    }

    /// Of a body that was resumed: what came is not what was announced.
    private func resumedWrongly(_ transfer: ActiveTransfer) -> Failure? {
        guard case .resume = transfer.exchange?.plan, transfer.response?.head.outcome == .resumed,
            transfer.expected >= 0, transfer.received != transfer.expected
        else { return nil }
        return transfer.received < transfer.expected
            ? Failure(.truncated, "the rest of the body ends after \(transfer.received) of \(transfer.expected) bytes")
            : Failure(.protocolError, "the server sent more than the rest of the body")
    }

    /// What could not be decoded is not kept as if it were good.
    func doubtStored(_ failure: Failure, _ id: TransferID, _ variant: Int, _ transfer: ActiveTransfer) {
        guard let store, let exchange = transfer.exchange, let options = downloads.decodeOptions(id, variant: variant)
        else { return }
        let consequence = DecodingRules.consequence(
            of: failure, options, transfer.request.hooks?.kinds ?? [],
            outcome: transfer.response?.head.outcome ?? .network)
        exchange.doubt(consequence, store)
    }

    /// The picture may be handed out again.
    func keepPicture(_ image: DecodedImage, _ id: TransferID, _ variant: Int, _ transfer: ActiveTransfer) {
        guard image.isComplete, let exchange = transfer.exchange, exchange.entry?.response.extent == .whole,
            let options = downloads.decodeOptions(id, variant: variant),
            transfer.pictures[options] == nil, transfer.request.hooks?.kinds.contains(.transformBody) != true
        else { return }
        exchange.images?.keep(image, options)
    }
}
