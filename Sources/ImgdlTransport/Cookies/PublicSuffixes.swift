import CPublicSuffix

/// Under which names anybody may register a domain (publicsuffix.org): a cookie for all of "co.uk" would let any site
/// there speak to every other.
struct PublicSuffixes: @unchecked Sendable {
    /// The list of the system where it is newer than the one that libpsl was built with. Read at the first use, and kept
    /// as long as the process; looking things up in it changes nothing.
    static let system = PublicSuffixes(list: psl_latest(nil) ?? psl_builtin())

    /// nil: none was found, and no host shares cookies with another.
    private let list: OpaquePointer?

    /// "example.co.uk" of "pictures.example.co.uk"; nil for a name that is a public suffix itself, and for one that lies
    /// in none. Of a name that ends in a dot likewise, without the dot.
    func registrableDomain(of name: String) -> String? {
        guard let list, !name.isEmpty else { return nil }
        let name = name.hasSuffix(".") ? String(name.dropLast()) : name
        return name.withCString { name in psl_registrable_domain(list, name).map { String(cString: $0) } }
    }
}
