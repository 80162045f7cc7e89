/// What the engine measures on the way, and whom it tells (features B24, N1–N4). A clock is read where a transfer starts
/// and stops and where a request ends, never for a chunk.
extension Engine {
    func measurement(_ id: TransferID) -> TransferMeasurement? {
        let slot = SlotTable<TransferMeasurement>.slot(id.rawValue)
        return slot < measurements.count ? measurements[slot] : nil
    }

    /// A request has come to a transfer that was there.
    func measureJoin(_ subscription: Subscription) {
        subscription.outstanding.attach(measurement(subscription.transferID), isShared: true, to: subscription)
        statistics.update { $0.join() }
    }

    /// There is something to measure of it: of one that waits there is not.
    @discardableResult
    func beginMeasurement(_ id: TransferID) -> TransferMeasurement {
        if let known = measurement(id) { return known }
        let slot = SlotTable<TransferMeasurement>.slot(id.rawValue)
        while measurements.count <= slot { measurements.append(nil) }
        let measurement = TransferMeasurement(measurementLock)
        measurements[slot] = measurement
        downloads.forEachSubscriber(of: id) { subscriber in
            guard let subscription = subscription(subscriber) else { return }
            subscription.outstanding.attach(measurement, isShared: subscription.isShared, to: subscription)
        }
        return measurement
    }

    func noteLoad() {
        statistics.note(
            Load(
                waiting: downloads.waitingCount + downloads.restingCount, running: downloads.runningCount,
                decoding: downloads.decodingCount, paused: downloads.pausedCount))
    }

    /// An attempt begins.
    func observeStart(_ id: TransferID) {
        let measurement = beginMeasurement(id)
        let isRetry = measurement.hasStarted
        measurement.update { $0.start(clock.now()) }
        statistics.update { $0.start(isRetry: isRetry) }
        tell(.started, id, .ok, downloads.subscriberCount(id))
    }

    func measureFollow(_ id: TransferID) {
        measurement(id)?.update { $0.follow() }
        statistics.update { $0.follow() }
    }

    func measureExchange(_ id: TransferID, _ times: TransferTimes) {
        guard let measurement = measurement(id) else { return }
        measurement.update { $0.exchange(times) }
        statistics.update { $0.exchange(times) }
    }

    func measureDecode(_ report: DecodeReport) {
        guard let measurement = measurement(report.transfer),
            let options = downloads.decodeOptions(report.transfer, variant: report.variant)
        else { return }
        measurement.update { $0.decoded(options, report.duration) }
        guard report.verdict != .fed else { return }
        let pixels = report.image.map { UInt64($0.header.width) * UInt64($0.header.height) } ?? 0
        let duration = measurement.update { $0.decodeDuration(options) }
        statistics.update { $0.decoded(duration, pixels: pixels) }
    }

    /// What the terminal tells.
    func measureEnd(_ subscription: Subscription, _ code: ErrorCode) -> Metrics {
        let measurement = subscription.measurement
        let (submitted, isShared, now) = (subscription.submitted, subscription.isShared, clock.now())
        let metrics =
            measurement?.metrics(
                submitted: submitted, isShared: isShared, decode: subscription.options.decode, now)
            ?? TransferMeter().metrics(submitted: submitted, isShared: isShared, decode: nil, now)
        let hasStarted = measurement?.hasStarted ?? false
        statistics.update { $0.end(code, metrics, hasStarted: hasStarted) }
        return metrics
    }

    /// These, which never had a transfer.
    func end(_ subscriptions: [Subscription], _ failure: Failure?) {
        for subscription in subscriptions {
            // A batch announces its end as a subscription that is no request.
            if subscription.id != 0 { statistics.update { $0.drop(failure?.code ?? .ok) } }
            subscription.end(failure)
        }
    }

    // MARK: The observer

    func observe(_ id: TransferID, _ milestone: Milestone, _ subscribers: Int) {
        switch milestone {
        case .answered: tell(.response, id, .ok, subscribers)
        case .stopped(let failure):
            // It may have been started and ended in one go: then it never got to the transport.
            guard let measurement = measurement(id), measurement.hasStarted else { return }
            let now = clock.now()
            measurement.update { $0.stop(now) }
            statistics.update { $0.stop(measurement.metrics(now)) }
            tell(.stopped, id, failure?.code ?? .ok, subscribers)
            if failure == nil { tell(.finished, id, .ok, subscribers) }
        }
    }

    private func tell(_ kind: Observation.Kind, _ id: TransferID, _ code: ErrorCode, _ subscribers: Int) {
        guard let observer, let transfer = transfer(id), let measurement = measurement(id) else { return }
        observer.observe(
            Observation(
                kind: kind, transfer: id, url: transfer.request.url, code: code,
                status: transfer.response?.head.status ?? 0, subscribers: subscribers,
                metrics: measurement.metrics(clock.now())))
    }

    func replaceObserver(_ new: (any TransferObserver)?) {
        let old = observer
        observer = new
        old?.close()
    }

    /// The engine ends; `untaken`: commands that came too late, of which some still owe a word to somebody. Whose process
    /// exits hears nothing any more.
    func settle(_ untaken: [Command], isExiting: Bool) {
        guard !isExiting else { return }
        replaceObserver(nil)
        for command in untaken {
            switch command {
            case .setObserver(let observer): observer?.close()
            case .end(let subscriptions, let failure): end(subscriptions, failure)
            default: break
            }
        }
    }
}
