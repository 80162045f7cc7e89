/// By which numbers the rules know the executors of a downloader's requests. Each is known for as long as requests name it, or
/// something waits there; of those there are few.
struct ExecutorNumbers {
    private struct Entry {
        /// Of one that is known: it lives as long as what names it.
        var executor: ObjectIdentifier?
        var uses = 0
    }

    /// The first is 1.
    private var entries: [Entry] = []

    mutating func use(_ executor: ObjectIdentifier) -> Backlogs.Executor {
        var free: Int?
        for index in entries.indices {
            if entries[index].executor == executor {
                entries[index].uses += 1
                return Backlogs.Executor(index + 1)
            }
            if entries[index].executor == nil { free = index }
        }
        let index = free ?? entries.count
        if free == nil { entries.append(Entry()) }
        entries[index] = Entry(executor: executor, uses: 1)
        return Backlogs.Executor(index + 1)
    }

    /// nil: nobody has named it.
    func number(_ executor: ObjectIdentifier) -> Backlogs.Executor? {
        entries.firstIndex { $0.executor == executor }.map { Backlogs.Executor($0 + 1) }
    }

    mutating func useAgain(_ number: Backlogs.Executor) { if number > 0 { entries[Int(number) - 1].uses += 1 } }

    mutating func leave(_ number: Backlogs.Executor) {
        guard number > 0 else { return }
        let index = Int(number) - 1
        entries[index].uses -= 1
        if entries[index].uses == 0 { entries[index].executor = nil }
    }
}
