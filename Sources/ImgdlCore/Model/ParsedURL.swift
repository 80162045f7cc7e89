/// A URL as the transport's parser understood it. An object, since each of its texts would be counted with every copy.
package final class ParsedURL: Hashable, Sendable {
    /// The canonical form, without user, password and fragment: what is requested and what requests are compared by.
    package let canonical: String
    package let origin: Origin
    /// Few have any.
    private let secrets: Secrets?

    /// What many URLs have in common (RFC 6454 section 4).
    package final class Origin: Hashable, Sendable {
        /// Lower case.
        package let scheme: String
        /// Without the brackets of an IPv6 literal.
        package let host: String
        package let port: UInt16
        package let isSecure: Bool
        /// How canonical URLs begin that have it, up to their path's slash; empty where that was not looked for.
        package let text: String

        package init(scheme: String, host: String, port: UInt16, text: String = "") {
            self.scheme = scheme
            self.host = host
            self.port = port
            isSecure = scheme == "https"
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
        let redacted: String
    }

    private final class Secrets: Sendable {
        let parts: SecretParts

        init(_ parts: SecretParts) { self.parts = parts }
    }

    /// `redacted`: nil where there is nothing to leave out.
    package init(
        canonical: String, origin: Origin, user: String? = nil, password: String? = nil, redacted: String? = nil
    ) {
        self.canonical = canonical
        self.origin = origin
        let hasSecrets = user != nil || password != nil || redacted != nil && redacted != canonical
        secrets =
            hasSecrets
            ? Secrets(SecretParts(user: user, password: password, redacted: redacted ?? canonical)) : nil
    }

    package convenience init(
        canonical: String, scheme: String, host: String, port: UInt16, user: String?, password: String?,
        redacted: String
    ) {
        self.init(
            canonical: canonical, origin: Origin(scheme: scheme, host: host, port: port), user: user,
            password: password, redacted: redacted)
    }

    package var scheme: String { origin.scheme }
    /// Of https.
    package var isSecure: Bool { origin.isSecure }
    package var host: String { origin.host }
    package var port: UInt16 { origin.port }
    /// From the URL's user information, percent-decoded; nil where it has none.
    package var user: String? { secrets?.parts.user }
    package var password: String? { secrets?.parts.password }
    /// For errors, events and logs: without user information, the query's values replaced by dots
    /// (`?token=…`): signed URLs stay secret (DESIGN section 2, promise 8).
    package var redacted: String { secrets?.parts.redacted ?? canonical }

    package static func == (left: ParsedURL, right: ParsedURL) -> Bool {
        left === right
            || left.canonical == right.canonical && left.origin == right.origin
                && left.secrets?.parts == right.secrets?.parts
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(canonical) }

    /// What responses are stored under.
    package var cacheKey: String { canonical }

    /// RFC 6454 section 5.
    package func isSameOrigin(as other: ParsedURL) -> Bool { origin == other.origin }

    package var hasCredential: Bool { secrets.map { $0.parts.user != nil || $0.parts.password != nil } ?? false }

    /// Of the URL's user information.
    package var credential: Credential? {
        hasCredential ? Credential(user: user ?? "", password: password ?? "") : nil
    }
}
