/// How a request comes from the mailbox to the rules, and its end into the engine's hands.
extension Engine {
    func submit(_ end: consuming RequestEnd, _ now: Instant) {
        let slot = admit(end.subscription, now)
        subscriptions.put(end, at: slot)
    }

    /// Gives its slot.
    private func admit(_ subscription: Subscription, _ now: Instant) -> Int {
        let request = withCookies(subscription.request)
        partFromOtherCookies(request)
        partFromOutdated(request)
        let executor = subscription.executorIdentity.map { executors.use($0) } ?? 0
        let admission = downloads.submit(request, subscription.sharedOptions, executor: executor, now)
        let slot = SlotTable<Subscription>.slot(admission.subscriber)
        subscription.slot = UInt32(slot)
        subscription.transferSlot = UInt32(SlotTable<Transfer>.slot(admission.transfer))
        if admission.hasJoined {
            // Of many that ask for the same, one text of the URL is enough.
            if let request = downloads.request(admission.transfer) { subscription.share(request.url) }
            measureJoin(subscription)
            look(admission.transfer, now)
        }
        return slot
    }

    /// What has come of a body that was only to be handed over, for somebody who decodes it.
    private func look(_ id: TransferID, _ now: Instant) {
        guard downloads.awaitsLook(id) else { return }
        downloads.looked(id, transfer(id)?.probeBody(codec) ?? .unknown, now)
    }
}
