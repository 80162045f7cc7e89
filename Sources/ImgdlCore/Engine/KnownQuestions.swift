/// What a cache was asked of the latest kinds of request: what has been found out about one holds for all that ask in the
/// same way, as long as transport and store are the same; over https or not, since only there somebody is verified.
///
/// It holds no request alive: a profile has the hooks, whose destructor the host waits for.
struct KnownQuestions {
    private static let capacity = 4
    private var entries: [Entry] = []
    private var oldest = 0

    func question(_ request: TransferRequest) -> CacheQuestion? {
        // By index: each entry that is looked at would be counted up and down.
        for index in entries.indices
        where entries[index].profile == request.profile.number && entries[index].isSecure == request.url.isSecure {
            return entries[index].question
        }
        return nil
    }

    mutating func keep(_ question: CacheQuestion, _ request: TransferRequest) {
        let entry = Entry(profile: request.profile.number, isSecure: request.url.isSecure, question: question)
        if entries.count < Self.capacity { return entries.append(entry) }
        entries[oldest] = entry
        oldest = (oldest + 1) % Self.capacity
    }

    mutating func forgetAll() { entries = [] }

    private struct Entry {
        let profile: UInt64
        let isSecure: Bool
        let question: CacheQuestion
    }
}
