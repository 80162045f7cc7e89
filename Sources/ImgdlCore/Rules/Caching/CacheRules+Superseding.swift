/// What is stored for who asks and has been overtaken by an answer to the same request: nobody is to get it as if nothing had
/// come since, whether the answer is stored or not.
extension CacheRules {
    /// Whether an answer is a newer one of the resource. Trouble of the server's, a demand for credentials, and a part of it
    /// say nothing of what is stored.
    package static func supersedes(_ head: ResponseHead, _ request: CacheRequest) -> Bool {
        guard request.method == "GET", request.mode != .off, !CacheControl(request.fields).noStore else { return false }
        return switch head.status {
        case 206, 304: false
        case 200..<400, 404, 410: true
        default: false
        }
    }

    /// Those of `known` that go. `stored`: what is stored of the answer, which takes the place of those with the same varying
    /// fields by itself; nil: nothing is.
    package static func superseded(
        _ known: [StoredEntry], by head: ResponseHead, askedIn context: StoredContext?, stored: StoredResponse?
    ) -> [StoredEntry] {
        known.filter { entry in
            guard mayUpdate(entry.response, by: head, askedIn: context) else { return false }
            guard let stored else { return true }
            return stored.varying != entry.response.varying || stored.context != entry.response.context
        }
    }
}
