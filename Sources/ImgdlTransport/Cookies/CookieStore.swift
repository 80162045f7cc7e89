import ImgdlCore

/// The cookies of one jar, by the rules of RFC 6265bis section 5, with its bounds and its order of eviction. Times are
/// seconds since 1970.
///
/// They are found by the domain that somebody registered: what an answer costs depends on the cookies of that domain, and
/// of these there are few.
struct CookieStore {
    /// Of all.
    static let maximumCookies = 3_000
    /// Of one registered domain with all that is below it, or of one host where there is none.
    static let maximumCookiesPerDomain = 180
    /// Of one answer; the rest of its fields are passed over.
    static let maximumSetCookieFields = 50
    /// Of the whole Cookie field with its name: what servers take of one field.
    static let maximumFieldBytes = 8_190

    /// Whose cookies are looked at for one answer: of one registered domain, or of one host where there is none.
    private struct Key: Hashable {
        @ExactText var partition: String
        let domain: String
    }

    private struct Entry {
        var cookie: Cookie
        let key: Key
        /// Of two cookies the earlier has the smaller number.
        let created: UInt64
        var newer = CookieStore.none
        var older = CookieStore.none
    }

    private static let none = -1

    private let suffixes: PublicSuffixes
    private var entries: [Entry?] = []
    private var free: [Int] = []
    /// What was not used for longest comes first.
    private var domains: [Key: [Int]] = [:]
    /// By their last use.
    private var newest = none
    private var oldest = none
    private var lastNumber: UInt64 = 0
    /// No cookie expires before; perhaps none does then, either.
    private var earliestExpiry = Int64.max
    /// How many cookies were looked at, ever.
    private(set) var steps = 0

    init(suffixes: PublicSuffixes = .system) { self.suffixes = suffixes }

    var count: Int { entries.count - free.count }

    /// As they were made, the earliest first.
    func cookies(of partition: String = "") -> [Cookie] {
        let partition = ExactText(wrappedValue: partition)
        return entries.compactMap(\.self).filter { ExactText(wrappedValue: $0.key.partition) == partition }
            .sorted { $0.created < $1.created }.map(\.cookie)
    }

    // MARK: Answers

    /// The values of an answer's Set-Cookie fields, in their order.
    mutating func receive(_ fields: some Sequence<[UInt8]>, from request: CookieRequest, now: Int64) {
        let registrableDomain = registrableDomain(of: request)
        for field in fields.prefix(Self.maximumSetCookieFields) {
            let cookie = SetCookie(field)?.cookie(for: request, registrableDomain: registrableDomain, now: now)
            if let cookie { store(cookie, key(of: request, registrableDomain), isFromSecure: request.isSecure, now) }
        }
    }

    /// From a file that this jar or another program wrote. Those that no server could have set are passed over.
    mutating func restore(_ cookie: Cookie, to partition: String = "", now: Int64) {
        let request = CookieRequest(host: cookie.domain, path: cookie.path, isSecure: true, partition: partition)
        let registrableDomain = registrableDomain(of: request)
        var cookie = cookie
        cookie.expiry = cookie.expiry.map { min($0, now + Cookie.maximumAge) }
        if registrableDomain == nil { cookie.isHostOnly = true }
        if cookie.isWellFormed { store(cookie, key(of: request, registrableDomain), isFromSecure: true, now) }
    }

    private func key(of request: CookieRequest, _ registrableDomain: String?) -> Key {
        Key(partition: request.partition, domain: registrableDomain ?? request.host)
    }

    private func registrableDomain(of request: CookieRequest) -> String? {
        request.isAddress ? nil : suffixes.registrableDomain(of: request.host)
    }

    private mutating func store(_ cookie: Cookie, _ key: Key, isFromSecure: Bool, _ now: Int64) {
        removeExpired(key, now)
        var place: Int?
        for slot in domains[key] ?? [] {
            steps += 1
            // Most have another name, and are not copied to see that.
            guard entries[slot]!.cookie.name == cookie.name else { continue }
            let other = entries[slot]!.cookie
            if !isFromSecure, other.isSecure, Self.overlays(cookie, other) { return }
            if cookie.replaces(other) { place = slot }
        }
        guard !cookie.isExpired(now) else {
            if let place { remove(place) }
            return
        }
        if let expiry = cookie.expiry { earliestExpiry = min(earliestExpiry, expiry) }
        if let place {
            entries[place]?.cookie = cookie
            touch(place)
        } else {
            insert(cookie, key)
            evict(key, now)
        }
    }

    /// Of those with one name: what came in the clear must not take the place of what came safely, nor stand in front of
    /// it (section 5.7 step 15).
    private static func overlays(_ cookie: Cookie, _ other: Cookie) -> Bool {
        CookieRequest.isPath(cookie.path, within: other.path)
            && (cookie.domain == other.domain || CookieRequest.isBelow(cookie.domain, other.domain)
                || CookieRequest.isBelow(other.domain, cookie.domain))
    }

    // MARK: Requests

    /// The value of the Cookie field, longer paths first and then earlier cookies (section 5.8.3); nil for none. What does
    /// not fit is left out from the end. `given`: bytes of the field that are there already.
    mutating func field(for request: CookieRequest, besides given: Int = 0, now: Int64) -> [UInt8]? {
        let key = key(of: request, registrableDomain(of: request))
        removeExpired(key, now)
        let slots = domains[key] ?? []
        steps += slots.count
        let received = slots.filter { request.receives(entries[$0]!.cookie) }
            .map { slot in (slot: slot, entry: entries[slot]!) }
            .sorted { left, right in
                let (ours, theirs) = (left.entry.cookie.path.count, right.entry.cookie.path.count)
                return ours == theirs ? left.entry.created < right.entry.created : ours > theirs
            }
        var value: [UInt8] = []
        for (slot, entry) in received {
            let pair = (value.isEmpty && given == 0 ? [] : Self.separator) + entry.cookie.pair
            guard Self.fieldName.count + given + value.count + pair.count <= Self.maximumFieldBytes else { break }
            value += pair
            touch(slot)
        }
        return value.isEmpty ? nil : value
    }

    static let fieldName = Array("Cookie: ".utf8)
    private static let separator = Array("; ".utf8)

    // MARK: Eviction

    /// Section 5.7, at its end: what has expired; then, of a domain that has more than its share, what came in the clear,
    /// then all of it; then all there are. Among equals what has not been used for longest.
    private mutating func evict(_ key: Key, _ now: Int64) {
        if let slots = domains[key], slots.count > Self.maximumCookiesPerDomain {
            steps += slots.count
            remove(slots.first { !entries[$0]!.cookie.isSecure } ?? slots[0])
        }
        guard count > Self.maximumCookies else { return }
        if earliestExpiry <= now { removeExpired(now) }
        if count > Self.maximumCookies { remove(oldest) }
    }

    private mutating func removeExpired(_ key: Key, _ now: Int64) {
        guard earliestExpiry <= now else { return }
        for slot in domains[key] ?? [] {
            steps += 1
            if entries[slot]!.cookie.isExpired(now) { remove(slot) }
        }
    }

    /// Of all domains. Once a second at most: times are whole seconds, and a cookie that has expired already is not stored.
    private mutating func removeExpired(_ now: Int64) {
        earliestExpiry = .max
        for slot in entries.indices {
            steps += 1
            guard let expiry = entries[slot]?.cookie.expiry else { continue }
            if expiry <= now { remove(slot) } else { earliestExpiry = min(earliestExpiry, expiry) }
        }
    }

    // MARK: Entries

    private mutating func insert(_ cookie: Cookie, _ key: Key) {
        lastNumber += 1
        let entry = Entry(cookie: cookie, key: key, created: lastNumber)
        let slot: Int
        if let empty = free.popLast() {
            slot = empty
            entries[slot] = entry
        } else {
            slot = entries.count
            entries.append(entry)
        }
        linkAsNewest(slot)
    }

    private mutating func remove(_ slot: Int) {
        guard let entry = entries[slot] else { return }
        unlink(slot)
        entries[slot] = nil
        free.append(slot)
        if domains[entry.key]?.isEmpty == true { domains[entry.key] = nil }
    }

    private mutating func touch(_ slot: Int) {
        unlink(slot)
        linkAsNewest(slot)
    }

    private mutating func unlink(_ slot: Int) {
        guard let entry = entries[slot] else { return }
        if let place = domains[entry.key]?.firstIndex(of: slot) { domains[entry.key]?.remove(at: place) }
        if entry.newer == Self.none { newest = entry.older } else { entries[entry.newer]?.older = entry.older }
        if entry.older == Self.none { oldest = entry.newer } else { entries[entry.older]?.newer = entry.newer }
    }

    private mutating func linkAsNewest(_ slot: Int) {
        guard let key = entries[slot]?.key else { return }
        domains[key, default: []].append(slot)
        entries[slot]?.older = newest
        entries[slot]?.newer = Self.none
        if newest == Self.none { oldest = slot } else { entries[newest]?.newer = slot }
        newest = slot
    }
}
