import ImgdlCore

/// The lanes of a transport: one for requests that ask for nothing special, which is all there is most of the time, and
/// one for each other trust in use. Of those that nobody uses a few stay for later. Those that are retired
/// take no transfer any more, and are closed when their last one has ended.
final class Lanes {
    static let maximumUnused = 4

    private let loop: any TransportLoop
    private let maximumIdleConnections: Int32
    private let watch: TurnWatch
    private(set) var common: Lane
    /// Least recently used first.
    private(set) var special: [Lane] = []
    private(set) var retired: [Lane] = []
    /// The lanes that there are are to be retired before the next transfer begins.
    private var areOutdated = false
    private(set) var areClosed = false
    /// Whose descriptor it is, for all lanes but the common one.
    private var owners: [Int32: Lane] = [:]

    init(loop: any TransportLoop, maximumIdleConnections: Int32, watch: TurnWatch) throws(Failure) {
        self.loop = loop
        self.maximumIdleConnections = maximumIdleConnections
        self.watch = watch
        common = try Lane(
            RequestTrust(),
            CurlMulti(loop: loop, maximumIdleConnections: maximumIdleConnections, watch: watch))
    }

    /// Not while curl is running: it may close lanes.
    func lane(for request: TransportRequest, isUnshared: Bool) throws(Failure) -> Lane {
        if areOutdated { try retire() }
        let isCommon = request.url.isSecure ? request.manner.trusts(common.trust) : request.partition.isEmpty
        if isCommon, !isUnshared { return common }
        let manner = request.manner
        if let index = special.firstIndex(where: { $0.isUnshared == isUnshared && manner.trusts($0.trust) }) {
            let lane = special.remove(at: index)
            special.append(lane)
            return lane
        }
        closeUnused(keeping: Self.maximumUnused - 1)
        let lane = try newLane(manner.identity.trust, isUnshared: isUnshared)
        note(lane)
        special.append(lane)
        return lane
    }

    private func newLane(_ trust: RequestTrust, isUnshared: Bool = false) throws(Failure) -> Lane {
        try Lane(
            trust, CurlMulti(loop: loop, maximumIdleConnections: maximumIdleConnections, watch: watch),
            isUnshared: isUnshared)
    }

    /// Notes which descriptors are this lane's, from now on.
    private func note(_ lane: Lane) {
        lane.multi.onWatch = { [weak self, unowned lane] descriptor, isWatched in
            self?.owners[descriptor] = isWatched ? lane : nil
        }
    }

    func releaseSpareHandles() { forEach { $0.releaseSpareHandles() } }

    /// No transfer that begins from now on uses a connection that there is. `closeRetired` closes those that are idle.
    /// Without memory for new lanes nothing changes.
    func retire() throws(Failure) {
        guard !areClosed else { return }
        let next = try newLane(RequestTrust())
        areOutdated = false
        // A number that another lane has is of a socket of the common one's that curl has closed without a word.
        for descriptor in common.multi.openSockets where owners[descriptor] == nil { owners[descriptor] = common }
        note(common)
        retired += special
        retired.append(common)
        special = []
        common = next
    }

    /// As `retire`, before the next transfer begins: without memory for new lanes it fails. What has begun and is not
    /// sent yet begins anew. Also while curl is running.
    func leave() {
        areOutdated = true
        forEach { $0.leave() }
    }

    var areRetired: Bool { !retired.isEmpty }

    /// Not while curl is running.
    func closeRetired() {
        retired.removeAll { lane in
            guard lane.running == 0 else { return false }
            close(lane)
            return true
        }
    }

    /// Its descriptors' numbers come back, as others'.
    private func close(_ lane: Lane) {
        lane.close()
        owners = owners.filter { $0.value !== lane }
    }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        if !owners.isEmpty, let owner = owners[descriptor] {
            owner.descriptorReady(descriptor, readable: readable, writable: writable)
        } else {
            common.descriptorReady(descriptor, readable: readable, writable: writable)
        }
    }

    /// None once they are closed.
    var deadline: Instant? {
        guard !special.isEmpty || !retired.isEmpty else { return common.multi.deadline }
        return ([common] + special + retired).compactMap(\.multi.deadline).min()
    }

    /// Those with new transfers first, which have nothing to read yet, then whoever has been due for longest. None once those
    /// before it have had the time of a turn, since a lane may have as much to read as a socket: the others stay due. Of those
    /// that are closed meanwhile nothing comes.
    func forEachDue(_ now: Instant, _ body: (Lane) -> Void) {
        guard !special.isEmpty || !retired.isEmpty else {
            if common.isDue(now) { body(common) }
            return
        }
        let due = ([common] + special + retired).compactMap { lane in
            lane.multi.deadline.map { (lane: lane, since: lane.multi.hasNewcomers ? Instant(nanoseconds: .min) : $0) }
        }
        let turn = DecodingTurn(limit: BodyLine.timeOfPieces)
        for (lane, since) in due.sorted(by: { $0.since < $1.since }) where since <= now && !turn.isOver { body(lane) }
    }

    func forEach(_ body: (Lane) -> Void) {
        body(common)
        guard !special.isEmpty || !retired.isEmpty else { return }
        for lane in special + retired { body(lane) }
    }

    func close() {
        for lane in special + retired { lane.close() }
        special = []
        retired = []
        common.close()
        areClosed = true
    }

    /// Most of the time there are no more.
    var mayHaveTooManyUnused: Bool { special.count > Self.maximumUnused }

    /// Those that many transfers at once had, beyond the few that stay: what was in the files that they were made with
    /// would stay, too. Not while curl is running.
    func closeUnused() { closeUnused(keeping: Self.maximumUnused) }

    private func closeUnused(keeping count: Int) {
        var excess = special.count { $0.running == 0 } - count
        special.removeAll { lane in
            guard excess > 0, lane.running == 0 else { return false }
            excess -= 1
            close(lane)
            return true
        }
    }
}
