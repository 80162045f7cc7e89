/// Netscape's format for a file of cookies, as curl and others read and write it: a line for each, of seven parts between
/// tabs: domain, whether hosts below it are meant, path, whether TLS is needed, seconds since 1970 or 0 for no date, name,
/// value.
enum CookieFile {
    /// As such files begin, the second with those of older programs.
    static let beginnings = ["# Netscape HTTP Cookie File", "# HTTP Cookie File"]
    /// What a full jar of the largest cookies comes to; what a file has beyond is not read.
    static let maximumBytes = 16 << 20
    /// Of any kind; as many again as a full jar has, three times, for what is passed over.
    static let maximumLines = 4 * CookieStore.maximumCookies
    /// A line of this length could be of a cookie.
    private static let maximumLineBytes =
        Cookie.maximumPairBytes + Cookie.maximumAttributeBytes + maximumDomainBytes + 64
    /// A domain with its dots; URLs have at most 253 (RFC 1035 section 2.3.4).
    private static let maximumDomainBytes = 255
    /// In front of the domain.
    private static let httpOnly = Array("#HttpOnly_".utf8)
    private static let tab = UInt8(ascii: "\t")

    static func isOne(_ bytes: some Collection<UInt8>) -> Bool { beginnings.contains { bytes.starts(with: $0.utf8) } }

    /// Each line that is of no cookie is passed over.
    static func cookies(_ bytes: some Collection<UInt8>) -> [Cookie] {
        bytes.prefix(maximumBytes).split(separator: UInt8(ascii: "\n"), maxSplits: maximumLines)
            .prefix(maximumLines).compactMap { cookie($0) }
    }

    private static func cookie(_ line: some Collection<UInt8>) -> Cookie? {
        guard line.count <= maximumLineBytes else { return nil }
        var rest = Array(line)[...]
        if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
        let isHTTPOnly = rest.starts(with: httpOnly)
        if isHTTPOnly { rest = rest.dropFirst(httpOnly.count) }
        var parts = rest.split(separator: tab, omittingEmptySubsequences: false)
        // Some leave out the tab in front of an empty value.
        if parts.count == 6 { parts.append([]) }
        guard parts.count == 7, let isHostOnly = flag(parts[1]).map({ !$0 }), let isSecure = flag(parts[3]),
            let domain = domain(parts[0]), let expiry = number(parts[4])
        else { return nil }
        return Cookie(
            name: Array(parts[5]), value: Array(parts[6]), domain: domain, isHostOnly: isHostOnly,
            path: Array(parts[2]), isSecure: isSecure, isHTTPOnly: isHTTPOnly, expiry: expiry == 0 ? nil : expiry)
    }

    private static func flag(_ text: ArraySlice<UInt8>) -> Bool? {
        switch String(decoding: text.map(Cookie.lowercased), as: UTF8.self) {
        case "true": true
        case "false": false
        default: nil
        }
    }

    private static func domain(_ text: ArraySlice<UInt8>) -> String? {
        let name = text.dropFirst(text.first == UInt8(ascii: ".") ? 1 : 0).map(Cookie.lowercased)
        guard (1...maximumDomainBytes).contains(name.count), ![UInt8(ascii: "#"), UInt8(ascii: ".")].contains(name[0]),
            name.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    /// More than a number holds is as late as a date can be.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.count > 18 ? .max : digits.reduce(0) { 10 * $0 + Int64($1 - 0x30) }
    }

    static func bytes(_ cookies: [Cookie]) -> [UInt8] {
        var bytes = Array("\(beginnings[0])\n".utf8)
        for cookie in cookies {
            if cookie.isHTTPOnly { bytes += httpOnly }
            let domain = cookie.isHostOnly ? cookie.domain : ".\(cookie.domain)"
            bytes += "\(domain)\t\(cookie.isHostOnly ? "FALSE" : "TRUE")\t".utf8
            bytes += cookie.path
            bytes += "\t\(cookie.isSecure ? "TRUE" : "FALSE")\t\(cookie.expiry ?? 0)\t".utf8
            bytes += cookie.name + [tab] + cookie.value + [UInt8(ascii: "\n")]
        }
        return bytes
    }
}
