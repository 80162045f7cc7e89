import ImgdlCore

/// The value of one Set-Cookie field as it was sent (RFC 6265bis section 5.6).
///
/// SameSite is passed over: it is about which site a page belongs to that asks for something, and nobody here asks on
/// behalf of a page.
struct SetCookie: Equatable {
    private(set) var name: [UInt8]
    private(set) var value: [UInt8]
    /// Seconds since 1970.
    private(set) var expires: Int64?
    /// In seconds, and no more than a cookie may last; of a negative one 0.
    private(set) var maximumAge: Int64?
    /// Without the dot in front, in lower case. The last one counts, also where it is empty.
    private(set) var domain: [UInt8] = []
    /// The last one, whatever it is.
    private(set) var path: [UInt8] = []
    private(set) var isSecure = false
    private(set) var isHTTPOnly = false

    /// nil: the whole field means nothing.
    init?(_ field: some Collection<UInt8>) {
        let bytes = Array(field)
        guard !bytes.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else { return nil }
        let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
        let (name, value) = Self.pair(bytes[..<end])
        // Without "=" it is all value.
        (self.name, self.value) = value.map { (Array(name), Array($0)) } ?? ([], Array(name))
        guard self.name.count + self.value.count <= Cookie.maximumPairBytes else { return nil }
        guard !self.name.isEmpty || !self.value.isEmpty else { return nil }
        for attribute in bytes[end...].split(separator: UInt8(ascii: ";")) {
            let (name, value) = Self.pair(attribute)
            let text = value ?? []
            if text.count <= Cookie.maximumAttributeBytes { take(name, text) }
        }
    }

    private mutating func take(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        switch String(decoding: name.map(Cookie.lowercased), as: UTF8.self) {
        case "expires": expires = CookieDate.seconds(value) ?? expires
        case "max-age": maximumAge = Self.age(value) ?? maximumAge
        case "domain": domain = value.dropFirst(value.first == UInt8(ascii: ".") ? 1 : 0).map(Cookie.lowercased)
        case "path": path = Array(value)
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        default: break
        }
    }

    /// Digits, perhaps with a minus sign; nil for anything else. So many that no number holds them are as good as the most
    /// that there may be.
    private static func age(_ text: ArraySlice<UInt8>) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        if isNegative { return 0 }
        return digits.reduce(0) { min(10 * $0 + Int64($1 - 0x30), Cookie.maximumAge) }
    }

    /// What stands ahead of the first "=" and what behind it, without blanks around.
    private static func pair(_ bytes: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>?) {
        guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")) else { return (trimmed(bytes), nil) }
        return (trimmed(bytes[..<sign]), trimmed(bytes[(sign + 1)...]))
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let start = bytes.firstIndex { !isBlank($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start
        return bytes[start..<end]
    }

    // MARK: What becomes of it

    /// The cookie that the answer to this request may set (section 5.7); nil where it may not. `now`: seconds since 1970.
    /// `registrableDomain`: of the request's host, by the public suffix list.
    func cookie(for request: CookieRequest, registrableDomain: String?, now: Int64) -> Cookie? {
        guard !isSecure || request.isSecure, let place = place(of: request, registrableDomain) else { return nil }
        let cookie = Cookie(
            name: name, value: value, domain: place.domain, isHostOnly: place.isHostOnly,
            path: path.first == UInt8(ascii: "/") ? path : request.defaultPath, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, expiry: expiry(now))
        // Such a name promises what was said, and not what came to be without a word.
        guard !cookie.isNamedHost || domain.isEmpty && path == [UInt8(ascii: "/")] else { return nil }
        return cookie.isWellFormed ? cookie : nil
    }

    /// Max-Age comes first: whoever sends both sends Expires for those who do not know it.
    private func expiry(_ now: Int64) -> Int64? {
        if let maximumAge { return now + maximumAge }
        return expires.map { min($0, now + Cookie.maximumAge) }
    }

    /// A domain holds the host, and is not a public suffix nor above one. One that is the host itself may be either: then
    /// it is for that host alone, as all cookies of addresses are.
    private func place(
        of request: CookieRequest, _ registrableDomain: String?
    ) -> (domain: String, isHostOnly: Bool)? {
        guard !domain.isEmpty else { return (request.host, true) }
        guard domain.allSatisfy({ $0 < 0x80 }) else { return nil }
        let domain = String(decoding: domain, as: UTF8.self)
        if request.isAddress { return domain == request.host ? (domain, true) : nil }
        guard request.isWithin(domain) else { return nil }
        guard let registrableDomain else { return domain == request.host ? (domain, true) : nil }
        let name = domain.hasSuffix(".") ? String(domain.dropLast()) : domain
        guard name == registrableDomain || CookieRequest.isBelow(name, registrableDomain) else { return nil }
        return (domain, false)
    }
}
