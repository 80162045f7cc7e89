/// What the engine measures on the way, and whom it tells (features B24, N1–N4). A clock is read where a transfer starts
/// and stops and where a request ends, never for a chunk.
extension Engine {
    /// A request has come to a transfer that was there.
    func measureJoin(_ subscription: Subscription) {
        subscription.markShared()
        measurements.look(at: Int(subscription.transferSlot)) { subscription.attach($0) }
        statistics.update { $0.join() }
    }

    /// There is something to measure of it: of one that waits there is not.
    func beginMeasurement(_ id: TransferID) {
        guard !measurements.isTaken(id.slot) else { return }
        measurements.put(statistics.makeMeasurement(), at: id.slot)
        measurements.look(at: id.slot) { measurement in
            downloads.forEachSubscriber(of: id) { subscriber in
                subscriptions.look(at: SlotTable<Subscription>.slot(subscriber)) { $0.attach(measurement) }
            }
        }
    }

    func noteLoad() {
        statistics.note(
            Load(
                waiting: downloads.waitingCount + downloads.restingCount + downloads.heldConsultationCount,
                running: downloads.runningCount,
                decoding: downloads.decodingCount, paused: downloads.pausedCount))
    }

    /// An attempt begins.
    func observeStart(_ id: TransferID) {
        beginMeasurement(id)
        let now = clock.now()
        measure(id) { statistics, meter in
            statistics.start(isRetry: meter.hasStarted)
            meter.start(now)
        }
        tell(.started, id, .ok, downloads.subscriberCount(id))
    }

    func measureFollow(_ id: TransferID) {
        measure(id) { statistics, meter in
            statistics.follow()
            meter.follow()
        }
    }

    func measureExchange(_ id: TransferID, _ times: TransferTimes) {
        measure(id) { statistics, meter in
            statistics.exchange(times)
            meter.exchange(times)
        }
    }

    func measureDecode(_ report: DecodeReport) {
        guard let options = downloads.decodeOptions(report.transfer, variant: report.variant) else { return }
        let pixels = report.image.map { UInt64($0.header.width) * UInt64($0.header.height) } ?? 0
        measure(report.transfer) { statistics, meter in
            meter.decoded(options, report.duration)
            if report.verdict != .fed { statistics.decoded(meter.decodeDuration(options), pixels: pixels) }
        }
    }

    /// Nothing of one that has not begun, or is over.
    private func measure(_ id: TransferID, _ body: (inout Statistics, inout TransferMeter) -> Void) {
        measurements.look(at: id.slot) { statistics.update($0, body) }
    }

    // MARK: The observer

    func observe(_ id: TransferID, _ milestone: Milestone, _ subscribers: Int) {
        switch milestone {
        case .answered: tell(.response, id, .ok, subscribers)
        case .stopped(let code):
            let now = clock.now()
            var hasStarted = false
            measure(id) { statistics, meter in
                // It may have been started and ended in one go: then it never got to the transport.
                hasStarted = meter.hasStarted
                guard hasStarted else { return }
                meter.stop(now)
                statistics.stop(transfer: meter.transferDuration(now))
            }
            guard hasStarted else { return }
            tell(.stopped, id, code, subscribers)
            if code == .ok { tell(.finished, id, .ok, subscribers) }
        }
    }

    private func tell(_ kind: Observation.Kind, _ id: TransferID, _ code: ErrorCode, _ subscribers: Int) {
        guard let observer, let transfer = transfer(id), let measurement = measurements[id.slot] else { return }
        observer.observe(
            Observation(
                kind: kind, transfer: id, url: transfer.request.url, code: code,
                status: transfer.response?.head.status ?? 0, subscribers: subscribers,
                metrics: measurement.metrics(clock.now())))
        clock.passes()
    }

    func replaceObserver(_ new: (any TransferObserver)?) {
        let old = observer
        observer = new
        downloads.hasObserver = new != nil
        old?.close()
    }

    /// The engine ends; `untaken`: messages that came too late, of which some still owe a word to somebody. Whose process
    /// exits hears nothing any more.
    func settle(_ untaken: consuming Queue<Message>, isExiting: Bool) {
        if isExiting { return leak(untaken) }
        replaceObserver(nil)
        while let message = untaken.popFirst() {
            switch consume message {
            // It is taken before the command behind which none is.
            case .submit: preconditionFailure("a mailbox that is shut down has no request left")
            case .end(let requests): requests.end(statistics) { clock.passes() }
            case .command(let command): if case .setObserver(let observer) = command { observer?.close() }
            }
        }
    }

    /// In debug builds a request that is let go of without its end is a trap, and at exit() it may have none.
    private func leak(_ untaken: consuming Queue<Message>) {
        #if DEBUG
            while let message = untaken.popFirst() {
                UnsafeMutablePointer<Message>.allocate(capacity: 1).initialize(to: message)
            }
        #endif
    }
}
