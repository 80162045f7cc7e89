/// Who goes next, and the places that running transfers take (features B12, B13, M9, R02).
extension Downloads {
    /// Transfers that have a place at the transport. Those that are paused in the background have given theirs up.
    package var runningCount: Int { running.count }

    /// It waits for its turn; `atFront`: before all others of its priority, as one that comes back.
    mutating func enqueue(_ id: TransferID, atFront: Bool = false, _ now: Instant) {
        transfers[id].phase = .waiting
        waiting.insert(
            SlotTable<Transfer>.slot(id), host(of: id), priority: transfers[id].priority,
            continuesInBackground: transfers[id].continuesInBackground, order: atFront ? .lifo : limits.order, now)
        updateAttendance(id)
    }

    /// The transfer's subscribers have changed: it moves if its priority has, or the transport hears of it (features
    /// K13, I18, R02).
    mutating func requeue(_ id: TransferID, _ before: Priority) {
        let priority = transfers[id].priority
        guard priority != before else { return }
        switch transfers[id].phase {
        case .waiting: waiting.setPriority(SlotTable<Transfer>.slot(id), priority, order: limits.order)
        case .connecting, .receiving: if hasExchange(id) { actions.append(.setPriority(id, priority)) }
        default: break
        }
    }

    /// Has go on what may, after whatever happened: what the memory budget held back, what was paused, what waits.
    mutating func startWaiting(_ now: Instant) {
        guard !holdsStarts else { return pressIfFull(now) }
        if hasRoom || isPressing || memory.isFull { relieve(now) }
        if !parked.isEmpty { resumeParked(now) }
        consultNext()
        _ = wakePassed(now)
        repeat {
            startNext(now)
            // Memory has come back where something has given way for one of them.
            consultNext()
        } while wakePassed(now)
        beginLooks(now)
    }

    private mutating func startNext(_ now: Instant) {
        while waiting.count > 0 {
            guard mayStart,
                let (slot, place) = waiting.popFirst(
                    now, agingInterval: limits.agingInterval, inBackground: background != nil)
            else {
                if giveWay(now) { continue }
                break
            }
            let id = transferID(at: slot)
            if givesWay(id, place) {
                waiting.undo(place)
                giveUp(id, now)
                continue
            }
            if waitsForExecutors(id) {
                waiting.undo(place)
                restForExecutors(id)
                continue
            }
            if waitsForAnswers(id) {
                waiting.undo(place)
                restForAnswers(id)
                continue
            }
            if !transfers[id].isUnderWay, waitsForSource(id) {
                waiting.undo(place)
                restForSource(id)
                continue
            }
            occupy(id, place)
            if !consults(id) { transfers[id].isObserved = true }
            begin(id, now)
            transfers[id].isUnderWay = true
            forEachSubscriber(id) { $0.start($1, now) }
        }
    }

    /// Until `releaseStarts` nothing that waits, is paused or is held back goes on, whatever is reported.
    package mutating func holdStarts() { holdsStarts = true }

    package mutating func releaseStarts(_ now: Instant) {
        holdsStarts = false
        startWaiting(now)
    }

    var mayStart: Bool {
        guard !isSuspended, running.count < limits.maximumConcurrent, background?.isOver != true else { return false }
        // What is in work ends sooner or later, and gives memory back; where nothing is, one has to begin.
        return !memory.isFull
            || transfers.count == waiting.count + parkedCount + restingCount + heldForExecutorsCount + transformingCount
                + heldConsultationCount
    }

    // MARK: Places

    mutating func occupy(_ id: TransferID, _ place: WaitingQueue.Place) {
        starts += 1
        findLowestLimits(id)
        transfers[id].place = place
        transfers[id].startNumber = starts
        transfers[id].runningIndex = Int32(running.count)
        running.append(id)
    }

    /// The place is free for another; once, however it ends (features I10).
    mutating func releasePlace(_ id: TransferID) {
        let place = transfers[id].place
        guard place >= 0 else { return }
        transfers[id].place = -1
        waiting.leave(place)
        let index = Int(transfers[id].runningIndex)
        let last = running.removeLast()
        if last != id {
            running[index] = last
            transfers[last].runningIndex = Int32(index)
        }
        if leader == id {
            leader = nil
            needsLeader = isPressing
        }
        forgetPace(id)
    }

    /// The transport has done with it.
    mutating func leaveTransport(_ id: TransferID, _ now: Instant) {
        releasePlace(id)
        unpause(id, now)
    }

    // MARK: Limits

    package mutating func setMaximumConcurrent(_ maximum: Int, _ now: Instant) {
        limits.maximumConcurrent = maximum
        startWaiting(now)
    }

    /// 0: no limit but the total. What runs runs on.
    package mutating func setMaximumPerHost(_ maximum: Int, _ now: Instant) {
        limits.maximumPerHost = maximum
        var queue = WaitingQueue()
        swap(&queue, &waiting)
        let isRecounted = queue.setMaximumPerHost(maximum) { host(of: transferID(at: $0)) }
        swap(&queue, &waiting)
        if isRecounted {
            for id in running {
                let place = waiting.takePlace(host(of: id), always: true)
                transfers[id].place = place ?? -1
            }
        }
        startWaiting(now)
    }

    package mutating func setOrder(_ order: ExecutionOrder) { limits.order = order }

    package mutating func setSuspended(_ suspended: Bool, _ now: Instant) {
        isSuspended = suspended
        startWaiting(now)
    }
}
