import ImgdlCore

/// The prefixes of a network's NAT64, as `nat64_prefixes` has them: "2001:db8:64::/96,2001:db8:65::/64".
package enum TranslationPrefixes {
    static let maximumCount = 8
    /// RFC 6052 section 2.2.
    private static let lengths = ["32": 32, "40": 40, "48": 48, "56": 56, "64": 64, "96": 96]

    /// Throws `invalidArgument` for what is no list of them. The bad text itself is not repeated.
    package static func parse(_ text: String) throws(Failure) -> [LocalNetworks.Prefix] {
        guard !text.isEmpty else {
            throw Failure(.invalidArgument, "nat64_prefixes is empty: leave it out where there are none")
        }
        let entries = text.split(separator: ",", omittingEmptySubsequences: false)
        guard entries.count <= maximumCount else {
            throw Failure(.invalidArgument, "nat64_prefixes has more than \(maximumCount) prefixes")
        }
        var prefixes: [LocalNetworks.Prefix] = []
        for (index, entry) in entries.enumerated() {
            let parts = entry.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, let length = lengths[String(parts[1])], !parts[0].contains("%"),
                let bytes = AddressGuard.bytes(String(parts[0])), bytes.count == 16,
                let prefix = LocalNetworks.Prefix(bytes, length: length)
            else {
                throw Failure(
                    .invalidArgument,
                    "nat64_prefixes: number \(index + 1) is no IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as "
                        + "2001:db8:64::/96")
            }
            prefixes.append(prefix)
        }
        return prefixes
    }
}
