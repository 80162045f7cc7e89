/// What the rules want a subscriber told, with the values that it is told.
extension Engine {
    func emit(_ subscriber: SubscriberID, _ notice: Notice) {
        guard let subscription = subscriptions[SlotTable<Subscription>.slot(subscriber)],
            let transfer = active[Int(subscription.transferSlot)]
        else { return }
        defer { clock.passes() }
        switch notice {
        case .started: subscription.post(.started)
        case .response:
            if let response = transfer.response { subscription.post(.response(response, transfer.progress)) }
        case .header(let variant):
            if let header = transfer.variants[variant].header { subscription.post(.header(header, transfer.progress)) }
        case .progress(let received, let expected):
            subscription.post(.progress(Progress(received: received, expected: expected)))
        case .partial(let variant):
            guard var image = transfer.variants[variant].image else { break }
            image.scaleFactor = subscription.scaleFactor
            subscription.post(.partial(image, transfer.progress))
        }
    }

    /// nil: it has ended, or never came.
    func id(of subscription: Subscription) -> SubscriberID? {
        let slot = Int(subscription.slot)
        guard subscriptions.look(at: slot, { $0 === subscription }) == true else { return nil }
        return downloads.subscriber(at: slot)
    }

    func end(_ subscriber: SubscriberID, _ outcome: Outcome) {
        // One of the rules' own, whom nobody tells anything, has none.
        guard let end = subscriptions.take(SlotTable<Subscription>.slot(subscriber)) else { return }
        let executor = end.subscription.executorIdentity.flatMap { executors.number($0) }
        let result = result(of: end.subscription, outcome)
        end.post(result)
        if let executor { executors.leave(executor) }
        clock.passes()
    }

    private func result(of subscription: Subscription, _ outcome: Outcome) -> DownloadResult {
        active.look(at: Int(subscription.transferSlot)) { result(of: subscription, $0, outcome) }
            ?? resultOfWaiting(subscription, outcome)
    }

    private func result(
        of subscription: Subscription, _ transfer: ActiveTransfer, _ outcome: Outcome
    ) -> DownloadResult {
        var failure: Failure?
        var preview: [UInt8] = []
        var content = DownloadResult.Content()
        switch outcome {
        case .success(let variant):
            if let variant { addImage(transfer, variant, to: &content, of: subscription) }
            if subscription.options.wantsBody {
                content.body = transfer.contiguousBody()
                // What is told at once counts no longer than this takes.
                if !subscription.isToldAtOnce {
                    let charge = bodyCharge(transfer, for: subscription)
                    content.bodyCharge = charge
                    content.bodyWaits = wait(charge, for: subscription, &transfer.bodyWaits)
                }
                if content.body == nil {
                    failure = Failure(.outOfMemory, "no memory to hand over the body in one piece")
                }
            }
        case .failure(let reason, let salvaged):
            failure = namingLeftOut(reason, transfer)
            if let salvaged { addImage(transfer, salvaged, to: &content, of: subscription) }
        }
        if let failure, ResponseRules.showsBody(failure.code) { preview = transfer.firstBytes() }
        content.response = transfer.response
        return result(of: subscription, failure, transfer.progress, preview, content, redirect: transfer.redirect)
    }

    /// A failure for want of credentials says that a redirect has left out the request's own.
    private func namingLeftOut(_ failure: Failure, _ transfer: ActiveTransfer) -> Failure {
        guard failure.code == .invalidStatus, failure.status == 401 || failure.status == 403,
            let redirect = transfer.redirect, redirect.leavesOrigin
        else { return failure }
        let first = firstHopRequest(transfer)
        guard first.namesSomebody, !hopRequest(transfer).namesSomebody else { return failure }
        let isBack = redirect.url.isSameOrigin(as: first.url)
        var named = failure
        named.message +=
            isBack
            ? "; the credentials were not sent, since a redirect had left their server"
            : "; the credentials are for \(first.url.originText) and were not sent"
        return named
    }

    /// Of one that never left the queue.
    private func resultOfWaiting(_ subscription: Subscription, _ outcome: Outcome) -> DownloadResult {
        var failure: Failure?
        if case .failure(let reason, _) = outcome { failure = reason }
        return result(of: subscription, failure, Progress(), [], DownloadResult.Content())
    }

    private func result(
        of subscription: Subscription, _ failure: Failure?, _ progress: Progress, _ preview: [UInt8],
        _ content: consuming DownloadResult.Content, redirect: Redirect? = nil
    ) -> DownloadResult {
        let contentType = PrintableText.escaped(content.response?.head.mediaType ?? "")
        return DownloadResult(
            failure: failure, message: failure.map { subscription.message(of: $0, redirectedTo: redirect?.url) } ?? "",
            progress: progress,
            metrics: statistics.end(subscription, failure?.code ?? .ok, clock.now()), contentType: contentType,
            preview: preview, content: content)
    }

    /// Pictures are shared by those who ask for the same pixels; what they are worth in the layout is each one's own.
    private func addImage(
        _ transfer: ActiveTransfer, _ variant: Int, to content: inout DownloadResult.Content,
        of subscription: Subscription
    ) {
        content.imageCharge = transfer.variants[variant].charge
        if let charge = content.imageCharge, !subscription.isToldAtOnce {
            content.imageWaits = wait(charge, for: subscription, &transfer.variants[variant].waits)
        }
        guard var image = transfer.variants[variant].image else { return }
        image.scaleFactor = subscription.scaleFactor
        content.image = Boxed(wrappedValue: image)
    }

    /// What is charged waits for the subscription's executor from now on; once, however many terminals there carry it.
    private func wait(
        _ charge: MemoryCharge, for subscription: Subscription, _ known: inout [TerminalCharge<WaitingCharge>]
    ) -> WaitingCharge? {
        guard let executor = subscription.executorIdentity, let number = executors.number(executor) else { return nil }
        for waits in known { if let waits = waits.charge, waits.executor == number { return waits } }
        let waits = WaitingCharge(charge.bytes, for: number, ledger)
        executors.useAgain(number)
        downloads.waits(charge.bytes, for: number)
        let goesOn = goesOn(subscription)
        if goesOn { known.removeAll { $0.charge == nil } }
        known.append(TerminalCharge(waits, goesOn: goesOn))
        return waits
    }

    /// The body leaves with a terminal: its bytes count until the terminal has been delivered.
    private func bodyCharge(_ transfer: ActiveTransfer, for subscription: Subscription) -> MemoryCharge {
        if let charge = transfer.bodyCharge?.charge { return charge }
        let bytes = Int64(transfer.body.count)
        downloads.holdMemory(bytes)
        let charge = MemoryCharge(bytes, ledger)
        transfer.bodyCharge = TerminalCharge(charge, goesOn: goesOn(subscription))
        return charge
    }

    /// The transfer of one that ends, for others.
    private func goesOn(_ ended: Subscription) -> Bool { downloads.hasTransfer(at: Int(ended.transferSlot)) }
}
