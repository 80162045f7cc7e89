/// What a cache was asked of the latest kinds of request: what has been found out about one holds for all that ask in the
/// same way, as long as transport and store are the same.
struct KnownQuestions {
    private static let capacity = 4
    private var entries: [(profile: TransferRequest.Profile, question: CacheQuestion)] = []
    private var oldest = 0

    func question(_ profile: TransferRequest.Profile) -> CacheQuestion? {
        // By index: each entry that is looked at would be counted up and down.
        for index in entries.indices where entries[index].profile === profile { return entries[index].question }
        return nil
    }

    mutating func keep(_ question: CacheQuestion, _ profile: TransferRequest.Profile) {
        if entries.count < Self.capacity { return entries.append((profile, question)) }
        entries[oldest] = (profile, question)
        oldest = (oldest + 1) % Self.capacity
    }

    mutating func forgetAll() { entries = [] }
}
