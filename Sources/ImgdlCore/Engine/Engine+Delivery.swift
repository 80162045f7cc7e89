/// What the rules want a subscriber told, with the values that it is told.
extension Engine {
    func emit(_ subscriber: SubscriberID, _ notice: Notice) {
        guard let subscription = subscription(subscriber), let transfer = transfer(subscription.transferID) else {
            return
        }
        switch notice {
        case .started: subscription.post(.started)
        case .response:
            if let response = transfer.response { subscription.post(.response(response, transfer.progress)) }
        case .header(let variant):
            if let header = transfer.variants[variant].header { subscription.post(.header(header, transfer.progress)) }
        case .progress(let received, let expected):
            subscription.post(.progress(Progress(received: received, expected: expected)))
        case .partial(let variant):
            if let image = transfer.variants[variant].image { subscription.post(.partial(image, transfer.progress)) }
        }
    }

    /// nil: one of the rules' own, whom nobody tells anything.
    func subscription(_ subscriber: SubscriberID) -> Subscription? {
        let slot = SlotTable<Subscription>.slot(subscriber)
        return slot < subscriptions.count ? subscriptions[slot] : nil
    }

    func end(_ subscriber: SubscriberID, _ outcome: Outcome) {
        guard let subscription = subscription(subscriber) else { return }
        subscriptions[SlotTable<Subscription>.slot(subscriber)] = nil
        let transfer = transfer(subscription.transferID)
        var result: DownloadResult
        switch outcome {
        case .success(let variant):
            result = DownloadResult(failure: nil, message: "", response: transfer?.response)
            if let variant {
                result.image = transfer?.variants[variant].image
                if let charge = transfer?.variants[variant].charge { subscription.charges.append(charge) }
            }
            if subscription.options.wantsBody {
                result.body = transfer?.contiguousBody()
                if let transfer { subscription.charges.append(bodyCharge(transfer)) }
                if result.body == nil {
                    result.failure = Failure(.outOfMemory, "no memory to hand over the body in one piece")
                }
            }
        case .failure(let failure, let salvaged):
            result = DownloadResult(failure: failure, message: "", response: transfer?.response)
            if let salvaged {
                result.image = transfer?.variants[salvaged].image
                if let charge = transfer?.variants[salvaged].charge { subscription.charges.append(charge) }
            }
        }
        if let transfer { result.progress = transfer.progress }
        result.contentType = result.response?.head.mediaType ?? ""
        result.metrics = measureEnd(subscription, result.code)
        if let failure = result.failure {
            if ResponseRules.showsBody(failure.code) { result.preview = transfer?.firstBytes() ?? [] }
            result.message = "\(subscription.request.url.redacted): \(failure.message)"
        }
        subscription.post(.terminal(result))
    }

    /// The body leaves with a terminal: its bytes count until the terminal has been delivered.
    private func bodyCharge(_ transfer: ActiveTransfer) -> MemoryCharge {
        if let charge = transfer.bodyCharge { return charge }
        let bytes = transfer.progress.received
        downloads.holdMemory(bytes)
        let charge = MemoryCharge(bytes, ledger)
        transfer.bodyCharge = charge
        return charge
    }
}
