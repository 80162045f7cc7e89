/// Transfers whose turn to start has passed, by the executors, hooks or sources, of which they wait for one, oldest first.
/// Some have ended or gone on since.
struct PassedTurns<Host: Hashable & Comparable>: ~Copyable {
    private struct Line {
        var ids: [TransferID] = []
        var head = 0

        mutating func popFirst() -> TransferID {
            head += 1
            let first = ids[head - 1]
            if head >= 64, head * 2 >= ids.count {
                ids.removeFirst(head)
                head = 0
            }
            return first
        }
    }

    private var lines: [Host: Line] = [:]
    private(set) var count = 0
    private var lookedAt = 64

    /// There are so many more than when it was last looked which are meant that most may be left.
    var needsLook: Bool { count >= lookedAt }
    var isEmpty: Bool { count == 0 }

    /// In an order that is the same each time.
    var hosts: [Host] { lines.keys.sorted() }

    /// Once, where it has just been appended.
    mutating func append(_ id: TransferID, _ host: Host) {
        if lines[host]?.ids.last == id { return }
        lines[host, default: Line()].ids.append(id)
        count += 1
    }

    mutating func popFirst(_ host: Host) -> TransferID? {
        guard let id = lines[host]?.popFirst() else { return nil }
        count -= 1
        if let line = lines[host], line.head == line.ids.count { lines[host] = nil }
        return id
    }

    /// Keeps those that are meant, each once, and throws the others out.
    mutating func keep(_ isMeant: (TransferID) -> Bool) {
        count = 0
        for (host, line) in lines {
            var known: Set<TransferID> = []
            let ids = line.ids[line.head...].filter { isMeant($0) && known.insert($0).inserted }
            lines[host] = ids.isEmpty ? nil : Line(ids: ids)
            count += ids.count
        }
        lookedAt = max(64, 2 * count)
    }
}
