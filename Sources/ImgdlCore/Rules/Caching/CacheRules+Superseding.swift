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
    fileprivate static func supersedes(_ head: ResponseHead, _ request: CacheRequest) -> Bool {
        guard request.method == "GET", request.mode != .off, !CacheControl(request.fields).noStore else { return false }
        return switch head.status {
        case 206, 304: false
        case 200..<400, 404, 410: true
        default: false
        }
    }
}

/// An answer of which nothing is stored. No store knows of it when one comes that was asked for before.
package struct UnstoredAnswer: Sendable {
    private let request: CacheRequest
    private let head: ResponseHead
    /// As it would be stored.
    private let response: StoredResponse

    /// nil: it says nothing of others. `request`: as it was sent.
    package init?(
        to request: CacheRequest, _ head: ResponseHead, requestTime: Int64, responseTime: Int64,
        _ fractions: TimeFractions?
    ) {
        guard let context = request.context, CacheRules.supersedes(head, request) else { return nil }
        self.request = request
        self.head = head
        let fields = CacheRules.storable(head.fields, responseTime: responseTime)
        var response = StoredResponse(
            status: head.status, httpVersion: head.httpVersion, fields: fields, requestTime: requestTime,
            responseTime: responseTime, context: context)
        response.fractions = fractions
        self.response = response
    }

    /// One that is stored: stale, where this has overtaken it; nil: it has not. Both are answers to one downloader, whose clock
    /// is taken not to have been set back between them.
    package func overtake(_ other: StoredResponse) -> StoredResponse? {
        let isForAll = CacheControl(other.fields).isForAll
        guard VaryRules.matches(request, other, isForAll: isForAll),
            CacheRules.mayUpdate(other, by: head, askedIn: request.context),
            other.isOlder(than: response, wallTime: max(other.responseTime, response.responseTime))
        else { return nil }
        return CacheRules.overtaken(other, at: response.responseTime)
    }
}
