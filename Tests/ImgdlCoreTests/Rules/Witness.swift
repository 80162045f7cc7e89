@testable import ImgdlCore

/// Watches what the rules do and knows what they must never do. It decides nothing by itself: what it holds follows
/// from the events and from the actions alone.
struct Witness {
    struct Violation: Error { let text: String }

    struct SubscriberRecord {
        let options: SubscriberOptions
        let transfer: TransferID
        var priority: Priority
        var wasCancelled = false
        var hasEnded = false
        var variant: Int?
        /// started, response, header, then progress and partial images.
        var lastRank = -1
        var received: Int64 = 0
        var hasFinalProgress = false
        var clockStart: Instant?
        var lastPartial: Instant?
    }

    enum Transport: Equatable {
        case waiting, connecting, receiving, ended
    }

    struct TransferRecord {
        var transport = Transport.waiting
        var isForgotten = false
        /// Its observer has been told that it has stopped.
        var isObservedStopped = false
        var hasHead = false
        var isDraining = false
        var lastStatus: Int32 = 0
        var host: HostAndPort?
        var waitsSince = Instant(nanoseconds: 0)
        /// What the transport has been told.
        var isTransportPaused = false
        /// Of the rules: its own clocks stand still; those of its subscribers do.
        var pausedAt: Instant?
        var parkedAt: Instant?
        var received: Int64 = 0
        /// nil while it may still come to a good end.
        var failed = false
        var finished = false
        /// The clock that runs: of the hop, of the drain, or since the last byte.
        var since = Instant(nanoseconds: 0)
        var stepsInFlight: [Int: DecodeStep] = [:]
        var headers: Set<Int> = []
        var endedVariants: Set<Int> = []
        /// Refused, or with a broken picture: nobody may join.
        var isClosed = false
        var isJoinable: Bool { !isForgotten && !failed && !isClosed }
    }

    var limits: Limits
    var isSuspended = false
    var isInBackground = false
    var isGraceOver = false
    /// With those that ran and that waited at that moment.
    private var started: [(id: TransferID, running: [TransferID], waiting: [TransferID])] = []
    private var startsSinceAged = 0
    /// Reserved and not given back; of transfers that are over: with terminals that somebody still looks at.
    private(set) var charges: [(transfer: TransferID, variant: Int, bytes: Int64)] = []
    private var reservedNow: [(transfer: TransferID, variant: Int)] = []
    var now = Instant(nanoseconds: 0)
    var subscribers: [SubscriberID: SubscriberRecord] = [:]
    var transfers: [TransferID: TransferRecord] = [:]

    init(_ limits: Limits) { self.limits = limits }

    /// Oldest first.
    private(set) var liveSubscribers: [SubscriberID] = []
    private(set) var liveTransfers: [TransferID] = []
    var running: [TransferID] { liveTransfers.filter { isRunning($0) } }
    func isRunning(_ id: TransferID) -> Bool { [.connecting, .receiving].contains(transfers[id]?.transport) }

    /// The highest of its live subscribers.
    private var priorities: [TransferID: Priority] {
        var priorities: [TransferID: Priority] = [:]
        for subscriber in liveSubscribers {
            let (id, priority) = (subscribers[subscriber]!.transfer, subscribers[subscriber]!.priority)
            priorities[id] = max(priorities[id] ?? .low, priority)
        }
        return priorities
    }

    mutating func accept(_ subscriber: SubscriberID, _ record: SubscriberRecord) {
        if transfers[record.transfer] == nil {
            transfers[record.transfer] = TransferRecord(waitsSince: now)
            liveTransfers.append(record.transfer)
        }
        subscribers[subscriber] = record
        if transfers[record.transfer]!.transport != .waiting { subscribers[subscriber]!.clockStart = now }
        liveSubscribers.append(subscriber)
    }

    private func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
        if !condition { throw Violation(text: text()) }
    }

    // MARK: Actions

    mutating func see(_ action: Action) throws {
        switch action {
        case .start(let id):
            try require(transfers[id]?.transport == .waiting, "started what did not wait")
            try require(!isSuspended && !isGraceOver, "started though nothing may")
            started.append((id, running, liveTransfers.filter { transfers[$0]!.transport == .waiting }))
            transfers[id]!.transport = .connecting
            transfers[id]!.since = now
            for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
                subscribers[subscriber]!.clockStart = now
            }
        case .follow(let id, _):
            try live(id)
            try require(transfers[id]!.transport == .ended && transfers[id]!.isDraining, "followed no redirect")
            transfers[id]!.transport = .connecting
            transfers[id]!.isDraining = false
            transfers[id]!.isTransportPaused = false
            transfers[id]!.finished = false
            transfers[id]!.failed = false
            transfers[id]!.since = now
        case .setPriority(let id, _):
            try live(id)
            try require(isRunning(id), "a priority for what is not at the transport")
        case .setPaused(let id, let isPaused):
            try live(id)
            try require(isRunning(id), "paused what is not at the transport")
            try require(transfers[id]!.isTransportPaused != isPaused, "paused, or resumed, twice")
            transfers[id]!.isTransportPaused = isPaused
        case .reserve(let id, let variant, let bytes):
            try live(id)
            try require(!charges.contains { $0.transfer == id && $0.variant == variant }, "reserved twice")
            charges.append((id, variant, bytes))
            reservedNow.append((id, variant))
        case .stop(let id):
            try live(id)
            try require(isRunning(id), "stopped what is not at the transport")
            transfers[id]!.transport = .ended
            transfers[id]!.failed = true
        case .forget(let id):
            try live(id)
            try require(!isRunning(id), "forgotten at the transport")
            try require(
                transfers[id]!.isObservedStopped == (transfers[id]!.transport != .waiting), "an observer is told of no end")
            try require(!liveSubscribers.contains { subscribers[$0]!.transfer == id }, "forgotten with a subscriber")
            transfers[id]!.isForgotten = true
            liveTransfers.removeAll { $0 == id }
        case .decode(let id, let variant, let step):
            try live(id)
            let transfer = transfers[id]!
            try require(transfer.stepsInFlight[variant] == nil, "a second step in flight")
            try require(!transfer.endedVariants.contains(variant), "a step after the last")
            try require(!transfer.isDraining && transfer.hasHead, "a decode of no answer")
            switch step {
            case .feed(let isShowing):
                let isWatched = liveSubscribers.map { subscribers[$0]! }.contains {
                    $0.transfer == id && $0.options.decode != nil && $0.options.events.contains(.partial)
                }
                try require(isWatched || !isShowing, "a picture shown to nobody")
                try require(transfer.transport == .receiving && transfer.received > 0, "a feed without bytes")
            case .finish: try require(transfer.finished && !transfer.failed, "finish without an end")
            case .salvage: try require(transfer.failed, "salvage without a failure")
            }
            transfers[id]!.stepsInFlight[variant] = step
        case .emit(let subscriber, let notice): try see(subscriber, notice)
        case .end(let subscriber, let outcome): try see(subscriber, outcome)
        case .observe(let id, let milestone, let subscribers):
            try live(id)
            let count = liveSubscribers.filter { self.subscribers[$0]!.transfer == id }.count
            guard case .stopped(let failure) = milestone else { break }
            try require(subscribers == count, "observed after the end of a subscriber")
            try require(transfers[id]!.transport != .waiting, "an observer is told of one that never left the queue")
            try require(!transfers[id]!.isObservedStopped, "stopped a second time")
            let isWell = transfers[id]!.finished && !transfers[id]!.failed
            try require(failure != nil || isWell, "well for the observer, though it failed")
            transfers[id]!.isObservedStopped = true
        }
    }

    private func live(_ id: TransferID) throws {
        try require(transfers[id].map { !$0.isForgotten } ?? false, "an action after forget")
    }

    private mutating func see(_ id: SubscriberID, _ notice: Notice) throws {
        guard var subscriber = subscribers[id] else { throw Violation(text: "told nobody") }
        let transfer = transfers[subscriber.transfer]!
        try require(!subscriber.hasEnded, "told after its end")
        let (rank, event): (Int, EventMask) =
            switch notice {
            case .started: (0, .started)
            case .response: (1, .response)
            // Bytes that do not hold the whole header yet are progress before it.
            case .progress: (subscriber.lastRank < 3 ? 2 : 4, .progress)
            case .header: (3, .header)
            case .partial: (4, .partial)
            }
        try require(subscriber.options.events.contains(event), "told what it did not ask for")
        let isRepeatable = rank == subscriber.lastRank && (rank == 2 || rank == 4)
        try require(rank > subscriber.lastRank || isRepeatable, "told out of order, or twice")
        subscriber.lastRank = rank
        switch notice {
        case .started: try require(transfer.transport != .waiting, "started in the queue")
        case .response: try require(transfer.hasHead, "a response before its head")
        case .header(let variant): try require(transfer.headers.contains(variant), "a header nobody has read")
        case .progress(let received, let expected):
            try require(received == transfer.received && received >= subscriber.received, "progress that is not")
            try require(!transfer.isDraining, "progress of a drain")
            if subscriber.options.events.contains(.header), let variant = subscriber.variant {
                let isRead = transfer.headers.contains(variant) || transfer.stepsInFlight[variant] == nil
                try require(isRead, "progress while the decoder reads what may be the header")
            }
            try require(!subscriber.hasFinalProgress, "progress after the final one")
            subscriber.received = received
            subscriber.hasFinalProgress = transfer.finished && received == expected
        case .partial:
            if let last = subscriber.lastPartial {
                try require(
                    now.milliseconds(since: last) >= subscriber.options.partialInterval, "partial images too fast")
            }
            subscriber.lastPartial = now
        }
        subscribers[id] = subscriber
    }

    private mutating func see(_ id: SubscriberID, _ outcome: Outcome) throws {
        guard let subscriber = subscribers[id] else { throw Violation(text: "ended nobody") }
        let transfer = transfers[subscriber.transfer]!
        try require(!subscriber.hasEnded, "ended twice")
        subscribers[id]!.hasEnded = true
        liveSubscribers.removeAll { $0 == id }
        switch outcome {
        case .success(let variant):
            try require(transfer.finished && !transfer.failed && !transfer.isDraining, "success of a failure")
            try require((variant == nil) == (subscriber.options.decode == nil), "the wrong kind of success")
            if let variant { try require(transfer.endedVariants.contains(variant), "a picture that is not there") }
            if subscriber.options.events.contains(.progress) {
                try require(subscriber.received == transfer.received, "success without the final progress")
            }
        case .failure(let failure, let salvaged):
            try require(failure.status == transfer.lastStatus, "status \(failure.status) of \(transfer.lastStatus)")
            try require(salvaged == nil || subscriber.options.salvages, "pixels for who wanted none")
            switch failure.code {
            case .cancelled: try require(subscriber.wasCancelled, "cancelled, though it never was")
            case .totalTimeout: try require(isLate(subscriber), "timed out too early")
            case .backgroundExpired:
                let isExpired = isInBackground && isGraceOver && subscriber.options.continuesInBackground
                try require(isExpired, "expired in the foreground, or without having asked for the background")
            case .bodyLimit: break
            default: try require(!subscriber.wasCancelled, "cancelled, but told otherwise")
            }
        }
    }

    private func isLate(_ subscriber: SubscriberRecord) -> Bool {
        guard let start = subscriber.clockStart, subscriber.options.totalTimeout > 0,
            transfers[subscriber.transfer]!.parkedAt == nil
        else { return false }
        return start.advanced(byMilliseconds: subscriber.options.totalTimeout) <= now
    }

    // MARK: States

    /// What holds whenever an event has been dealt with.
    mutating func check(_ downloads: Downloads, afterDeadlines: Bool) throws {
        try seeMemory(downloads)
        try seePauses(downloads)
        try seeStarts(downloads)
        let live = liveTransfers
        try require(downloads.subscriberCount == liveSubscribers.count, "subscribers not counted right")
        try require(downloads.transferCount == live.count, "transfers not counted right")
        let placed = running.filter { transfers[$0]!.parkedAt == nil }
        try require(downloads.runningCount == placed.count, "running not counted right")
        let waiting = live.filter { transfers[$0]!.transport == .waiting }
        try require(downloads.waitingCount == waiting.count, "waiting not counted right")
        let mayStart = !isSuspended && placed.count < limits.maximumConcurrent && !isGraceOver
        if mayStart, !downloads.memory.isFull || live.count == waiting.count {
            try require(eligible(waiting, placed).isEmpty, "a place is free and somebody waits")
        }
        if placed.count < limits.maximumConcurrent {
            let parked = running.filter { transfers[$0]!.parkedAt != nil }
            try require(eligible(parked, placed).isEmpty, "a place is free and somebody is paused for want of one")
        }
        let pressable = placed.filter { transfers[$0]!.isTransportPaused }
        if !pressable.isEmpty, !downloads.memory.isFull { throw Violation(text: "paused for memory that is there") }
        let priorities = priorities
        for id in live {
            try require(priorities[id] != nil, "a transfer nobody wants")
            try require(downloads.priority(id) == priorities[id], "not the priority of its subscribers")
        }
        if let earliest = running.compactMap({ deadline($0) }).min() {
            guard let next = downloads.nextDeadline else { throw Violation(text: "no deadline for what runs") }
            try require(next <= earliest, "would be woken too late for a transfer")
            try require(!afterDeadlines || earliest > now, "over its time and still running")
        }
        for subscriber in liveSubscribers where afterDeadlines {
            try require(!isLate(subscribers[subscriber]!), "over its total time and still there")
        }
    }

    // MARK: Places, pauses, memory

    /// Those with somebody who asked for the background.
    private var continuing: Set<TransferID> {
        Set(liveSubscribers.map { subscribers[$0]! }.filter(\.options.continuesInBackground).map(\.transfer))
    }

    /// Of these, those that a place is free for at their host, and that may run in the background if need be.
    private func eligible(_ waiting: [TransferID], _ placed: [TransferID]) -> [TransferID] {
        guard !waiting.isEmpty else { return [] }
        let counts = Dictionary(placed.map { (transfers[$0]!.host, 1) }, uniquingKeysWith: +)
        let continuing = isInBackground ? continuing : []
        return waiting.filter { id in
            let isOpen = limits.maximumPerHost == 0 || counts[transfers[id]!.host, default: 0] < limits.maximumPerHost
            return isOpen && (!isInBackground || continuing.contains(id))
        }
    }

    /// Features B12, B13: the highest priority, but every fourth start the oldest that has waited long enough.
    private mutating func seeStarts(_ downloads: Downloads) throws {
        let priorities = started.isEmpty ? [:] : priorities
        for (id, running, waiting) in started {
            let placed = running.filter { transfers[$0]!.parkedAt == nil }
            try require(placed.count < limits.maximumConcurrent, "started without a place")
            let eligible = eligible(waiting, placed)
            try require(eligible.contains(id), "started without a place at its host, or in the background")
            if startsSinceAged >= 3, let oldest = eligible.first,
                transfers[oldest]!.waitsSince.advanced(byMilliseconds: limits.agingInterval) <= now
            {
                try require(oldest == id, "the oldest has waited too long")
                startsSinceAged = 0
            } else {
                let own = priorities[id] ?? .low
                try require(eligible.allSatisfy { priorities[$0] ?? .low <= own }, "a higher priority still waits")
                startsSinceAged += 1
            }
        }
        started = []
    }

    private mutating func seePauses(_ downloads: Downloads) throws {
        let continuing = isInBackground ? continuing : []
        for id in liveTransfers {
            let pauses = downloads.transfers[id].pauses
            try require(isRunning(id) || pauses.isEmpty, "paused though it does not run")
            let isPaused = !pauses.isEmpty
            try require(!isRunning(id) || transfers[id]!.isTransportPaused == isPaused, "the transport was not told")
            if isPaused, transfers[id]!.pausedAt == nil {
                transfers[id]!.pausedAt = now
            } else if !isPaused, let paused = transfers[id]!.pausedAt {
                transfers[id]!.pausedAt = nil
                let span = now.nanoseconds - paused.nanoseconds
                transfers[id]!.since.nanoseconds = min(now.nanoseconds, transfers[id]!.since.nanoseconds + span)
            }
            if pauses.contains(.background), transfers[id]!.parkedAt == nil {
                transfers[id]!.parkedAt = now
            } else if !pauses.contains(.background), let parked = transfers[id]!.parkedAt {
                transfers[id]!.parkedAt = nil
                for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
                    guard let start = subscribers[subscriber]!.clockStart else { continue }
                    let span = now.nanoseconds - max(parked, start).nanoseconds
                    subscribers[subscriber]!.clockStart!.nanoseconds += span
                }
            }
            let isParked = isRunning(id) && isInBackground && !continuing.contains(id)
            try require(!isParked || transfers[id]!.parkedAt != nil, "runs on in the background")
        }
    }

    /// Features B20: beyond the budget only what nothing else can make room for.
    private mutating func seeMemory(_ downloads: Downloads) throws {
        let canvases = charges.reduce(0) { $0 + $1.bytes }
        try require(downloads.memory.canvases == canvases, "canvases not counted right")
        let bodies = liveTransfers.reduce(0) { $0 + downloads.transfers[$1].countedBytes }
        try require(downloads.memory.bodies == bodies, "bodies not counted right")
        for reserved in reservedNow where downloads.memory.inUse > limits.memoryBudget && charges.count > 1 {
            guard canvases > limits.memoryBudget else { continue }
            let others = charges.filter { $0.transfer != reserved.transfer || $0.variant != reserved.variant }
            let isAlone = others.allSatisfy {
                let transfer = transfers[$0.transfer]!
                let isWanted = downloads.subscribers.keys.contains { [charge = $0] in
                    let subscriber = downloads.subscribers[$0]
                    return subscriber.transfer == charge.transfer && subscriber.variant == charge.variant
                }
                let isIdle =
                    transfer.isTransportPaused || transfer.endedVariants.contains($0.variant) || !isWanted
                return !transfer.isForgotten && isIdle
            }
            try require(isAlone, "over the budget, though others will make room")
        }
        reservedNow = []
    }

    mutating func release(_ index: Int) -> Int64 { charges.remove(at: index).bytes }

    private func deadline(_ id: TransferID) -> Instant? {
        let transfer = transfers[id]!
        if transfer.pausedAt != nil { return nil }
        let milliseconds =
            transfer.transport == .connecting
            ? limits.connectTimeout
            : transfer.isDraining ? min(limits.drainTimeout, limits.idleTimeout) : limits.idleTimeout
        return transfer.since.advanced(byMilliseconds: milliseconds)
    }
}
