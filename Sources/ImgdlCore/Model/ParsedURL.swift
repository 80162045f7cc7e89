import Glibc

/// A URL as the transport's parser understood it: one reference to one piece of memory with its text in it, since there
/// may be a million that wait.
package struct ParsedURL: Hashable, @unchecked Sendable {
    /// Its elements are the text; nothing of it is ever changed.
    private final class Storage: ManagedBuffer<Parts, UInt8> {}

    private struct Parts {
        let origin: Origin
        /// Few have any.
        let secrets: Secrets?
        let count: UInt32
        let hash: UInt32
    }

    private let storage: Storage

    /// What many URLs have in common (RFC 6454 section 4).
    package final class Origin: Hashable, Sendable {
        /// Lower case.
        package let scheme: String
        /// Without the brackets of an IPv6 literal.
        package let host: String
        package let port: UInt16
        package let isSecure: Bool
        /// http or https.
        package let isNetwork: Bool
        /// How canonical URLs begin that have it, up to their path's slash; empty where that was not looked for.
        package let text: String

        package init(scheme: String, host: String, port: UInt16, text: String = "") {
            self.scheme = scheme
            self.host = host
            self.port = port
            isSecure = scheme == "https"
            isNetwork = isSecure || scheme == "http"
            self.text = text
        }

        package func hash(into hasher: inout Hasher) { hasher.combine(host) }

        package static func == (left: Origin, right: Origin) -> Bool {
            left === right || left.scheme == right.scheme && left.host == right.host && left.port == right.port
        }
    }

    /// What errors, events and logs leave out.
    private struct SecretParts: Hashable {
        let user: String?
        let password: String?
        /// nil: all but the values of the query.
        let redacted: String?
    }

    private final class Secrets: Sendable {
        let parts: SecretParts

        init(_ parts: SecretParts) { self.parts = parts }
    }

    /// Bytes of text, at most.
    package static let maximumLength = Int(UInt32.max)

    /// `canonical`: UTF-8. `redacted`: nil where the values of its query are all that is to be left out.
    package init(
        canonical text: UnsafeBufferPointer<UInt8>, origin: Origin, user: String? = nil, password: String? = nil,
        redacted: String? = nil
    ) {
        let parts = Parts(
            origin: origin, secrets: Self.secrets(user, password, redacted), count: UInt32(text.count),
            hash: UInt32(truncatingIfNeeded: TextHash.hash(UnsafeRawBufferPointer(text))))
        let buffer = Storage.create(minimumCapacity: text.count) { _ in parts }
        storage = unsafeDowncast(buffer, to: Storage.self)
        storage.withUnsafeMutablePointerToElements { target in
            if let start = text.baseAddress { target.initialize(from: start, count: text.count) }
        }
    }

    package init(
        canonical: String, scheme: String, host: String, port: UInt16, user: String?, password: String?,
        redacted: String? = nil
    ) {
        var text = canonical
        let origin = Origin(scheme: scheme, host: host, port: port)
        self = text.withUTF8 {
            ParsedURL(canonical: $0, origin: origin, user: user, password: password, redacted: redacted)
        }
    }

    /// nil where there are none.
    private static func secrets(
        _ user: String?, _ password: String?, _ redacted: String?
    ) -> Secrets? {
        guard user != nil || password != nil || redacted != nil else { return nil }
        return Secrets(SecretParts(user: user, password: password, redacted: redacted))
    }

    private func part<Part>(_ path: (Parts) -> Part) -> Part {
        storage.withUnsafeMutablePointerToHeader { path($0.pointee) }
    }

    /// The canonical form, without user, password and fragment: what is requested and what requests are compared by.
    /// Made for who asks.
    package var canonical: String { withUTF8 { String(decoding: $0, as: UTF8.self) } }

    /// The bytes of `canonical`.
    @inline(__always) package func withUTF8<Result, Problem: Error>(
        _ body: (UnsafeBufferPointer<UInt8>) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        try storage.withUnsafeMutablePointers { (parts, text) throws(Problem) in
            try body(UnsafeBufferPointer(start: text, count: Int(parts.pointee.count)))
        }
    }

    package var origin: Origin { part { $0.origin } }
    /// This very object.
    package func hasOrigin(_ other: Origin?) -> Bool { part { $0.origin === other } }
    private var secrets: Secrets? { part { $0.secrets } }
    /// Of the canonical form; each process has its own.
    package var hash: Int { part { Int($0.hash) } }

    package var scheme: String { origin.scheme }
    /// Of https.
    package var isSecure: Bool { part { $0.origin.isSecure } }
    /// Of http or https.
    package var isNetwork: Bool { part { $0.origin.isNetwork } }
    package var host: String { origin.host }
    package var port: UInt16 { part { $0.origin.port } }
    /// From the URL's user information, percent-decoded; nil where it has none.
    package var user: String? { secrets?.parts.user }
    package var password: String? { secrets?.parts.password }
    /// For errors, events and logs: without user information, also of a URL in its path, the query's values replaced by
    /// dots (`?token=…`): signed URLs stay secret (DESIGN section 2, promise 8). Made for who asks.
    package var redacted: String {
        if let shown = secrets?.parts.redacted { return shown }
        guard var shown = withUTF8(UserRedaction.redacted) else { return withUTF8(QueryRedaction.redacted) }
        return shown.withUTF8(QueryRedaction.redacted)
    }
    /// For messages: `redacted`, or with the values of the query, to who asked for them.
    func shown(withQuery: Bool) -> String {
        withQuery ? withUTF8(UserRedaction.redacted) ?? canonical : redacted
    }

    package static func == (left: ParsedURL, right: ParsedURL) -> Bool {
        left.storage === right.storage
            || left.asksForTheSame(as: right) && left.secrets?.parts == right.secrets?.parts
    }

    /// Whatever user and password stand in it: they are a request's, like those that it has otherwise.
    func asksForTheSame(as other: ParsedURL) -> Bool {
        if storage === other.storage { return true }
        return hash == other.hash && hasSameText(as: other) && origin == other.origin
    }

    private func hasSameText(as other: ParsedURL) -> Bool {
        withUTF8 { own in
            other.withUTF8 { other in
                own.count == other.count
                    && (own.isEmpty || memcmp(own.baseAddress!, other.baseAddress!, own.count) == 0)
            }
        }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// What responses are stored under.
    package var cacheKey: String { canonical }

    /// The canonical form up to its path.
    var originText: String {
        withUTF8 { text in
            let start = scheme.utf8.count + 3
            let end = text.dropFirst(start).firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
            return String(decoding: text[..<end], as: UTF8.self)
        }
    }

    /// RFC 6454 section 5.
    package func isSameOrigin(as other: ParsedURL) -> Bool {
        part { own in other.part { own.origin == $0.origin } }
    }

    package var hasCredential: Bool { secrets.map { $0.parts.user != nil || $0.parts.password != nil } ?? false }

    /// Of the URL's user information.
    package var credential: Credential? {
        hasCredential ? Credential(user: user ?? "", password: password ?? "") : nil
    }
}
