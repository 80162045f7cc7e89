/// A cookie as the jar keeps it (RFC 6265bis section 5.7). Its name, value and path are bytes without control characters:
/// servers send what they like, and get it back unchanged.
struct Cookie: Equatable {
    /// Of name and value one at least is not empty.
    var name: [UInt8]
    var value: [UInt8]
    /// In lower case; of an address the address.
    var domain: String
    /// For that very host, and not for those below it.
    var isHostOnly: Bool
    /// Begins with a slash.
    var path: [UInt8]
    var isSecure = false
    /// Scripts must not see it. There are none here: it is kept for other programs that read the file.
    var isHTTPOnly = false
    /// Seconds since 1970, from which on it is gone; nil: it has no date, and stays as long as the jar.
    var expiry: Int64?

    /// Of name and value together, in bytes.
    static let maximumPairBytes = 4096
    /// Of each attribute, in bytes, and of a path that is taken from the URL.
    static let maximumAttributeBytes = 1024
    /// Seconds from now: 400 days.
    static let maximumAge: Int64 = 400 * 86_400

    func isExpired(_ now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }

    /// Two that are the same except for what they say: the later one takes the place of the earlier one.
    func replaces(_ other: Cookie) -> Bool {
        name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
    }

    /// Servers that read such a name rely on what it promises (section 4.1.3).
    var isNamedHost: Bool { Self.begins(name, with: "__host-") }

    /// Whether what its name promises is true. A nameless cookie would look like one with a name to whoever gets it.
    private var keepsPromises: Bool {
        if isNamedHost { return isSecure && isHostOnly && path == [0x2F] }
        if name.isEmpty { return !Self.begins(value, with: "__host-") && !Self.begins(value, with: "__secure-") }
        return isSecure || !Self.begins(name, with: "__secure-")
    }

    /// The rules for every cookie that is kept, wherever it comes from. A tab could not be written into a file of cookies.
    var isWellFormed: Bool {
        !(name.isEmpty && value.isEmpty) && name.count + value.count <= Self.maximumPairBytes
            && path.first == 0x2F && path.count <= Self.maximumAttributeBytes
            && ![name, value, path].contains { $0.contains { $0 < 0x20 || $0 == 0x7F } } && keepsPromises
    }

    /// As it is sent.
    var pair: [UInt8] { name.isEmpty ? value : name + [UInt8(ascii: "=")] + value }

    /// `prefix`: in lower case.
    private static func begins(_ text: [UInt8], with prefix: StaticString) -> Bool {
        text.count >= prefix.utf8CodeUnitCount
            && (0..<prefix.utf8CodeUnitCount).allSatisfy { lowercased(text[$0]) == prefix.utf8Start[$0] }
    }

    /// ASCII letters alone.
    static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
