import ImgdlCore

/// The facts that cookies depend on, of the request that they are sent with, or that was answered with them.
struct CookieRequest {
    /// In lower case, an IPv6 address without its brackets.
    let host: String
    /// Without query; begins with a slash.
    let path: [UInt8]
    let isSecure: Bool
    /// An address has no domain above it.
    let isAddress: Bool
    /// Each has cookies of its own.
    let partition: String

    init(host: String, path: [UInt8], isSecure: Bool, partition: String = "") {
        self.partition = partition
        self.host = host
        self.path = path.first == 0x2F ? path : [0x2F]
        self.isSecure = isSecure
        isAddress = Self.isAddress(host)
    }

    /// Of http or https.
    init(_ url: ParsedURL, partition: String = "") {
        let path = url.withUTF8 { text in
            // scheme://authority/path?query
            let authority = text.firstIndex(of: UInt8(ascii: ":")).map { $0 + 3 } ?? 0
            let rest = text[min(authority, text.endIndex)...]
            let end = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
            return Array(rest[..<end].drop { $0 != UInt8(ascii: "/") })
        }
        self.init(host: url.host, path: path, isSecure: url.isSecure, partition: partition)
    }

    func receives(_ cookie: Cookie) -> Bool {
        (cookie.isSecure ? isSecure : true)
            && (cookie.isHostOnly ? host == cookie.domain : isWithin(cookie.domain))
            && Self.isPath(path, within: cookie.path)
    }

    /// Section 5.1.3.
    func isWithin(_ domain: String) -> Bool { host == domain || !isAddress && Self.isBelow(host, domain) }

    /// Of names alone.
    static func isBelow(_ host: String, _ domain: String) -> Bool {
        let (host, domain) = (host.utf8, domain.utf8)
        guard !domain.isEmpty, host.count > domain.count else { return false }
        let rest = host.suffix(domain.count + 1)
        return rest.first == UInt8(ascii: ".") && rest.dropFirst().elementsEqual(domain)
    }

    /// Section 5.1.4.
    static func isPath(_ path: [UInt8], within other: [UInt8]) -> Bool {
        path.starts(with: other) && (path.count == other.count || other.last == 0x2F || path[other.count] == 0x2F)
    }

    /// The path of a cookie that names none (section 5.1.4).
    var defaultPath: [UInt8] {
        let end = path.lastIndex(of: 0x2F) ?? 0
        return end == 0 ? [0x2F] : Array(path[..<end])
    }

    /// Also what ends in a number otherwise: no domain of the public suffix list does.
    private static func isAddress(_ host: String) -> Bool {
        if host.utf8.contains(UInt8(ascii: ":")) { return true }
        guard let last = host.utf8.split(separator: UInt8(ascii: ".")).last else { return false }
        return last.allSatisfy { (0x30...0x39).contains($0) }
    }
}
