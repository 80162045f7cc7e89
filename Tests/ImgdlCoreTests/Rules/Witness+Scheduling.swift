@testable import ImgdlCore

/// Places, pauses and memory.
extension Witness {
    /// Those with somebody who asked for the background.
    private var continuing: Set<TransferID> {
        Set(liveSubscribers.map { subscribers[$0]! }.filter(\.options.continuesInBackground).map(\.transfer))
    }

    /// Transfers that have just been paused for the background, in the middle of an event: their places are free.
    var pausedForBackground: Set<TransferID> {
        guard isInBackground else { return [] }
        let continuing = continuing
        return Set(running.filter { transfers[$0]!.isPaused && !continuing.contains($0) })
    }

    /// Transfers that had a place at that start. One may end within the event in which it was paused, or went on: `heldSince`
    /// says nothing of that then.
    private func placed(_ start: Start) -> [TransferID] {
        start.running.filter { id in
            transfers[id]!.heldSince == nil ? !start.paused.contains(id) : start.resumed.contains(id)
        }
    }

    /// Of these, those that a place is free for at their host, and that may run in the background if need be. `hosts`: where
    /// they are, or were at some moment.
    func eligible(
        _ waiting: [TransferID], _ placed: [TransferID], _ hosts: [TransferID: HostAndPort] = [:]
    ) -> [TransferID] {
        guard !waiting.isEmpty else { return [] }
        func host(_ id: TransferID) -> HostAndPort { hosts[id] ?? transfers[id]!.host }
        let counts = Dictionary(placed.map { (host($0), 1) }, uniquingKeysWith: +)
        let continuing = isInBackground ? continuing : []
        return waiting.filter { id in
            let isOpen = limits.maximumPerHost == 0 || counts[host(id), default: 0] < limits.maximumPerHost
            return isOpen && (!isInBackground || continuing.contains(id))
        }
    }

    /// Features B12, B13: the highest priority, but every fourth start the oldest that has waited long enough; within
    /// a priority first those that come back for another attempt.
    mutating func seeStarts(_ priorities: [TransferID: Priority]) throws {
        try require(starts.isEmpty || !holdsStarts, "started though starts are held")
        for start in starts {
            let placed = placed(start)
            try require(placed.count < limits.maximumConcurrent, "started without a place")
            // One that goes to another host within the event, for a hook's answer, may have done so before or after this.
            let (now, then) = (eligible(start.waiting, placed), eligible(start.waiting, placed, start.hosts))
            let mayStart = now.contains(start.id) || then.contains(start.id)
            try require(mayStart, "started without a place at its host, or in the background")
            let eligible = now.filter { then.contains($0) || $0 == start.id }
            if startsSinceAged >= 3, let oldest = eligible.map({ transfers[$0]!.waitsSince }).min(),
                oldest.advanced(byMilliseconds: limits.agingInterval) <= self.now
            {
                try require(transfers[start.id]!.waitsSince == oldest, "the oldest has waited too long")
                startsSinceAged = 0
            } else {
                let own = priorities[start.id] ?? .low
                try require(eligible.allSatisfy { priorities[$0] ?? .low <= own }, "a higher priority still waits")
                let isPassed = eligible.contains { transfers[$0]!.front == own && transfers[$0]!.isFrontSure }
                try require(start.isBack || !isPassed, "one that came back was to go first")
                startsSinceAged += 1
            }
        }
        starts = []
        resumed = []
    }

    /// Hooks and redirects lead to no host that has no place.
    mutating func seeMoves() throws {
        for move in moves where limits.maximumPerHost > 0 {
            let placed = move.there.filter { transfers[$0]!.heldSince == nil }
            try require(placed.count < limits.maximumPerHost, "went to a host that has no place")
            try require(!move.isHeld, "went to a host without a place of its own")
        }
        moves = []
    }

    /// The limit for each host has come or gone: all places are taken anew.
    mutating func recountHosts() { for id in running { transfers[id]!.host = HostAndPort(transfers[id]!.hop) } }

    /// Nobody but the rules themselves is left, or has just been.
    func isUnattended(_ id: TransferID) -> Bool {
        liveSubscribers.allSatisfy { subscribers[$0]!.transfer != id || subscribers[$0]!.isInternal }
    }

    /// Who waits does not wait for a place that a transfer of nobody's has.
    func seeUnattended(_ waiting: [TransferID], _ placed: [TransferID], isMemoryFull: Bool) throws {
        guard !holdsStarts, !isSuspended, !isGraceOver, !isMemoryFull else { return }
        let awaited = waiting.filter { !isUnattended($0) }
        for id in placed where isUnattended(id) {
            let others = placed.filter { $0 != id }
            guard others.count < limits.maximumConcurrent else { continue }
            try require(eligible(awaited, others).isEmpty, "a transfer of nobody's holds the place of one that waits")
        }
    }

    mutating func seePauses(_ downloads: borrowing Downloads) throws {
        let continuing = isInBackground ? continuing : []
        for id in liveTransfers {
            let pauses = downloads.transfers[id].pauses
            let isAskedAboutStored = transfers[id]!.isPlaying && pauses == .question
            try require(isRunning(id) || pauses.isEmpty || isAskedAboutStored, "paused though it does not run")
            let isTold = transfers[id]!.isPaused == !pauses.isEmpty
            try require(!isAtTransport(id) || isTold, "the transport was not told")
            let isAskedThere = isAtTransport(id) && transfers[id]!.question != nil
            try require(!isAskedThere || pauses.contains(.question), "its body comes on while a hook is asked")
            let isAnswered = transfers[id]!.question == nil
            try require(!isAnswered || !pauses.contains(.question), "paused for an answer that has come")
            seePause(id, !pauses.isEmpty)
            let mayGoOn = !isInBackground || !isGraceOver && continuing.contains(id)
            let isBarred = !mayGoOn && transfers[id]!.hasStarted
            let isWaiting = [.waiting, .resting].contains(transfers[id]!.transport)
            seeHold(id, pauses.contains(.background) || isWaiting && isBarred)
            try require(!isRunning(id) || !isBarred || transfers[id]!.heldSince != nil, "runs on in the background")
        }
    }

    /// What it and its subscribers had left before, they have left then.
    private mutating func seePause(_ id: TransferID, _ isPaused: Bool) {
        if isPaused, transfers[id]!.pausedAt == nil {
            settleWait(id)
            transfers[id]!.pausedAt = now
        }
        guard !isPaused, let paused = transfers[id]!.pausedAt.take() else { return }
        giveBack(now.nanoseconds - paused.nanoseconds, id)
        if transfers[id]!.waitingSince != nil { transfers[id]!.waitingSince = now }
    }

    mutating func seeWait(_ id: TransferID, _ isWaiting: Bool) {
        settleWait(id)
        transfers[id]!.waitingSince = isWaiting ? now : nil
    }

    private mutating func settleWait(_ id: TransferID) {
        let transfer = transfers[id]!
        guard let since = transfer.waitingSince, transfer.pausedAt == nil, !transfer.isDraining else { return }
        giveBack(now.nanoseconds - since.nanoseconds, id)
        transfers[id]!.waitingSince = now
    }

    private mutating func giveBack(_ span: Int64, _ id: TransferID) {
        func shifted(_ start: Instant) -> Instant {
            Instant(nanoseconds: min(now.nanoseconds, start.nanoseconds + span))
        }
        transfers[id]!.since = shifted(transfers[id]!.since)
        for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
            subscribers[subscriber]!.joined = subscribers[subscriber]!.joined.map(shifted)
        }
    }

    /// Nobody has looked for so long: no time in which a server was silent.
    mutating func seeDelay(_ nanoseconds: Int64) {
        func shifted(_ start: Instant) -> Instant {
            Instant(nanoseconds: min(now.nanoseconds, start.nanoseconds + nanoseconds))
        }
        for id in running where transfers[id]!.pausedAt == nil && transfers[id]!.heldSince == nil {
            // All of the time that it waits for its turn is given back to it, which is more; a drain gets none of that.
            if transfers[id]!.waitingSince != nil, !transfers[id]!.isDraining { continue }
            transfers[id]!.since = shifted(transfers[id]!.since)
            for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
                subscribers[subscriber]!.joined = subscribers[subscriber]!.joined.map(shifted)
            }
        }
    }

    private mutating func seeHold(_ id: TransferID, _ isHeld: Bool) {
        if isHeld, transfers[id]!.heldSince == nil {
            transfers[id]!.heldSince = now
            transfers[id]!.host = HostAndPort(transfers[id]!.hop)
        }
        guard !isHeld, let held = transfers[id]!.heldSince.take() else { return }
        // Its place is a new one: a hook's answer may have led to another host meanwhile.
        transfers[id]!.host = HostAndPort(transfers[id]!.hop)
        for subscriber in liveSubscribers where subscribers[subscriber]!.transfer == id {
            guard let start = subscribers[subscriber]!.clockStart else { continue }
            subscribers[subscriber]!.clockStart!.nanoseconds += now.nanoseconds - max(held, start).nanoseconds
        }
    }

    /// Features B20: beyond the budget only what nothing else can make room for, and while it is full one transfer that leads. So
    /// there is the budget, a canvas that is alone with what stands still, and the body of that one.
    mutating func seeMemory(_ downloads: borrowing Downloads) throws {
        let canvases = charges.reduce(0) { $0 + $1.bytes }
        try require(downloads.memory.canvases == canvases, "canvases not counted right")
        let bodies = liveTransfers.reduce(0) { $0 + downloads.transfers[$1].countedBytes }
        try require(downloads.memory.bodies == bodies, "bodies not counted right")
        for id in liveTransfers {
            let isRight = downloads.transfers[id].countedBytes == transfers[id]!.bodyBytes
            try require(isRight, "its body is not counted right")
        }
        // A picture that waits for several executors is excused once for each, and one whose transfer lives on with another
        // variant is stuck and excused: the rules give one more its room then, so that nothing ever waits for nothing.
        let isJudged = !charges.contains { $0.waitsFor.count > ($0.isAbandoned ? 1 : 0) }
        for reserved in reservedNow where downloads.memory.inUse > limits.memoryBudget && charges.count > 1 && isJudged
        {
            let excused = downloads.backlogs.excused + downloads.slow.total
            guard canvases - excused > limits.memoryBudget else { continue }
            // What a transfer holds besides may have been its own until a moment ago, within the same event.
            let others = charges.filter {
                $0.variant != Charge.kept && ($0.transfer != reserved.transfer || $0.variant != reserved.variant)
                    && !$0.isFresh && !isExcused($0, downloads)
            }
            let isAlone = others.allSatisfy {
                let transfer = transfers[$0.transfer]!
                let isWanted = downloads.subscribers.keys.contains { [charge = $0] in
                    downloads.transfer(of: $0) == charge.transfer
                        && downloads.subscribers[$0].variant == charge.variant
                }
                let isSlow = downloads.contains($0.transfer) && downloads.transfers[$0.transfer].isSlow
                let isIdle =
                    transfer.isPaused || isSlow || transfer.endedVariants.contains($0.variant) || !isWanted
                return !$0.isAbandoned && isIdle && !mayLead($0.transfer, downloads)
            }
            try require(isAlone, "over the budget, though others will make room")
        }
        reservedNow = []
        for index in charges.indices { charges[index].isFresh = false }
        try require(downloads.isPressing || !downloads.memory.isFull, "no back-pressure")
        try require(!downloads.isPressing || downloads.memory.isFull || holdsStarts, "back-pressure for no reason")
        let unpaused = running.filter { mayLead($0, downloads) && downloads.transfers[$0].pauses.isEmpty }
        let mayMore = !downloads.memory.isFull || downloads.isLeadOpen
        try require(mayMore || unpaused.count <= 1, "more than one runs on though memory is full")
        let isPressed = running.contains { downloads.transfers[$0].pauses.contains(.memory) }
        try require(!isPressed || downloads.memory.isFull || holdsStarts, "paused for memory that is there")
    }

    /// Its body comes, or would if no other led: its end gives back what it has, whoever wants that.
    private func mayLead(_ id: TransferID, _ downloads: borrowing Downloads) -> Bool {
        guard isRunning(id), transfers[id]!.transport == .receiving, transfers[id]!.hasHead, !transfers[id]!.isDraining
        else { return false }
        let isOwnConnection = downloads.transfers[id].httpVersion < 20
        let isInPlace = downloads.transfers[id].pauses.isSubset(of: .memory)
        return isOwnConnection && isInPlace && !downloads.transfers[id].isSlow
    }

    /// What waits for executors that are behind.
    private func isExcused(_ charge: Charge, _ downloads: borrowing Downloads) -> Bool {
        charge.waitsFor.contains { downloads.backlogs.isBehind($0) }
    }

    /// Whoever waits for memory waits for something that will give some back. What waits for executors does not: perhaps their
    /// hosts never take it.
    func seeRoomToCome(_ downloads: borrowing Downloads) throws {
        // What is in the background, too, waits for the foreground.
        let isPressed = running.contains { downloads.transfers[$0].pauses == .memory }
        guard isPressed && downloads.leader == nil || !downloads.heldDecodes.isEmpty else { return }
        let comes = charges.contains { charge in
            guard charge.waitsFor.isEmpty else { return false }
            if charge.isAbandoned { return true }
            guard downloads.transfers[charge.transfer].pauses.isEmpty, !downloads.transfers[charge.transfer].isSlow
            else { return false }
            return mayLead(charge.transfer, downloads)
                || liveSubscribers.contains { subscriber in
                    let isIt =
                        subscribers[subscriber]!.transfer == charge.transfer
                        && subscribers[subscriber]!.variant == charge.variant
                    return isIt && !transfers[charge.transfer]!.endedVariants.contains(charge.variant)
                }
        }
        try require(comes || holdsStarts, "waits for memory, and nothing will give any back")
    }

    /// A turn that has passed, since all who want it are on executors that are behind.
    mutating func seePassedTurns(_ downloads: borrowing Downloads) throws {
        for id in liveTransfers where [.waiting, .resting].contains(transfers[id]!.transport) {
            guard downloads.request(id) != nil, downloads.transfers[id].phase == .resting else { continue }
            let isPassed = downloads.transfers[id].restsUntil == nil
            try require(isPassed || transfers[id]!.transport == .resting, "rests without a failure")
            guard isPassed else { continue }
            // Perhaps it has come back from a rest, and its turn has passed at once.
            if transfers[id]!.transport == .resting {
                try require(transfers[id]!.rest!.contains(now), "woken too early")
            }
            transfers[id]!.transport = .resting
            transfers[id]!.rest = Instant(nanoseconds: .min)...Instant(nanoseconds: .max)
            transfers[id]!.isPassed = true
        }
    }

    /// What waits for executors, and who waits for them.
    func seeBacklogs(_ downloads: borrowing Downloads) throws {
        let mayStart = !holdsStarts && downloads.mayStart
        var waiting: [Backlogs.Executor: Int64] = [:]
        for charge in charges { for executor in charge.waitsFor { waiting[executor, default: 0] += charge.bytes } }
        try require(downloads.backlogs.total == waiting.values.reduce(0, +), "what waits is not counted right")
        let behind = waiting.filter { downloads.backlogs.isBehind($0.key) }
        try require(downloads.backlogs.excused == behind.values.reduce(0, +), "what is behind is not counted right")
        let owed = liveTransfers.filter { downloads.transfers[$0].question != nil }
        let owedBytes = owed.reduce(0) { $0 + downloads.transfers[$1].countedBytes }
        try require(downloads.owedAnswers.total == owedBytes, "what waits for answers is not counted right")
        for id in liveTransfers {
            let isHeld = downloads.transfers[id].isHeldForExecutors
            let rests = downloads.transfers[id].phase == .resting && downloads.transfers[id].restsUntil == nil
            let own = liveSubscribers.map { subscribers[$0]! }.filter { $0.transfer == id }
            let isBehind = own.contains { downloads.backlogs.isBehind($0.executor) }
            try require(!isHeld || isBehind, "waits for executors that are not behind")
            let areAllBehind = own.allSatisfy { downloads.backlogs.isBehind($0.executor) }
            try require(
                !rests || areAllBehind || !mayStart || downloads.waitsForAnswers(id) || downloads.waitsForSource(id),
                "a place is free, and a turn has passed for nothing")
        }
    }

    /// Nothing begins whose hook table, or whose executors, were behind when the event came and still are.
    mutating func seeHosts(_ downloads: borrowing Downloads) throws {
        let share = limits.memoryBudget / 4
        for id in begun where downloads.request(id) != nil {
            if let table = table(of: id), tablesBehind.contains(table) {
                let isBehind = owed(by: table) > share / 2
                try require(!isBehind, "begun though its hooks owe answers for a quarter of the budget")
            }
            let executors = liveSubscribers.map { subscribers[$0]! }.filter { $0.transfer == id }.map(\.executor)
            let areBehind = executors.allSatisfy { executorsBehindBefore.contains($0) && executorsBehind[$0] != nil }
            try require(!areBehind, "begun though a quarter of the budget waits for its executors")
        }
        begun = []
        executorsBehindBefore = Set(executorsBehind.keys)
        for table in Set(liveTransfers.compactMap({ self.table(of: $0) })).union(tablesBehind) {
            let bytes = owed(by: table)
            if bytes >= share { tablesBehind.insert(table) } else if bytes <= share / 2 { tablesBehind.remove(table) }
            try require(
                !tablesBehind.contains(table) || downloads.owedAnswers.isBehind(table), "not behind with what it owes")
        }
        for executor in executorsBehindBefore {
            try require(downloads.backlogs.isBehind(executor), "not behind with what it has to take")
        }
    }

    /// A hook has answered: until its body counts anew, its table owes less.
    mutating func seeAnswered(_ id: TransferID) {
        guard let table = table(of: id), owed(by: table) <= limits.memoryBudget / 8 else { return }
        tablesBehind.remove(table)
    }

    /// Something of what waits for it has come, or gone.
    mutating func seeWaiting(_ executor: Backlogs.Executor) {
        let bytes = charges.reduce(0) { $0 + ($1.waitsFor.contains(executor) ? $1.bytes : 0) }
        let share = limits.memoryBudget / 4
        if let left = executorsBehind[executor] {
            if bytes <= left { executorsBehind[executor] = nil }
        } else if bytes >= share, !hasReconfigured {
            executorsBehind[executor] = share / 2
        }
    }

    /// Whether what it brings would only wait, and has done so since before the event.
    func onlyWaits(_ id: TransferID) -> Bool {
        if let table = table(of: id), tablesBehind.contains(table) { return true }
        return liveSubscribers.map { subscribers[$0]! }.filter { $0.transfer == id }
            .allSatisfy { executorsBehindBefore.contains($0.executor) && executorsBehind[$0.executor] != nil }
    }

    private func table(of id: TransferID) -> ObjectIdentifier? {
        transfers[id]!.request.hooks.map { ObjectIdentifier($0) }
    }

    private func owed(by table: ObjectIdentifier) -> Int64 {
        liveTransfers.reduce(0) {
            let transfer = transfers[$1]!
            return $0 + (transfer.question != nil && self.table(of: $1) == table ? transfer.bodyBytes : 0)
        }
    }

    /// Who brings next to nothing, and what counts for its source alone.
    func seePace(_ downloads: borrowing Downloads) throws {
        let slow = liveTransfers.filter { downloads.transfers[$0].isSlow }
        try require(downloads.slowCount == slow.count, "slow ones not counted right")
        var held: [Source: Int64] = [:]
        for id in slow {
            try require(running.contains(id), "slow without a place")
            try require(!downloads.transfers[id].pauses.contains(.memory), "slow, and paused for memory")
            let bytes = downloads.transfers[id].countedBytes - downloads.transfers[id].owedBytes
            let canvases = downloads.transfers[id].variants.reduce(0) { $0 + $1.reserved }
            try require(downloads.transfers[id].slowBytes == bytes + canvases, "what it holds is not counted right")
            if let source = downloads.transfers[id].slowSource { held[source, default: 0] += bytes + canvases }
        }
        try require(downloads.slow.total == held.values.reduce(0, +), "what slow ones hold is not counted right")
        try require(downloads.leader.map { !slow.contains($0) } ?? true, "a slow one leads")
        if let leader = downloads.leader {
            let goesOn = isRunning(leader) && downloads.transfers[leader].pauses.isEmpty
            try require(goesOn, "the one that leads stands still")
        }
        try require(!downloads.isLeadOpen || downloads.leader == nil && downloads.isPressing, "two lead")
        let hasLooks = downloads.nextLook != nil || holdsStarts
        let isLooked = hasLooks || downloads.running.isEmpty || slow.isEmpty && !downloads.isShortOfMemory
        try require(isLooked, "nobody looks who is slow")
    }

    mutating func release(_ index: Int) -> Int64 { charges.remove(at: index).bytes }
}
