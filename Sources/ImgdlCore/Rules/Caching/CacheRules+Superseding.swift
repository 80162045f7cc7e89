/// Stored responses that an answer to the same request has overtaken: nobody is to get one as if nothing had come since, whether
/// the answer is stored or not.
extension CacheRules {
    package enum Overtaken {
        /// Its place is taken.
        case removed(EntryID)
        /// It is stale from now on. What is not stored takes no place: a portal on the way may have sent it.
        case madeStale(StoredEntry)
    }

    /// Of `known`, which are stored for who asks. `stored`: what is stored of the answer, which takes the place of those with
    /// the same varying fields by itself; nil: nothing is. `isUnattended`: nobody has asked
    /// for it but the cache, to be fresh: what is stored answers until it may no longer.
    package static func overtaken(
        _ known: [StoredEntry], by head: ResponseHead, for request: CacheRequest, stored: StoredResponse?,
        isUnattended: Bool = false
    ) -> [Overtaken] {
        guard supersedes(head, request) else { return [] }
        return known.compactMap { entry in
            guard mayUpdate(entry.response, by: head, askedIn: request.context) else { return nil }
            guard let stored else {
                return isUnattended ? nil : .madeStale(entry)
            }
            let isReplaced = stored.varying == entry.response.varying && stored.context == entry.response.context
            return isReplaced ? nil : .removed(entry.id)
        }
    }

    /// Trouble of the server's, a demand for credentials, and a part of the resource say nothing of what is stored.
    private static func supersedes(_ head: ResponseHead, _ request: CacheRequest) -> Bool {
        guard request.method == "GET", request.mode != .off, !CacheControl(request.fields).noStore else { return false }
        return switch head.status {
        case 206, 304: false
        case 200..<400, 404, 410: true
        default: false
        }
    }
}
