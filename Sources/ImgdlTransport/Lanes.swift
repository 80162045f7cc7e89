import ImgdlCore

/// The lanes of a transport: one for requests that ask for nothing special, which is all there is most of the time, and
/// one for each other `RequestTrust` in use. Of those that nobody uses a few stay for later.
final class Lanes {
    static let maximumUnused = 4

    private let loop: any TransportLoop
    private let maximumIdleConnections: Int32
    private let watch: TurnWatch
    let common: Lane
    /// Least recently used first.
    private(set) var special: [Lane] = []
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
    func lane(for request: TransportRequest) throws(Failure) -> Lane {
        let isCommon = request.url.isSecure ? request.manner.trusts(common.trust) : request.partition.isEmpty
        if isCommon { return common }
        let trust = request.manner.identity.trust
        if let index = special.firstIndex(where: { $0.trust == trust }) {
            let lane = special.remove(at: index)
            special.append(lane)
            return lane
        }
        closeUnused(keeping: Self.maximumUnused - 1)
        let multi = try CurlMulti(loop: loop, maximumIdleConnections: maximumIdleConnections, watch: watch)
        let lane = try Lane(trust, multi)
        multi.onWatch = { [weak self, unowned lane] descriptor, isWatched in
            self?.owners[descriptor] = isWatched ? lane : nil
        }
        special.append(lane)
        return lane
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
        guard !special.isEmpty else { return common.multi.deadline }
        return ([common] + special).compactMap(\.multi.deadline).min()
    }

    /// Of those that are closed meanwhile nothing comes.
    func forEachDue(_ now: Instant, _ body: (Lane) -> Void) {
        if common.isDue(now) { body(common) }
        for lane in special where lane.isDue(now) { body(lane) }
    }

    func forEach(_ body: (Lane) -> Void) {
        body(common)
        for lane in special { body(lane) }
    }

    func close() {
        for lane in special { lane.close() }
        special = []
        common.close()
        areClosed = true
    }

    private func closeUnused(keeping count: Int) {
        var excess = special.count { $0.running == 0 } - count
        special.removeAll { lane in
            guard excess > 0, lane.running == 0 else { return false }
            excess -= 1
            lane.close()
            return true
        }
    }
}
