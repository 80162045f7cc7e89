/// The application is in the background (features O4): only what asked to go on there starts and runs, for as long as
/// the grace is. The rest of what runs is paused, without a place, and goes on when there is one in the foreground.
/// What waits for another attempt stays where it is, its clocks standing still as those of what is paused.
extension Downloads {
    struct Background {
        /// Counts stays in the background: a grace of an earlier one ends nothing.
        var number: UInt64
        var graceEnd: Instant?
        /// The grace has ended; nothing starts.
        var isOver = false
    }

    /// Milliseconds of grace; nil: without end. Called again it begins a new grace.
    package mutating func enterBackground(grace: Int64?, _ now: Instant) {
        backgroundStays += 1
        let end = grace.map { now.advanced(byMilliseconds: $0) }
        background = Background(number: backgroundStays, graceEnd: end)
        remindOfGrace()
        for id in running { reconsider(id, now) }
        updateClocksOfRetried(now)
        startWaiting(now)
    }

    package mutating func enterForeground(_ now: Instant) {
        background = nil
        if transfers.count == 0 { forgetDeadlines() }
        updateClocksOfRetried(now)
        startWaiting(now)
    }

    /// Whether it goes on in the background may have changed with its subscribers.
    mutating func reconsider(_ id: TransferID, _ now: Instant) {
        let continues = transfers[id].continuesInBackground
        switch transfers[id].phase {
        case .waiting:
            waiting.setContinuesInBackground(SlotTable<Transfer>.slot(id), continues)
            updateClocks(id, now)
        case .resting: updateClocks(id, now)
        case .asking, .consulting, .connecting, .receiving:
            // What came from the cache needs no place, and is soon over.
            guard background != nil, !continues, transfers[id].place >= 0 else { return }
            releasePlace(id)
            pause(id, .background, now)
            parked.append(id)
        case .transforming, .decoding: break
        }
    }

    /// Total timeouts while it waits: those that have begun stand still when it does not go on in the background.
    mutating func updateClocks(_ id: TransferID, _ now: Instant) {
        let standsStill = waitsForForeground(id)
        forEachSubscriber(id) { standsStill ? $0.stopClock($1, now) : $0.continueClock($1, now) }
    }

    private func waitsForForeground(_ id: TransferID) -> Bool {
        transfers[id].isWaiting && !mayGoOn(id)
    }

    /// In the foreground anything, in the background what was asked to, until its grace is over.
    private func mayGoOn(_ id: TransferID) -> Bool {
        guard let background else { return true }
        return !background.isOver && transfers[id].continuesInBackground
    }

    private mutating func updateClocksOfRetried(_ now: Instant) {
        for key in transfers.keys where transfers[key].isWaiting && transfers[key].hasStarted {
            updateClocks(TransferID(rawValue: key), now)
        }
    }

    /// Before anything new starts, in the order in which they were paused.
    mutating func resumeParked(_ now: Instant) {
        var stay: [TransferID] = []
        for id in parked where transfers.contains(id) && transfers[id].pauses.contains(.background) {
            let mayGoOn = mayGoOn(id)
            if mayGoOn { giveWay(to: id, now) }
            if mayGoOn, running.count < limits.maximumConcurrent,
                let place = waiting.takePlace(host(of: id))
            {
                occupy(id, place)
                // It goes on for one reason, and may have to wait for another.
                press(id, now)
                resume(id, .background, now)
            } else {
                stay.append(id)
            }
        }
        parked = stay
    }

    mutating func remindOfGrace() {
        guard let background, !background.isOver, let end = background.graceEnd else { return }
        remind(end, .grace(background.number))
    }

    /// Who went on in the background does so no longer; the others wait for the foreground.
    mutating func expireGrace(_ number: UInt64, _ now: Instant) {
        guard background?.number == number, background?.isOver == false else { return }
        background?.isOver = true
        let failure = Failure(.backgroundExpired, "the time that it may go on in the background is over")
        for subscriber in subscribers.keys {
            if subscribers.contains(subscriber), subscribers[subscriber].options.continuesInBackground {
                end(subscriber, .failure(failure), now)
            }
        }
    }

    // MARK: Pauses

    /// Paused, its connect and idle clocks stand still; in the background the total ones of its subscribers do, too.
    mutating func pause(_ id: TransferID, _ reason: Pauses, _ now: Instant) {
        if transfers[id].pauses.isEmpty {
            settleWait(id, now)
            transfers[id].pausedAt = now
            if hasExchange(id) { actions.append(.setPaused(id, true)) }
        }
        setPauses(id, transfers[id].pauses.union(reason))
        hasRoom = true
        if reason == .background { forEachSubscriber(id) { $0.stopClock($1, now) } }
    }

    mutating func resume(_ id: TransferID, _ reason: Pauses, _ now: Instant) {
        guard transfers[id].pauses.contains(reason) else { return }
        takeOut(reason, id, now)
        guard transfers[id].pauses.isEmpty else { return }
        if hasExchange(id) { actions.append(.setPaused(id, false)) }
        // What it had left before the pause it has left now.
        shiftClocks(id, by: now.nanoseconds - transfers[id].pausedAt.nanoseconds, now)
        if transfers[id].waitingSince != nil { transfers[id].waitingSince = now }
        watch(id)
    }

    /// The transport can be told something of it: it has begun, and its end has not come.
    func hasExchange(_ id: TransferID) -> Bool {
        transfers[id].isAtTransport && transfers[id].heldEnd == nil && !transfers[id].cache.isPlaying
    }

    /// The transport has nothing more of it to pause.
    mutating func unpause(_ id: TransferID, _ now: Instant) {
        takeOut(.background, id, now)
        takeOut(.memory, id, now)
    }

    private mutating func takeOut(_ reason: Pauses, _ id: TransferID, _ now: Instant) {
        guard transfers[id].pauses.contains(reason) else { return }
        setPauses(id, transfers[id].pauses.subtracting(reason))
        if reason == .background { forEachSubscriber(id) { $0.continueClock($1, now) } }
    }

    /// The one place where they change, so that they are counted.
    mutating func setPauses(_ id: TransferID, _ pauses: Pauses) {
        let before = transfers[id].pauses
        pausedCount += (pauses.standsStill ? 1 : 0) - (before.standsStill ? 1 : 0)
        parkedCount += (pauses.contains(.background) ? 1 : 0) - (before.contains(.background) ? 1 : 0)
        transfers[id].pauses = pauses
    }
}

/// Why a running transfer is paused.
struct Pauses: OptionSet {
    let rawValue: UInt8

    static let background = Pauses(rawValue: 1 << 0)
    static let memory = Pauses(rawValue: 1 << 1)
    /// A hook is asked about its response.
    static let question = Pauses(rawValue: 1 << 2)

    /// For longer than an answer takes.
    var standsStill: Bool { !isDisjoint(with: [.background, .memory]) }
}

/// The clock of a subscriber's total timeout.
enum TotalClock: Equatable {
    case off
    case runs(until: Instant)
    /// Nanoseconds are left.
    case stopped(left: Int64)
}

extension Downloads {
    /// The clock of a total timeout starts with the transfer, not in the queue (features I32).
    mutating func startClock(_ subscriber: SubscriberID, _ now: Instant) {
        let timeout = subscribers[subscriber].options.totalTimeout
        guard timeout > 0, subscribers[subscriber].clock == .off else { return }
        let end = now.advanced(byMilliseconds: timeout)
        subscribers[subscriber].clock = .stopped(left: end.nanoseconds - now.nanoseconds)
        let id = transfer(of: subscriber)
        if !transfers[id].pauses.contains(.background), !waitsForForeground(id) { continueClock(subscriber, now) }
    }

    mutating func stopClock(_ subscriber: SubscriberID, _ now: Instant) {
        // One that is over is over.
        guard case .runs(let end) = subscribers[subscriber].clock, end > now else { return }
        subscribers[subscriber].clock = .stopped(left: end.nanoseconds - now.nanoseconds)
    }

    mutating func continueClock(_ subscriber: SubscriberID, _ now: Instant) {
        guard case .stopped(let left) = subscribers[subscriber].clock else { return }
        let (end, overflow) = now.nanoseconds.addingReportingOverflow(left)
        let until = Instant(nanoseconds: overflow ? .max : end)
        subscribers[subscriber].clock = .runs(until: until)
        if totalTimeouts.isCrowded {
            var all = DeadlineHeap<SubscriberID>()
            swap(&all, &totalTimeouts)
            all.compact { subscribers.contains($0) }
            swap(&all, &totalTimeouts)
        }
        totalTimeouts.insert(until, subscriber)
    }
}
