/// Transfers beyond the budget that bring next to nothing, and that may not be slow any more (Downloads+Pace): all others would
/// wait for them as long as their servers like. Each second in which one brings less than `slowBytes`, while others wait, is a
/// debt, and what it brings pays for it: bursts now and then are as little as drops. Once the debt is as long as its idle
/// timeout it ends like a silent one, one at each look, since the room that it leaves may be all that the others need.
extension Downloads {
    /// Somebody needs memory that others have.
    var waitsForMemory: Bool {
        if !heldDecodes.isEmpty || waiting.count > 0 { return true }
        return pressed.contains { transfers.contains($0) && transfers[$0].pauses.contains(.memory) }
    }

    /// What is paused or slow owes what it owed before.
    mutating func countDrip(_ id: TransferID, brought: Int64, holdsUp: Bool) {
        let isItsServers = transfers[id].isAtTransport && transfers[id].pauses.isEmpty && bytesInWork(id) > 0
        let grown = holdsUp && isItsServers ? Self.lookInterval : 0
        guard grown > 0 || transfers[id].dripDebt > 0 else { return }
        let (scaled, overflow) = brought.multipliedReportingOverflow(by: Self.lookInterval)
        guard limits.slowBytes > 0, !overflow else { return forgetDrip(id) }
        transfers[id].dripDebt = max(0, transfers[id].dripDebt + grown - scaled / limits.slowBytes)
    }

    mutating func forgetDrip(_ id: TransferID) {
        if transfers[id].dripDebt != 0 { transfers[id].dripDebt = 0 }
    }

    /// The leader, for whom others are paused; the largest whose canvas others wait for to be decoded; or the largest, where those
    /// like it hold half of the budget together.
    mutating func endDrip(_ now: Instant) {
        guard waitsForMemory else { return }
        var held: Int64 = 0
        var largest: (id: TransferID, bytes: Int64, timeout: Int64)?
        var blocking: (id: TransferID, bytes: Int64, timeout: Int64)?
        for id in running where transfers[id].dripDebt > 0 && !transfers[id].isSlow {
            guard let timeout = overdueTimeout(id, now) else { continue }
            let bytes = bytesInWork(id)
            held += bytes
            if bytes > largest?.bytes ?? -1 { largest = (id, bytes, timeout) }
            let isWaitedFor = id == leader || !heldDecodes.isEmpty && bytes > transfers[id].countedBytes
            if isWaitedFor, bytes > blocking?.bytes ?? -1 { blocking = (id, bytes, timeout) }
        }
        guard let drip = blocking ?? (held >= memory.budget / 2 ? largest : nil) else { return }
        let pace = "less than \(limits.slowBytes) bytes a second for \(drip.timeout) ms"
        let cause = "the server sent \(pace), while others waited for the memory that its body holds"
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
        return transfers[id].dripDebt >= longest && !hasTime ? longest : nil
    }
}
