/// The cache on the way of a request and of what is answered (DESIGN section 6). The rules decide when it is consulted
/// and what follows (Downloads+Caching), the rules of caching what may be used (CacheRules, ResumeRules).
///
/// What is answered without the network is no transfer on it: no observer is told, and the statistics count it apart.
extension Engine {
    // MARK: Consulting

    func consult(_ id: TransferID, _ consultation: Consultation) {
        open(id)
        guard let transfer = transfer(id) else { return }
        switch consultation.kind {
        case .first: if let outgoing = transfer.outgoing { transfer.startHop(outgoing.url, redirect: nil) }
        case .redirect(let redirect): advance(id, transfer, redirect)
        case .challenge(let credential): identify(transfer, credential)
        case .again: break
        case .answer, .standIn: return findReplacement(id, consultation, transfer)
        }
        lookUp(id, consultation.number, transfer)
    }

    private func lookUp(_ id: TransferID, _ number: UInt64, _ transfer: ActiveTransfer) {
        transfer.exchange = nil
        let question = cacheQuestion(id, transfer)
        let exchange = CacheExchange(key: transfer.url.cacheKey, question, store, at: outdated.moment)
        downloads.asked(id, at: exchange.moment)
        transfer.exchange = exchange
        let choice = CacheChoice(
            question, wallTime: clock.wallTime(), needsBody: downloads.needsStoredBody(id),
            compares: downloads.comparesWithStored(id), isQueued: !downloads.isRunning(id))
        guard let store else { return prompt(.found(id, number, choice, nil)) }
        if findPictures(id, number, transfer, exchange, store) { return }
        if exchange.request.method == "GET" { exchange.images = store.images?.expect(exchange.key) }
        if let found = store.findInMemory(exchange.key, choice.chooseInMemory) {
            return prompt(.found(id, number, choice, found))
        }
        choice.startOver()
        store.find(exchange.key, choose: { choice.choose($0) }) { [mailbox] in
            mailbox.post(.found(id, number, choice, $0))
        }
    }

    /// Where everybody wants pictures that are kept, nothing is read at all.
    private func findPictures(
        _ id: TransferID, _ number: UInt64, _ transfer: ActiveTransfer, _ exchange: CacheExchange, _ store: any Store
    ) -> Bool {
        guard let images = store.images, let wanted = downloads.wantedPictures(id) else { return false }
        let choice = CacheChoice(
            exchange.question, wallTime: clock.wallTime(), needsBody: false,
            compares: downloads.comparesWithStored(id), isQueued: true)
        let entries = images.entries(exchange.key)
        guard !entries.isEmpty, case .entry(let index, _) = choice.chooseInMemory(entries),
            case .answer = choice.decision, takePictures(wanted, of: entries[index].id, images, transfer)
        else { return false }
        prompt(.found(id, number, choice, FoundEntry(entry: entries[index], body: [], isFromMemory: true)))
        return true
    }

    /// The same of what has been chosen before: it may have gone meanwhile.
    private func findPictures(
        _ id: TransferID, of entry: StoredEntry, _ transfer: ActiveTransfer, _ exchange: CacheExchange,
        _ store: any Store
    ) -> Bool {
        guard let images = store.images, let wanted = downloads.wantedPictures(id),
            images.entries(exchange.key).contains(where: { $0.id == entry.id })
        else { return false }
        return takePictures(wanted, of: entry.id, images, transfer)
    }

    private func takePictures(
        _ wanted: [DecodeOptions], of id: EntryID, _ images: any ImageStore, _ transfer: ActiveTransfer
    ) -> Bool {
        transfer.pictures = [:]
        for options in wanted {
            guard let image = images.image(id, options) else {
                transfer.pictures = [:]
                return false
            }
            transfer.pictures[options] = image
        }
        return true
    }

    /// The store has been looked into. `found`: what the choice was about, with the body where one was asked for.
    func found(_ id: TransferID, _ number: UInt64, _ choice: CacheChoice, _ found: FoundEntry?, _ now: Instant) {
        guard downloads.isConsulting(id, number), let transfer = transfer(id), let exchange = transfer.exchange
        else { return }
        let isReplacement = exchange.replacement != nil
        if found != nil, downloads.postpones(id, number, isReplacement: isReplacement, now) {
            if !isReplacement { downloads.forgetLookUp(id) }
            return
        }
        if let replacement = exchange.replacement {
            return replace(id, number, transfer, exchange, replacement, found, now)
        }
        // Somebody has come meanwhile who wants more.
        let wantsMore = downloads.needsStoredBody(id) && !choice.needsBody && transfer.pictures.isEmpty
        if wantsMore || downloads.comparesWithStored(id) && !choice.compares {
            transfer.pictures = [:]
            return lookUp(id, number, transfer)
        }
        choice.chooseIfNotAsked()
        if choice.isTooLarge, found != nil {
            downloads.forgetLookUp(id)
            return downloads.consulted(id, number, .later, now)
        }
        if choice.isSnapshot, let found {
            exchange.snapshot = found.body
            exchange.snapshotCharge = charge(found.entry.response.bodyLength, of: id)
        }
        if !choice.isAnswer { exchange.known = choice.entriesForAsker }
        var fallbackUntil: Instant?
        switch (choice.takeDecision(), found) {
        case (.answer(_, let head, let outcome, let revalidated), let found?):
            exchange.entry = found.entry
            exchange.images?.areOf(found: found.entry)
            store?.use(found.entry.id)
            store?.count(storeOutcome(outcome, found, transfer))
            // Who has the answer may end with it.
            let asked = revalidated == nil ? nil : downloads.firstOptions(id)
            play(id, number, head, found.body, now, length: found.entry.response.bodyLength)
            if let asked, let revalidated { revalidate(id, transfer, revalidated, asked, now) }
            return
        case (.answerPart(_, let head, let outcome, let range, let revalidated), let found?):
            store?.use(found.entry.id)
            store?.count(storeOutcome(outcome, found, transfer))
            let asked = revalidated == nil ? nil : downloads.firstOptions(id)
            play(id, number, head, range.map { found.body.part($0) } ?? [], now)
            if let asked, let revalidated { revalidate(id, transfer, revalidated, asked, now) }
            return
        case (.validate(_, let adding, let stale), let found?):
            exchange.plan = .validate(found.entry, stale)
            exchange.added = adding
            fallbackUntil = end(of: stale, now)
        case (.resume(_, let adding), let found?):
            exchange.plan = .resume(found.entry, found.body)
            exchange.added = adding
        case (.forward(let adding, let stores), _):
            exchange.plan = .fetch(stores: stores)
            exchange.added = adding
            store?.count(.miss)
        case (.unavailable, _): return unavailable(id, number, now)
        case (_, nil):
            // It was there a moment ago.
            if transfer.request.cacheMode == .only { return unavailable(id, number, now) }
            exchange.plan = .fetch(stores: true)
            store?.count(.miss)
        }
        if exchange.storedMoment == nil { downloads.forgetLookUp(id) }
        downloads.consulted(id, number, .forward(fallbackUntil: fallbackUntil), now)
    }

    private func unavailable(_ id: TransferID, _ number: UInt64, _ now: Instant) {
        store?.count(.miss)
        let cause = store == nil ? "the downloader has no cache" : "nothing that is stored may be used"
        let failure = Failure(.notCached, "\(cause), and nothing is asked of the server")
        downloads.consulted(id, number, .unavailable(failure), now)
    }

    private func storeOutcome(
        _ outcome: CacheOutcome, _ found: FoundEntry, _ transfer: ActiveTransfer
    ) -> StoreOutcome {
        switch outcome {
        case .stale: .stale
        case .validated: .validated
        case .network, .hit, .resumed:
            !transfer.pictures.isEmpty ? .imageHit : found.isFromMemory ? .memoryHit : .hit
        }
    }

    /// So long it may stand in for a server that cannot be reached; nil: not at all.
    private func end(of stale: StaleUse, _ now: Instant) -> Instant? {
        switch stale {
        case .never: return nil
        case .whenUnreachable(.max): return Instant(nanoseconds: .max)
        case .whenUnreachable(let until), .onError(let until):
            let wallTime = clock.wallTime()
            guard wallTime <= until else { return nil }
            let left = (CheckedNumber(until) - CheckedNumber(wallTime)) * 1_000
            return now.advanced(byMilliseconds: left?.length ?? .max)
        }
    }

    private func charge(_ bytes: Int64, of id: TransferID) -> MemoryCharge {
        downloads.holdMemory(bytes, of: id)
        return MemoryCharge(bytes, ledger)
    }

    // MARK: What is stored

    /// Reports a stored response to the rules as if it were received: at once, and without a place. `length`: of its
    /// body where that is not read.
    private func play(
        _ id: TransferID, _ number: UInt64, _ head: ResponseHead, _ body: [BodySlice], _ now: Instant,
        length: Int64 = 0
    ) {
        guard let transfer = transfer(id) else { return }
        beginMeasurement(id)
        measurements.look(at: id.slot) { $0.update { $0.answerFromCache(now, head.httpVersion) } }
        downloads.consulted(id, number, .play, now)
        guard downloads.contains(id) else { return }
        receive(head, of: transfer)
        // What a hook says to it is looked at when all has been reported.
        let disposition = downloads.headReceived(id, head, location: location(head, of: transfer), retryAfter: nil, now)
        let isRedirect = RedirectRules.isRedirect(head.status) && downloads.isRedirecting(id)
        if !transfer.isSent, !isRedirect { statistics.update { $0.answerFromCache() } }
        performTakenActions()
        guard downloads.contains(id) else { return }
        if disposition == .receive {
            if !body.isEmpty { adopt(body, id, transfer) } else { skip(length, id, transfer) }
        }
        downloads.finished(id, clock.now())
    }

    /// Nobody has a use for the bytes, but for their number.
    private func skip(_ count: Int64, _ id: TransferID, _ transfer: ActiveTransfer) {
        guard count > 0, !downloads.isBodiless(id) else { return }
        transfer.skip(count)
        measurements.look(at: id.slot) { $0.setBodyBytes(count) }
        downloads.bodySkipped(id, count, clock.now())
        performTakenActions()
    }

    /// Bytes that are there already count like received ones.
    func adopt(_ slices: [BodySlice], _ id: TransferID, _ transfer: ActiveTransfer) {
        if downloads.needsProbe(id) {
            for slice in slices {
                if let size = slice.withBytes({ transfer.probe($0, codec) }) { downloads.probed(id, size) }
            }
        }
        transfer.adopt(slices)
        measurements.look(at: id.slot) { $0.setBodyBytes(transfer.received) }
        downloads.bodyReceived(id, Int(transfer.received), clock.now())
        performTakenActions()
    }

    /// What the server's answer led to, or what stands in for it: its body is read now, and not before it is needed.
    private func findReplacement(_ id: TransferID, _ consultation: Consultation, _ transfer: ActiveTransfer) {
        guard let exchange = transfer.exchange, let store else { return giveUpReplacement(id, consultation.number) }
        if consultation.kind == .standIn, case .validate(let entry, _) = exchange.plan,
            contextSent(id, transfer) == exchange.question.request.context
        {
            exchange.replacement = CacheExchange.Replacement(entry: entry, outcome: .stale)
        }
        guard let replacement = exchange.replacement else { return giveUpReplacement(id, consultation.number) }
        let number = consultation.number
        let choice = CacheChoice(exchange.question, wallTime: 0, needsBody: false, compares: false, isQueued: true)
        let entry = replacement.entry
        guard downloads.needsStoredBody(id), !findPictures(id, of: entry, transfer, exchange, store) else {
            return prompt(.found(id, number, choice, FoundEntry(entry: entry, body: [], isFromMemory: true)))
        }
        exchange.images = store.images?.expect(exchange.key)
        let choose: @Sendable ([StoredEntry]) -> StoreChoice = { entries in
            entries.firstIndex { $0.id == entry.id }.map { .entry($0, withBody: true) } ?? .nothing
        }
        if let found = store.findInMemory(exchange.key, { choose(copy $0) }) {
            return prompt(.found(id, number, choice, found))
        }
        store.find(exchange.key, choose: choose) { [mailbox] in mailbox.post(.found(id, number, choice, $0)) }
    }

    private func giveUpReplacement(_ id: TransferID, _ number: UInt64) {
        let question = CacheQuestion(CacheRequest(method: "GET", fields: [], mode: .use, context: nil))
        let choice = CacheChoice(question, wallTime: 0, needsBody: false, compares: false, isQueued: false)
        prompt(.found(id, number, choice, nil))
    }

    private func replace(
        _ id: TransferID, _ number: UInt64, _ transfer: ActiveTransfer, _ exchange: CacheExchange,
        _ replacement: CacheExchange.Replacement, _ found: FoundEntry?, _ now: Instant
    ) {
        guard let found else {
            // It is gone: the server is asked once more, without a condition.
            exchange.forget()
            return downloads.consulted(id, number, .forward(fallbackUntil: nil), now)
        }
        exchange.entry = replacement.entry
        exchange.images?.areOf(found: found.entry)
        if replacement.isLast { store?.remove(replacement.entry.id) } else { store?.use(replacement.entry.id) }
        store?.count(storeOutcome(replacement.outcome, found, transfer))
        let head = CacheRules.head(of: replacement.entry, outcome: replacement.outcome, wallTime: clock.wallTime())
        play(id, number, head, found.body, now, length: found.entry.response.bodyLength)
    }

    /// RFC 5861 section 3: what was stale is validated while nobody waits for it.
    ///
    /// As whom the exchange asks: what was dropped on the way to another origin is not sent there now.
    private func revalidate(
        _ id: TransferID, _ transfer: ActiveTransfer, _ fields: [HeaderField], _ asked: SubscriberOptions,
        _ now: Instant
    ) {
        let hop = hopRequest(id, transfer)
        let request = TransferRequest(
            url: hop.url, fields: fields, body: hop.body, identity: hop.identity, followsRedirects: false,
            cacheMode: .refresh)
        let withCookies = withCookies(request)
        partFromOtherCookies(withCookies)
        partFromOutdated(withCookies)
        guard let revalidation = downloads.revalidate(withCookies, asked, now) else { return }
        beginMeasurement(revalidation)
    }
}

extension [BodySlice] {
    /// These bytes of all of them.
    func part(_ range: Range<Int64>) -> [BodySlice] {
        var parts: [BodySlice] = []
        var start: Int64 = 0
        for slice in self {
            let end = start + Int64(slice.count)
            let (from, to) = (Swift.max(range.lowerBound, start), Swift.min(range.upperBound, end))
            if from < to { parts.append(slice.part(Int(from - start)..<Int(to - start))) }
            start = end
        }
        return parts
    }
}
