/// Transfers that nobody waits for: they keep the cache fresh, or end what is nearly done. The rules are their only
/// subscriber, until somebody else asks for the same bytes. A server may have them last, and they are not to hold up what
/// somebody does wait for: each has a time of its own, and gives way where its place is asked for. What has come of it by
/// then is kept as of one that is cancelled.
extension Downloads {
    /// Validates what is stored, in the background (RFC 5861 section 3): one for each request at a time, and nobody is
    /// told. `asked`: how the request was made that has had the stale answer. What it would not take is not stored.
    package mutating func revalidate(_ request: TransferRequest, _ asked: SubscriberOptions, _ now: Instant)
        -> TransferID?
    {
        guard !isShared(request) else { return nil }
        let id = insert(request)
        offer(id)
        joinInternally(id, asked.unattended(within: limits.unattendedTimeout))
        if consultsEarly(id) { consult(id, .first) } else { enqueue(id, now) }
        startWaiting(now)
        return id
    }

    /// The last one leaves a transfer that goes into the cache and is nearly done: it goes on (features R33), for about as
    /// long as that was to take.
    mutating func finishesWithout(_ subscriber: SubscriberID, _ now: Instant) {
        guard finishesNearlyDone, subscribers.contains(subscriber) else { return }
        let id = transfer(of: subscriber)
        guard transfers[id].cache.isStoring, transfers[id].isNearlyDone(now),
            let firstByte = transfers[id].firstByteNanoseconds
        else { return }
        let timeout = ResumeRules.finishTimeout(firstByteNanoseconds: firstByte)
        let options = subscribers[subscriber].options.unattended(within: min(timeout, limits.unattendedTimeout))
        start(joinInternally(id, options), now)
    }

    /// How the first of its subscribers has asked, who stands for all of them, for a validation: that follows no redirect.
    package func firstOptions(_ id: TransferID) -> SubscriberOptions? {
        guard transfers.contains(id), let first = firstSubscriber(of: id) else { return nil }
        var options = subscribers[first].options
        options.takesRedirects = transfers[id].request.followsRedirects
        return options
    }

    @discardableResult
    private mutating func joinInternally(_ id: TransferID, _ options: SubscriberOptions) -> SubscriberID {
        let subscriber = join(id, Boxed(wrappedValue: options))
        subscribers[subscriber].isInternal = true
        transfers[id].internalCount += 1
        internalCount += 1
        return subscriber
    }

    package func isUnattended(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].isUnattended }

    /// Nobody is left but those.
    package var hasOnlyInternal: Bool { externalCount == 0 }

    /// Subscribers that somebody else is told for.
    package var externalCount: Int { subscribers.count - internalCount }

    /// Its subscribers have changed, or it has come to wait.
    mutating func updateAttendance(_ id: TransferID) {
        guard internalCount > 0, transfers[id].phase == .waiting else { return }
        waiting.setUnattended(SlotTable<Transfer>.slot(id), transfers[id].isUnattended)
    }

    // MARK: Giving way

    /// One that runs ends, since what somebody waits for can start then. False: there is none.
    mutating func giveWay(_ now: Instant) -> Bool {
        guard internalCount > 0, !isSuspended, background?.isOver != true else { return false }
        let isFull = running.count >= limits.maximumConcurrent || memory.isFull
        for id in running.reversed() where transfers[id].isUnattended {
            // Without a body it would give no memory back.
            guard !memory.isFull || transfers[id].countedBytes > 0 else { continue }
            guard waiting.isAskedFor(transfers[id].place, isLast: isFull) else { continue }
            giveUp(id, now)
            return true
        }
        return false
    }

    /// One that has been paused and that somebody waits for is to go on: what takes its place ends.
    mutating func giveWay(to id: TransferID, _ now: Instant) {
        guard internalCount > 0, !transfers[id].isUnattended else { return }
        let host = host(of: id)
        for other in running.reversed() where transfers[other].isUnattended {
            let isFull = running.count >= limits.maximumConcurrent
            let isAtHost = limits.maximumPerHost > 0 && waiting.isPlace(transfers[other].place, at: host)
            if isFull || (isAtHost && !waiting.isOpen(transfers[other].place)) { giveUp(other, now) }
        }
    }

    /// Whether its turn has come though what somebody waits for could have its place.
    func givesWay(_ id: TransferID, _ place: WaitingQueue.Place) -> Bool {
        guard internalCount > 0, transfers[id].isUnattended else { return false }
        return waiting.isAskedFor(place, isLast: running.count + 1 >= limits.maximumConcurrent)
    }

    mutating func giveUp(_ id: TransferID, _ now: Instant) {
        let failure = Failure(.cancelled, "given up: nobody waits for it, and its place was asked for")
        forEachSubscriber(id) { $0.end($1, .failure(failure), now) }
        // Its memory is for what runs before it is for what waits.
        if hasRoom { relieve(now) }
    }
}

extension SubscriberOptions {
    /// Of a transfer that nobody waits for: it takes what this subscriber would take, and no more of it. `timeout`:
    /// milliseconds from when it leaves the queue, or from its `start`.
    func unattended(within timeout: Int64) -> SubscriberOptions {
        var options = SubscriberOptions()
        options.priority = .low
        options.decode = nil
        options.isForPicture = isForPicture || decode != nil
        options.takesRedirects = takesRedirects
        options.acceptsAnyStatus = acceptsAnyStatus
        options.validation = validation
        options.maximumBodyBytes = maximumBodyBytes
        options.connectTimeout = connectTimeout
        options.idleTimeout = idleTimeout
        options.totalTimeout = totalTimeout > 0 ? min(totalTimeout, timeout) : timeout
        return options
    }
}
