/// Requests that end without ever having been submitted, all in the same way: what a batch does not begin any more. Whoever has
/// them last ends them.
final class UnsubmittedRequests {
    private var ends: Queue<RequestEnd>
    private let failure: Failure?

    init(_ ends: consuming Queue<RequestEnd>, _ failure: Failure?) {
        self.ends = ends
        self.failure = failure
    }

    /// One after the other. `then` runs after each.
    func end(_ statistics: DownloaderStatistics, then: () -> Void = {}) {
        while let end = ends.popFirst() {
            statistics.drop(end.subscription, failure)
            end.post(failure)
            then()
        }
    }
}
