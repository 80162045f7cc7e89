/// What is sent for a hop.
enum HopRequest: Equatable {
    /// The request itself, or what a hook has made of it.
    case first
    /// What the cache was consulted about last.
    case consulted
    /// What a redirect leads to.
    indirect case redirect(Redirect)
    /// The same once more, with a credential.
    indirect case credential(Credential)
}

/// The one way to a server: first requests, what hooks and redirects make of them, and what is sent once more. So no host
/// has more of them than its limit, whoever chose the host, and none goes out in the background that does not go on there:
/// what may not go waits in the queue of the host that it is for.
extension Downloads {
    /// Which the hop at hand is for.
    func host(of id: TransferID) -> HostAndPort {
        if transfers[id].asksItsOwnURL { return HostAndPort(transfers[id].request.url) }
        return HostAndPort(transfers[id].laterHops.last ?? transfers[id].firstURL)
    }

    /// Nothing of it is at the transport. Whoever calls is to call `startWaiting`: a place may have become free.
    mutating func send(_ id: TransferID, _ request: HopRequest, _ now: Instant) {
        guard movesPlace(id) else { return waitForPlace(id, request, now) }
        switch request {
        case .first:
            transfers[id].isObserved = true
            actions.append(.start(id))
        case .consulted:
            transfers[id].isObserved = true
            transfers[id].cache.isExchanging = true
            actions.append(.send(id))
        case .redirect(let redirect):
            transfers[id].cache.isExchanging = false
            actions.append(.follow(id, redirect))
        case .credential(let credential): actions.append(.authenticate(id, credential))
        }
        connect(id, now)
    }

    /// Its place is one at the host of its hop. False when it has none, or that host has none to give.
    private mutating func movesPlace(_ id: TransferID) -> Bool {
        let held = transfers[id].place
        guard held >= 0 else { return false }
        guard waiting.maximumPerHost > 0 else { return true }
        let host = host(of: id)
        if waiting.isPlace(held, at: host) { return true }
        guard let place = waiting.takePlace(host) else { return false }
        waiting.leave(held)
        transfers[id].place = place
        return true
    }

    /// It holds up nobody meanwhile, and its clocks stand still where they would in the queue.
    private mutating func waitForPlace(_ id: TransferID, _ request: HopRequest, _ now: Instant) {
        leaveTransport(id, now)
        transfers[id].heldRequest = request
        comeBack(id, now)
    }

    /// To the queue; one that is under way goes first, as if it had never left its place.
    mutating func comeBack(_ id: TransferID, _ now: Instant) {
        enqueue(id, atFront: transfers[id].isUnderWay, now)
        updateClocks(id, now)
    }

    /// A request goes to the transport.
    private mutating func connect(_ id: TransferID, _ now: Instant) {
        transfers[id].phase = .connecting
        transfers[id].isAtTransport = true
        transfers[id].hasHead = false
        transfers[id].drained = 0
        transfers[id].cache.isPlaying = false
        transfers[id].cache.isStoring = false
        touch(id, now)
    }
}
