/// In which order waiting transfers start. Values are ABI.
package enum ExecutionOrder: UInt32, Sendable {
    case fifo = 0
    case lifo = 1
}

/// Whom a limit for each host counts together.
package struct HostAndPort: Hashable, Sendable {
    package let host: String
    package let port: UInt16

    package init(_ url: ParsedURL) {
        host = url.host
        port = url.port
    }
}

/// Transfers that wait for their turn (features B12, B13, C6, I22), known by their slots, and the places that running
/// ones take at their hosts.
///
/// Who goes next: the highest priority, within it a real queue or stack; but when three have gone so, the one that has
/// waited longest, whatever its priority, if that is longer than the aging interval. Hosts whose places are taken are
/// passed over, and in the background those that do not go on there.
///
/// Waiting transfers stand in heaps of their host, one for each lane; hosts with a free place stand in heaps of their
/// own, by the first of each lane. So each operation is O(log n), and a full host costs nothing.
package struct WaitingQueue: ~Copyable {
    /// A place at a host, to be given back once.
    package typealias Place = Int32

    /// A lane of a host, as a number, and whether nobody waits for what waits there.
    private struct Standing: BitwiseCopyable {
        private let node: Int32

        static let notWaiting = Standing(node: -1)

        private init(node: Int32) { self.node = node }

        init(_ host: Int, _ lane: Int, isUnattended: Bool = false) {
            node = Int32((host * laneCount + lane) << 1 | (isUnattended ? 1 : 0))
        }

        var isWaiting: Bool { node >= 0 }
        var isUnattended: Bool { node & 1 != 0 }
        var host: Int { Int(node >> 1) / laneCount }
        var lane: Int { Int(node >> 1) % laneCount }
        /// That of the same host's that is by age.
        var ageLane: Int { lane & backgroundLanes + WaitingQueue.ageLane }
    }

    /// A host that somebody waits for or runs at; the only one, when there is no limit for each.
    private struct Host: BitwiseCopyable {
        var roots = InlineArray<8, Int32>(repeating: -1)
        var waiting: Int32 = 0
        /// Of those that wait.
        var unattended: Int32 = 0
        var running: Int32 = 0
        var isOpen = true

        /// Somebody waits for one of them.
        var isAwaited: Bool { waiting > unattended }
    }

    /// Lanes of a host: three priorities and one by age, and the same once more for those that go on in the background.
    private static let laneCount = 8
    private static let ageLane = 3
    private static let backgroundLanes = 4
    /// One start in so many is for age.
    private static let agingTurn = 4

    private var standings = PlainTable<Standing>()
    private var hosts = PlainTable<Host>()
    /// Of each of them; nil for a free one, and where there is only one. Apart, since hosts are looked at all the time.
    private var names: [HostAndPort?] = []
    private var freeHosts = PlainTable<Int32>()
    private var hostsByName: [HostAndPort: Int32] = [:]
    private var ranks = PairingHeaps()
    /// By when they came, in nanoseconds; of those that came at the same time each a little later than the one before.
    private var ages = PairingHeaps()
    /// Nodes are a host and a lane.
    private var openHosts = PairingHeaps()
    private var roots = InlineArray<8, Int32>(repeating: -1)
    private var lastRank: Int64 = 0
    private var firstRank: Int64 = 0
    private var lastArrival = Int64.min
    private var startsSinceAged = 0
    /// As it was before the last one was taken.
    private var startsBefore = 0
    package private(set) var count = 0
    package private(set) var maximumPerHost: Int

    package init(maximumPerHost: Int = 0) { self.maximumPerHost = maximumPerHost }

    // MARK: Coming and going

    /// The slot must not wait already.
    package mutating func insert(
        _ slot: Int, _ host: HostAndPort, priority: Priority, continuesInBackground: Bool = false,
        order: ExecutionOrder, _ now: Instant
    ) {
        standings.extend(to: slot + 1, with: .notWaiting)
        lastArrival = max(lastArrival + 1, now.nanoseconds)
        let standing = Standing(self.host(host), Self.lane(priority, continuesInBackground))
        attach(slot, standing, rank: nextRank(order), age: lastArrival)
    }

    /// Does nothing for a slot that does not wait.
    package mutating func remove(_ slot: Int) {
        guard isWaiting(slot) else { return }
        let host = standings[slot].host
        detach(slot)
        dropIfUnused(host)
    }

    /// As the order says among those of the new priority; how long it has waited stays.
    package mutating func setPriority(_ slot: Int, _ priority: Priority, order: ExecutionOrder) {
        move(slot, to: priority.index + standings[slot].lane & Self.backgroundLanes, rank: nextRank(order))
    }

    /// Its turn stays. Does nothing for a slot that does not wait.
    package mutating func setContinuesInBackground(_ slot: Int, _ continues: Bool) {
        guard isWaiting(slot) else { return }
        let before = standings[slot].lane
        let lane = before & ~Self.backgroundLanes + (continues ? Self.backgroundLanes : 0)
        if lane != before { move(slot, to: lane, rank: ranks.key(slot)) }
    }

    /// Nobody waits for it, or somebody does again. Does nothing for a slot that does not wait.
    package mutating func setUnattended(_ slot: Int, _ isUnattended: Bool) {
        guard isWaiting(slot), standings[slot].isUnattended != isUnattended else { return }
        let before = standings[slot]
        standings[slot] = Standing(before.host, before.lane, isUnattended: isUnattended)
        hosts[before.host].unattended += isUnattended ? 1 : -1
    }

    private func isWaiting(_ slot: Int) -> Bool { slot < standings.count && standings[slot].isWaiting }

    /// Who goes next, with a place at its host.
    package mutating func popFirst(
        _ now: Instant, agingInterval: Int64, inBackground: Bool = false
    ) -> (slot: Int, place: Place)? {
        var next: Int?
        startsBefore = startsSinceAged
        if startsSinceAged >= Self.agingTurn - 1, let oldest = first(Self.ageLane, ages, inBackground),
            hasWaited(oldest, agingInterval, now)
        {
            next = oldest
            startsSinceAged = 0
        } else {
            for lane in [2, 1, 0] where next == nil { next = first(lane, ranks, inBackground) }
            if next != nil { startsSinceAged = min(startsSinceAged + 1, Self.agingTurn) }
        }
        guard let slot = next else { return nil }
        let host = standings[slot].host
        detach(slot)
        occupy(host)
        return (slot, Place(host))
    }

    private func hasWaited(_ slot: Int, _ milliseconds: Int64, _ now: Instant) -> Bool {
        // Whole microseconds: nanoseconds also keep those apart that came at the same time.
        let arrival = Instant(nanoseconds: ages.key(slot) / 1_000 * 1_000)
        return arrival.advanced(byMilliseconds: milliseconds) <= now
    }

    // MARK: Places

    /// For one that runs without having waited; nil when the host has none, unless `always`.
    package mutating func takePlace(_ host: HostAndPort, always: Bool = false) -> Place? {
        let index = self.host(host)
        guard always || hosts[index].isOpen else { return nil }
        occupy(index)
        return Place(index)
    }

    package mutating func leave(_ place: Place) {
        let host = Int(place)
        hosts[host].running -= 1
        updateOpen(host)
        dropIfUnused(host)
    }

    /// The one that was taken last does not start: its place is free, and its turn was none.
    package mutating func undo(_ place: Place) {
        startsSinceAged = startsBefore
        leave(place)
    }

    /// Whether the place is one at this host.
    package func isPlace(_ place: Place, at host: HostAndPort) -> Bool {
        maximumPerHost == 0 || names[Int(place)] == host
    }

    /// Its host has another one free.
    package func isOpen(_ place: Place) -> Bool { hosts[Int(place)].isOpen }

    /// Whether one that somebody waits for could start if this place were free. `isLast`: nothing can start as it is.
    /// O(1), and O(hosts) where it is the last.
    package func isAskedFor(_ place: Place, isLast: Bool) -> Bool {
        let own = hosts[Int(place)]
        if own.isAwaited { return isLast || !own.isOpen }
        guard isLast, maximumPerHost > 0 else { return false }
        for index in 0..<hosts.count where hosts[index].isOpen && hosts[index].isAwaited { return true }
        return false
    }

    /// 0: no limit. True when all places have to be taken anew, since hosts are counted otherwise than before;
    /// `host` tells that of a waiting slot. O(n) then, else O(hosts).
    package mutating func setMaximumPerHost(_ maximum: Int, host: (Int) -> HostAndPort) -> Bool {
        let isKept = (maximum == 0) == (maximumPerHost == 0)
        maximumPerHost = maximum
        guard !isKept else {
            for index in 0..<hosts.count { updateOpen(index) }
            return false
        }
        let slots = (0..<standings.count).filter { standings[$0].isWaiting }
        let keys = slots.map { (rank: ranks.key($0), age: ages.key($0)) }
        (names, hostsByName, count) = ([], [:], 0)
        hosts.removeAll()
        freeHosts.removeAll()
        ranks = PairingHeaps()
        ages = PairingHeaps()
        openHosts = PairingHeaps()
        roots = InlineArray(repeating: -1)
        for (slot, key) in zip(slots, keys) {
            let before = standings[slot]
            let standing = Standing(self.host(host(slot)), before.lane, isUnattended: before.isUnattended)
            attach(slot, standing, rank: key.rank, age: key.age)
        }
        return true
    }

    // MARK: Heaps

    private static func lane(_ priority: Priority, _ continuesInBackground: Bool) -> Int {
        priority.index + (continuesInBackground ? backgroundLanes : 0)
    }

    private mutating func nextRank(_ order: ExecutionOrder) -> Int64 {
        switch order {
        case .fifo:
            lastRank += 1
            return lastRank
        case .lifo:
            firstRank -= 1
            return firstRank
        }
    }

    private func first(_ lane: Int, _ heaps: borrowing PairingHeaps, _ inBackground: Bool) -> Int? {
        let other = lane + Self.backgroundLanes
        let chosen: Int
        if inBackground || roots[lane] < 0 {
            chosen = other
        } else if roots[other] < 0 || openHosts.key(Int(roots[lane])) <= openHosts.key(Int(roots[other])) {
            chosen = lane
        } else {
            chosen = other
        }
        guard roots[chosen] >= 0 else { return nil }
        return Int(hosts[Int(roots[chosen]) / Self.laneCount].roots[chosen])
    }

    private mutating func attach(_ slot: Int, _ standing: Standing, rank: Int64, age: Int64) {
        standings[slot] = standing
        hosts[standing.host].waiting += 1
        if standing.isUnattended { hosts[standing.host].unattended += 1 }
        count += 1
        change(standing.host, standing.lane) { ranks, _, root in ranks.insert(slot, key: rank, &root) }
        change(standing.host, standing.ageLane) { _, ages, root in ages.insert(slot, key: age, &root) }
    }

    private mutating func detach(_ slot: Int) {
        let standing = standings[slot]
        standings[slot] = .notWaiting
        hosts[standing.host].waiting -= 1
        if standing.isUnattended { hosts[standing.host].unattended -= 1 }
        count -= 1
        change(standing.host, standing.lane) { ranks, _, root in ranks.remove(slot, &root) }
        change(standing.host, standing.ageLane) { _, ages, root in ages.remove(slot, &root) }
        if count == 0, standings.count > mostRoomKept { giveBack() }
    }

    /// A crowd is over, and stands nowhere any more.
    @inline(never) private mutating func giveBack() {
        standings.reset()
        ranks = PairingHeaps()
        ages = PairingHeaps()
    }

    private mutating func move(_ slot: Int, to lane: Int, rank: Int64) {
        let before = standings[slot]
        let after = Standing(before.host, lane, isUnattended: before.isUnattended)
        standings[slot] = after
        change(before.host, before.lane) { ranks, _, root in ranks.remove(slot, &root) }
        change(after.host, after.lane) { ranks, _, root in ranks.insert(slot, key: rank, &root) }
        guard before.ageLane != after.ageLane else { return }
        let age = ages.key(slot)
        change(before.host, before.ageLane) { _, ages, root in ages.remove(slot, &root) }
        change(after.host, after.ageLane) { _, ages, root in ages.insert(slot, key: age, &root) }
    }

    /// Of one lane of a host; where another comes first in it, the host may stand elsewhere.
    @inline(__always) private mutating func change(
        _ host: Int, _ lane: Int,
        _ body: (_ ranks: inout PairingHeaps, _ ages: inout PairingHeaps, _ root: inout Int32) -> Void
    ) {
        let first = hosts[host].roots[lane]
        body(&ranks, &ages, &hosts[host].roots[lane])
        if hosts[host].roots[lane] != first { show(host, lane) }
    }

    /// Has the host stand where its first of the lane puts it.
    private mutating func show(_ host: Int, _ lane: Int) {
        let node = host * Self.laneCount + lane
        let first = Int(hosts[host].roots[lane])
        guard first >= 0, hosts[host].isOpen else {
            if openHosts.contains(node) { openHosts.remove(node, &roots[lane]) }
            return
        }
        let key = lane % Self.backgroundLanes == Self.ageLane ? ages.key(first) : ranks.key(first)
        if openHosts.contains(node) {
            openHosts.setKey(node, key, &roots[lane])
        } else {
            openHosts.insert(node, key: key, &roots[lane])
        }
    }

    // MARK: Hosts

    private mutating func host(_ name: HostAndPort) -> Int {
        if maximumPerHost == 0 {
            if hosts.isEmpty { append(nil) }
            return 0
        }
        if let known = hostsByName[name] { return Int(known) }
        let new = Int(freeHosts.popLast() ?? Int32(hosts.count))
        if new == hosts.count { append(name) } else { (hosts[new], names[new]) = (Host(), name) }
        hostsByName[name] = Int32(new)
        return new
    }

    private mutating func append(_ name: HostAndPort?) {
        hosts.append(Host())
        names.append(name)
    }

    private mutating func occupy(_ host: Int) {
        hosts[host].running += 1
        updateOpen(host)
    }

    private mutating func updateOpen(_ host: Int) {
        let isOpen = maximumPerHost == 0 || hosts[host].running < maximumPerHost
        guard isOpen != hosts[host].isOpen else { return }
        hosts[host].isOpen = isOpen
        for lane in 0..<Self.laneCount { show(host, lane) }
    }

    private mutating func dropIfUnused(_ host: Int) {
        guard hosts[host].waiting == 0, hosts[host].running == 0, let name = names[host] else { return }
        names[host] = nil
        hostsByName[name] = nil
        freeHosts.append(Int32(host))
    }
}
