/// A drip: a transfer that brings less than `slowBytes` a second while others wait for memory, and that does not become slow
/// (Downloads+Pace), since slow ones hold the budget already. All others would wait for it for as long as its server likes. The
/// time that it is behind adds up, and what it brings is taken off: bursts now and then are as little as drops. Once that is as
/// long as its idle timeout it ends like a silent one, one at each look, since the room that it leaves may be all that the others
/// need.
extension Downloads {
    /// Whether somebody who waits would go on if there were more memory.
    var othersWaitForMemory: Bool {
        if !heldDecodes.isEmpty || memory.isFull && waiting.count > 0 { return true }
        return pressed.contains { transfers.contains($0) && transfers[$0].pauses.contains(.memory) }
    }

    /// One that is slow or paused for memory is no further behind than before; a slow one catches up. Without its place it is not
    /// behind at all.
    mutating func countDrip(_ id: TransferID, brought: Int64, holdsUp: Bool) {
        let grown = holdsUp && transfers[id].isAtTransport && bytesInWork(id) > 0 ? Self.lookInterval : 0
        guard grown > 0 || transfers[id].behind > 0 else { return }
        let (scaled, overflow) = brought.multipliedReportingOverflow(by: Self.lookInterval)
        guard limits.slowBytes > 0, !overflow else { return forgetDrip(id) }
        transfers[id].behind = max(0, transfers[id].behind + grown - scaled / limits.slowBytes)
    }

    mutating func forgetDrip(_ id: TransferID) {
        if transfers[id].behind != 0 { transfers[id].behind = 0 }
    }

    /// The leader, for whom others are paused; the largest whose canvas others wait for to be decoded; or the largest, where those
    /// like it hold half of the budget together.
    mutating func endDrip(_ now: Instant) {
        guard othersWaitForMemory else { return }
        var held: Int64 = 0
        var largest: (id: TransferID, bytes: Int64, timeout: Int64)?
        var blocking: (id: TransferID, bytes: Int64, timeout: Int64)?
        for id in running where transfers[id].behind > 0 && !transfers[id].isSlow {
            guard let timeout = overdueTimeout(id, now) else { continue }
            let bytes = bytesInWork(id)
            held += bytes
            if bytes > largest?.bytes ?? -1 { largest = (id, bytes, timeout) }
            let isWaitedFor = id == leader || !heldDecodes.isEmpty && bytes > transfers[id].countedBytes
            if isWaitedFor, bytes > blocking?.bytes ?? -1 { blocking = (id, bytes, timeout) }
        }
        guard let drip = blocking ?? (held >= memory.budget / 2 ? largest : nil) else { return }
        let pace = "less than \(limits.slowBytes) bytes a second on average, while others waited for memory"
        let cause = "the server sent \(pace), for \(drip.timeout) ms or more"
        actions.append(.stop(drip.id))
        failed(drip.id, Failure(.idleTimeout, cause), now)
    }

    /// The longest idle timeout of its subscribers, where it is over for each of them.
    private mutating func overdueTimeout(_ id: TransferID, _ now: Instant) -> Int64? {
        var longest: Int64 = 0
        var last: Instant?
        forEachSubscriber(id) { downloads, subscriber in
            longest = max(longest, downloads.subscribers[subscriber].options.idleTimeout(downloads.limits))
            if let since = downloads.subscribers[subscriber].since { last = max(last ?? since, since) }
        }
        let hasTime = last.map { $0.advanced(byMilliseconds: longest) > now } ?? false
        return transfers[id].behind >= longest && !hasTime ? longest : nil
    }
}
