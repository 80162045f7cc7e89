/// URLs that failed for good a moment ago (features E4, E10, I29): for a while nobody asks for them again. Bounded; the
/// oldest goes first.
package struct FailedURLs {
    package static let capacity = 1024
    /// Requests whose URL and header fields have more bytes are not remembered.
    static let maximumRequestBytes = 16 << 10

    /// What of a request the failure was about.
    private struct Key: Hashable {
        let url: String
        let method: String
        /// Who asks otherwise may get other bytes.
        let fields: [HeaderField]
        let body: [UInt8]?
        let identity: RequestIdentity
        let followsRedirects: Bool
        let allowsDowngrade: Bool

        init(_ request: TransferRequest) {
            url = request.url.canonical
            method = request.method
            fields = request.fields
            body = request.body
            identity = request.identity
            followsRedirects = request.followsRedirects
            allowsDowngrade = request.allowsDowngrade
        }
    }

    private struct Entry {
        let failure: Failure
        let instant: Instant
        let number: UInt64
        /// Which were asked, and since when (`OutdatedURLs`).
        let hops: [ParsedURL]
        let moment: UInt64
    }

    private var entries: [Key: Entry] = [:]
    /// Oldest first, with leftovers of entries that are gone or newer.
    private var order: [(key: Key, number: UInt64)] = []
    private var lastNumber: UInt64 = 0

    package init() {}

    package var count: Int { entries.count }

    /// Whether a failure says that asking again is of no use. Not those of the caller, of time, of a network that may be
    /// back, and never an HTTP status.
    package static func isLasting(_ code: ErrorCode) -> Bool {
        switch code {
        case .invalidURL, .badImageData, .tlsCertificate, .tlsPin, .protocolError, .unsupportedScheme, .redirectRefused,
            .tooManyRedirects, .contentEncoding:
            true
        default: false
        }
    }

    private static func bytes(_ request: TransferRequest, _ hops: [ParsedURL]) -> Int {
        let identity = request.identity
        let credential = identity.credential.map { $0.user.utf8.count + $0.password.utf8.count } ?? 0
        let own = credential + (identity.cookies?.count ?? 0) + (request.body?.count ?? 0)
        let fields = request.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        return hops.reduce(request.url.canonical.utf8.count + own + fields) { $0 + $1.canonical.utf8.count }
    }

    /// `hops`: which were asked, besides the request's own URL. `moment`: see `Downloads.asked`.
    package mutating func insert(
        _ request: TransferRequest, _ failure: Failure, hops: [ParsedURL] = [], askedAt moment: UInt64 = 0,
        _ now: Instant
    ) {
        guard Self.bytes(request, hops) <= Self.maximumRequestBytes else { return }
        let key = Key(request)
        lastNumber += 1
        entries[key] = Entry(failure: failure, instant: now, number: lastNumber, hops: hops, moment: moment)
        order.append((key, lastNumber))
        var gone = 0
        while gone < order.count {
            let isLive = entries[order[gone].key]?.number == order[gone].number
            if isLive, entries.count <= Self.capacity { break }
            if isLive { entries[order[gone].key] = nil }
            gone += 1
        }
        order.removeFirst(gone)
        if order.count > 2 * Self.capacity { order.removeAll { [entries] in entries[$0.key]?.number != $0.number } }
    }

    package mutating func remove(_ request: TransferRequest) {
        if !entries.isEmpty { entries[Key(request)] = nil }
    }

    /// What is at one of its URLs may be another by now.
    package mutating func forgetOutdated(
        _ request: TransferRequest, _ isOutdated: (_ url: ParsedURL, _ since: UInt64) -> Bool
    ) {
        guard !entries.isEmpty, let entry = entries[Key(request)] else { return }
        if ([request.url] + entry.hops).contains(where: { isOutdated($0, entry.moment) }) { remove(request) }
    }

    /// nil when it has not failed within the lifetime, in milliseconds.
    package mutating func failure(_ request: TransferRequest, lifetime: Int64, _ now: Instant) -> Failure? {
        guard !entries.isEmpty, let entry = entries[Key(request)] else { return nil }
        guard now < entry.instant.advanced(byMilliseconds: lifetime) else {
            entries[Key(request)] = nil
            return nil
        }
        let age = now.milliseconds(since: entry.instant)
        return Failure(.blacklisted, "it failed \(age) ms ago and is not asked for again yet: \(entry.failure.message)")
    }
}

extension Downloads {
    /// Why a request fails at once.
    mutating func blacklisted(_ request: TransferRequest, _ options: SubscriberOptions, _ now: Instant) -> Failure? {
        guard limits.failureLifetime > 0, request.hooks == nil, !options.retriesFailed else { return nil }
        return failedURLs.failure(request, lifetime: limits.failureLifetime, now)
    }

    /// A subscriber whose transfer never comes to wait.
    mutating func refuse(
        _ request: TransferRequest, _ options: Boxed<SubscriberOptions>, _ failure: Failure, _ now: Instant
    ) -> Admission {
        let id = insert(request)
        transfers[id].phase = .decoding
        let subscriber = join(id, options)
        end(subscriber, .failure(failure), now)
        return Admission(subscriber: subscriber, transfer: id, hasJoined: false)
    }

    /// What the end of a subscriber says about its URL. Nothing, where the caller asked for less than a picture, or where
    /// hooks decide what is asked, as whom, and what comes of it.
    mutating func remember(_ id: TransferID, _ options: Boxed<SubscriberOptions>, _ outcome: Outcome, _ now: Instant) {
        guard limits.failureLifetime > 0, transfers[id].request.hooks == nil else { return }
        switch outcome {
        case .success: failedURLs.remove(transfers[id].request)
        case .failure(let failure, _):
            guard FailedURLs.isLasting(failure.code) else { return }
            if failure.code == .badImageData {
                let isOwnDemand = options.wrappedValue.decode.map(DecodingRules.isOwnDemand) ?? true
                guard ResponseRules.isSuccess(transfers[id].status), !isOwnDemand else { return }
            }
            failedURLs.insert(
                transfers[id].request, failure, hops: transfers[id].laterHops, askedAt: transfers[id].askedAt ?? 0, now)
        }
    }
}
