import ImgdlCore

/// The text around a URL's authority, where parsers differ about which server it names: a browser takes a backslash for a
/// slash and any number of both for two, curl takes one and three slashes for two, others see no authority then. Whoever
/// judged the URL with another parser would have judged another server (RFC 3986 sections 3 and 3.2).
enum AuthorityText {
    /// Of an http or https URL, or of a reference to one, which has no scheme. Throws `invalidURL`.
    static func check(_ text: String, scheme: String?) throws(Failure) {
        let bytes = Array(text.utf8.dropFirst(scheme.map { $0.utf8.count + 1 } ?? 0))
        let slashes = bytes.prefix { isSlash($0) || isBackslash($0) }
        if scheme == nil, slashes.count < 2 { return }
        guard !slashes.contains(where: isBackslash) else { throw backslash }
        guard slashes.count == 2 else {
            let front = scheme.map { "behind “\($0):”" } ?? "at the beginning of the reference"
            let number =
                slashes.isEmpty ? "is no slash" : slashes.count == 1 ? "is one slash" : "are \(slashes.count) slashes"
            throw Failure(.invalidURL, "\(front) \(number), where two belong")
        }
        try checkAuthority(bytes[2...].prefix { !isSlash($0) && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
    }

    /// Of any scheme's. Throws `invalidURL`.
    static func checkAuthority(_ authority: ArraySlice<UInt8>) throws(Failure) {
        if authority.contains(where: isBackslash) { throw backslash }
    }

    private static var backslash: Failure {
        Failure(.invalidURL, "the authority of the URL has a backslash in it, which some programs take for a slash")
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") }

    private static func isBackslash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\\") }
}
