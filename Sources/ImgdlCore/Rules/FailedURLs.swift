/// URLs that failed for good a moment ago (features E4, E10, I29): for a while nobody asks for them again. Bounded; the
/// oldest goes first.
package struct FailedURLs {
    package static let capacity = 1024
    /// Requests of more bytes, with what is said about them, are not remembered.
    static let maximumRequestBytes = 16 << 10

    /// Everything of a request but its URL that its failure may be about. Of its files it has digests: contents would stay in
    /// memory with it, private keys among them.
    private struct Key: Hashable {
        /// Who asks otherwise may get other bytes.
        let meaning: RequestMeaning
        let followsRedirects: Bool
        let allowsDowngrade: Bool

        init(_ request: TransferRequest) {
            meaning = request.meaning
            followsRedirects = request.followsRedirects
            allowsDowngrade = request.allowsDowngrade
        }
    }

    private struct Entry {
        let url: String
        let key: Key
        let failure: Failure
        let instant: Instant
        /// Which were asked, and since when (`OutdatedURLs`).
        let hops: [ParsedURL]
        /// Where the jar has a say it is asked anew for each of them: nobody else asks them as this request did.
        let cookiesBesidesJar: [String]?
        let moment: UInt64

        func isAbout(_ request: TransferRequest) -> Bool {
            hops.isEmpty || cookiesBesidesJar == request.manner.cookiesBesidesJar
        }
    }

    /// By URL first: what else a request says is not put together for those that have not failed.
    private var numbers: [String: [Key: UInt64]] = [:]
    /// By their numbers: who comes later has a higher one.
    private var entries: [UInt64: Entry] = [:]
    private var lastNumber: UInt64 = 0
    /// No entry has a lower number.
    private var oldestNumber: UInt64 = 1

    package init() {}

    package var count: Int { entries.count }

    /// Whether a failure says that asking again is of no use. Not those of the caller, of time, of a network that may be
    /// back, and never an HTTP status.
    package static func isLasting(_ code: ErrorCode) -> Bool {
        switch code {
        case .badImageData, .tlsCertificate, .tlsPin, .protocolError, .redirectRefused, .tooManyRedirects,
            .contentEncoding, .flood:
            true
        default: false
        }
    }

    private static func bytes(_ request: TransferRequest, _ failure: Failure, _ hops: [ParsedURL]) -> Int {
        let own = request.url.canonical.utf8.count + request.meaning.byteCount + failure.message.utf8.count
        return hops.reduce(own) { $0 + $1.canonical.utf8.count }
    }

    /// Failures that are past the lifetime, in milliseconds, go, too. `hops`: which were asked, besides the request's own
    /// URL. `moment`: see `Downloads.asked`.
    package mutating func insert(
        _ request: TransferRequest, _ failure: Failure, hops: [ParsedURL] = [], askedAt moment: UInt64 = 0,
        lifetime: Int64, _ now: Instant
    ) {
        // Who names files that cannot be used learns that anew each time.
        if request.manner.refusal == nil, Self.bytes(request, failure, hops) <= Self.maximumRequestBytes {
            let (url, key) = (request.url.canonical, Key(request))
            lastNumber += 1
            if let former = numbers[url, default: [:]].updateValue(lastNumber, forKey: key) { entries[former] = nil }
            entries[lastNumber] = Entry(
                url: url, key: key, failure: failure, instant: now, hops: hops,
                cookiesBesidesJar: request.manner.cookiesBesidesJar, moment: moment)
        }
        removeExpired(lifetime: lifetime, now)
    }

    /// Also the oldest of more than there may be.
    package mutating func removeExpired(lifetime: Int64, _ now: Instant) {
        while oldestNumber <= lastNumber {
            if let entry = entries[oldestNumber] {
                if count <= Self.capacity, now < entry.instant.advanced(byMilliseconds: lifetime) { return }
                remove(entry.url, entry.key)
            }
            oldestNumber += 1
        }
    }

    package mutating func remove(_ request: TransferRequest) {
        if !entries.isEmpty, numbers[request.url.canonical] != nil { remove(request.url.canonical, Key(request)) }
    }

    private mutating func remove(_ url: String, _ key: Key) {
        guard let number = numbers[url]?.removeValue(forKey: key) else { return }
        entries[number] = nil
        if numbers[url]?.isEmpty ?? false { numbers[url] = nil }
    }

    private func entry(_ request: TransferRequest) -> Entry? {
        guard !entries.isEmpty, let ofURL = numbers[request.url.canonical],
            let entry = ofURL[Key(request)].flatMap({ entries[$0] }), entry.isAbout(request)
        else { return nil }
        return entry
    }

    /// What is at one of its URLs may be another by now.
    package mutating func forgetOutdated(
        _ request: TransferRequest, _ isOutdated: (_ url: ParsedURL, _ since: UInt64) -> Bool
    ) {
        guard let entry = entry(request) else { return }
        if ([request.url] + entry.hops).contains(where: { isOutdated($0, entry.moment) }) { remove(request) }
    }

    /// nil when it has not failed within the lifetime, in milliseconds.
    package mutating func failure(_ request: TransferRequest, lifetime: Int64, _ now: Instant) -> Failure? {
        removeExpired(lifetime: lifetime, now)
        guard let entry = entry(request) else { return nil }
        let age = now.milliseconds(since: entry.instant)
        var cause = entry.failure.message
        if let target = entry.hops.last, target != request.url {
            let shown = PrintableText.shortened(target.redacted, to: Failure.maximumShownBytesOfTwo)
            cause = "redirected to \(shown): \(cause)"
        }
        return Failure(.blacklisted, "it failed \(age) ms ago and is not asked for again yet: \(cause)")
    }
}

extension Downloads {
    /// Why a request fails at once.
    mutating func blacklisted(_ request: TransferRequest, _ options: SubscriberOptions, _ now: Instant) -> Failure? {
        guard limits.failureLifetime > 0, isRemembered(request), !options.retriesFailed else { return nil }
        return failedURLs.failure(request, lifetime: limits.failureLifetime, now)
    }

    /// Its first hop goes to its server.
    package mutating func asked(_ id: TransferID, withOtherCookies hasOtherCookies: Bool) {
        guard transfers.contains(id), transfers[id].hasOtherCookies != hasOtherCookies else { return }
        transfers[id].hasOtherCookies = hasOtherCookies
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

    /// Nobody can be told of them any more.
    package mutating func forgetExpiredFailures(_ now: Instant) {
        failedURLs.removeExpired(lifetime: limits.failureLifetime, now)
    }

    /// Whether its failures are: not where hooks decide what is asked, as whom, and what comes of it, nor where no server is asked.
    private func isRemembered(_ request: TransferRequest) -> Bool {
        request.hooks == nil && !(request.cacheMode == .only && request.url.isNetwork)
    }

    /// Remembers what the end of a subscriber says about its URL: nothing, where the caller asked for less than a picture.
    mutating func remember(_ id: TransferID, _ options: Boxed<SubscriberOptions>, _ outcome: Outcome, _ now: Instant) {
        guard limits.failureLifetime > 0, isRemembered(transfers[id].request), !transfers[id].hasOtherCookies else {
            return
        }
        switch outcome {
        case .success: failedURLs.remove(transfers[id].request)
        case .failure(let failure, _):
            guard FailedURLs.isLasting(failure.code) else { return }
            if failure.code == .badImageData {
                let isOwnDemand = options.wrappedValue.decode.map(DecodingRules.isOwnDemand) ?? true
                guard ResponseRules.isSuccess(transfers[id].status), !isOwnDemand else { return }
            }
            failedURLs.insert(
                transfers[id].request, failure, hops: transfers[id].laterHops, askedAt: transfers[id].askedAt ?? 0,
                lifetime: limits.failureLifetime, now)
        }
    }
}
