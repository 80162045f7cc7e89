/// What a cache was asked of the latest kinds of request: what has been found out about one holds for all that ask in the
/// same way, as long as transport and store are the same; over https or not, since only there somebody is verified.
struct KnownQuestions {
    private static let capacity = 4
    private var entries: [(profile: TransferRequest.Profile, isSecure: Bool, question: CacheQuestion)] = []
    private var oldest = 0

    func question(_ request: TransferRequest) -> CacheQuestion? {
        // By index: each entry that is looked at would be counted up and down.
        for index in entries.indices
        where entries[index].profile === request.profile && entries[index].isSecure == request.url.isSecure {
            return entries[index].question
        }
        return nil
    }

    mutating func keep(_ question: CacheQuestion, _ request: TransferRequest) {
        let entry = (request.profile, request.url.isSecure, question)
        if entries.count < Self.capacity { return entries.append(entry) }
        entries[oldest] = entry
        oldest = (oldest + 1) % Self.capacity
    }

    mutating func forgetAll() { entries = [] }
}
