/// A URL as the transport's parser understood it. An object, since each of its texts would be counted with every copy.
package final class ParsedURL: Hashable, Sendable {
    /// The canonical form, without user, password and fragment: what is requested and what requests are compared by.
    package let canonical: String
    /// Lower case.
    package let scheme: String
    /// Without the brackets of an IPv6 literal.
    package let host: String
    package let port: UInt16
    /// Few have any.
    private let userInformation: UserInformation?
    /// For errors, events and logs: without user information, the query's values replaced by dots
    /// (`?token=…`): signed URLs stay secret (DESIGN section 2, promise 8).
    package let redacted: String

    package init(
        canonical: String, scheme: String, host: String, port: UInt16, user: String?, password: String?, redacted: String
    ) {
        self.canonical = canonical
        self.scheme = scheme
        self.host = host
        self.port = port
        userInformation = user == nil && password == nil ? nil : UserInformation(user, password)
        self.redacted = redacted
    }

    /// From the URL's user information, percent-decoded; nil where it has none.
    package var user: String? { userInformation?.user }
    package var password: String? { userInformation?.password }

    private final class UserInformation: Hashable, Sendable {
        let user: String?
        let password: String?

        init(_ user: String?, _ password: String?) {
            self.user = user
            self.password = password
        }

        func hash(into hasher: inout Hasher) { hasher.combine(user) }

        static func == (left: UserInformation, right: UserInformation) -> Bool {
            left.user == right.user && left.password == right.password
        }
    }

    package static func == (left: ParsedURL, right: ParsedURL) -> Bool {
        if left === right { return true }
        return left.canonical == right.canonical && left.scheme == right.scheme && left.host == right.host
            && left.port == right.port && left.user == right.user && left.password == right.password
            && left.redacted == right.redacted
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(canonical) }

    /// What responses are stored under.
    package var cacheKey: String { canonical }

    /// RFC 6454 section 5.
    package func isSameOrigin(as other: ParsedURL) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }

    /// Of the URL's user information.
    package var credential: Credential? {
        user == nil && password == nil ? nil : Credential(user: user ?? "", password: password ?? "")
    }
}
