/// In which security context a hop is asked, and what a cache is asked of it.
extension Engine {
    func cacheQuestion(_ id: TransferID, _ transfer: ActiveTransfer) -> CacheQuestion {
        let isUsual = isAskedAsItCame(transfer)
        if isUsual, let known = knownQuestion(transfer.request) { return known }
        let request = hopRequest(id, transfer)
        let question = CacheQuestion(
            CacheRequest(
                method: request.method, fields: request.fields, mode: transfer.request.cacheMode,
                followsRedirects: transfer.request.followsRedirects, staleLimit: transfer.request.staleLimit,
                context: storedContext(of: request)))
        // Without a context where a loader was registered a moment ago: that may be over soon.
        if isUsual, question.request.context != nil { questions.keep(question, transfer.request) }
        return question
    }

    /// A question that was asked before holds until the store has another key.
    private func knownQuestion(_ request: TransferRequest) -> CacheQuestion? {
        guard let known = questions.question(request) else { return nil }
        if let context = known.request.context, let store, !context.isOfKey(store.keyNumber) {
            questions.forgetAll()
            return nil
        }
        return known
    }

    /// Who asks with other cookies shares nothing with it.
    func withCookies(_ request: TransferRequest) -> TransferRequest {
        guard request.identity.usesCookies, let transport else { return request }
        let asked = TransportRequest(url: request.url, request.manner, maximumHeaderBytes: 0)
        return request.asked(with: transport.cookies(for: asked))
    }

    /// Nobody joins a transfer any more that was sent, on any hop, with other cookies than the jar has now: it may have
    /// changed while the transfer waited, and again since.
    func partFromOtherCookies(_ request: TransferRequest) {
        guard request.identity.usesCookies, let transport else { return }
        for id in downloads.shared(by: request) {
            let sent = transfer(id)?.cookiesSent ?? []
            if sent.contains(where: { transport.cookies(for: $0.request) != $0.cookies }) { downloads.unshare(id) }
        }
    }

    /// A hop goes to its server, with what the jar has by now.
    func noteCookies(_ id: TransferID, _ transfer: ActiveTransfer, _ request: TransportRequest) {
        guard request.usesCookies, let transport else { return }
        let cookies = transport.cookies(for: request)
        transfer.cookiesSent.append(CookiesSent(request, cookies))
        if transfer.redirect == nil {
            downloads.asked(id, withOtherCookies: cookies != transfer.request.identity.cookies)
        }
    }

    /// The context of the hop that is sent now; nil: its answer is not stored.
    func contextSent(_ id: TransferID, _ transfer: ActiveTransfer) -> StoredContext? {
        if isAskedAsItCame(transfer), let known = knownQuestion(transfer.request) {
            return known.request.context
        }
        return storedContext(of: hopRequest(id, transfer))
    }

    /// The context of the hop that was answered: the cookies are those that went with it.
    func contextAnswered(_ id: TransferID, _ transfer: ActiveTransfer, _ head: ResponseHead) -> StoredContext? {
        storedContext(of: hopRequest(id, transfer), cookies: head.sentCookies)
    }

    /// Neither a hook, a redirect nor a challenge has changed it, and what is sent depends on nothing else.
    private func isAskedAsItCame(_ transfer: ActiveTransfer) -> Bool {
        transfer.isAsItCame && !transfer.request.identity.usesCookies
            && transport?.hasLoader(for: transfer.request.url) != true
    }

    /// nil where a loader answers: what the host says in a server's place is nobody else's business, nor is a server's answer the
    /// host's.
    private func storedContext(of request: TransportRequest) -> StoredContext? {
        if transport?.hasLoader(for: request.url) == true { return nil }
        return storedContext(of: request, cookies: request.usesCookies ? transport?.cookies(for: request) : nil)
    }

    private func storedContext(of request: TransportRequest, cookies: [UInt8]?) -> StoredContext? {
        guard let store, let transport else { return nil }
        let context = request.manner.context(cookies: cookies)
        let keyNumber = store.keyNumber
        var stored = StoredContext(context, downloader: transport.trust) { store.digest($0) }
        stored?.keyNumber = keyNumber
        return stored
    }
}
