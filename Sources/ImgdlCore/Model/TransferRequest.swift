import Synchronization

/// What of a request is about the bytes. Requests that are equal in it share one transfer (features B4, K12, I21): those
/// that mean the same (`RequestMeaning`), and want the same to become of the answer.
package struct TransferRequest: Hashable, Sendable {
    package let url: ParsedURL
    let profile: Profile

    /// All but the URL: requests that ask in the same way have one in common.
    package final class Profile: Sendable {
        private static let made = Atomic<UInt64>(0)
        /// No other profile ever has it, also when this one is gone.
        let number = made.wrappingAdd(1, ordering: .relaxed).newValue
        fileprivate let manner: RequestManner
        fileprivate let followsRedirects: Bool
        fileprivate let allowsDowngrade: Bool
        fileprivate let cacheMode: CacheMode
        fileprivate let staleLimit: StaleLimit
        fileprivate let hooks: (any Hooks)?

        package init(
            method: String = "GET", fields: [HeaderField] = [], body: [UInt8]? = nil,
            identity: RequestIdentity = RequestIdentity(), followsRedirects: Bool = true,
            allowsDowngrade: Bool = false, cacheMode: CacheMode = .off, staleLimit: StaleLimit = .none,
            hooks: (any Hooks)? = nil
        ) {
            manner = RequestManner(method: method, fields: fields, body: body, identity: identity)
            self.followsRedirects = followsRedirects
            self.allowsDowngrade = allowsDowngrade
            self.cacheMode = cacheMode
            self.staleLimit = staleLimit
            self.hooks = hooks
        }

        /// The same, asked for while the jar has these cookies.
        fileprivate init(_ other: Profile, cookies: [UInt8]?) {
            manner = other.manner.with { $0.identity.cookies = cookies }
            followsRedirects = other.followsRedirects
            allowsDowngrade = other.allowsDowngrade
            cacheMode = other.cacheMode
            staleLimit = other.staleLimit
            hooks = other.hooks
        }

        fileprivate func isEqual(to other: Profile) -> Bool {
            if self === other { return true }
            return followsRedirects == other.followsRedirects && allowsDowngrade == other.allowsDowngrade
                && cacheMode == other.cacheMode && staleLimit == other.staleLimit && hooks === other.hooks
                && manner.asksAlike(other.manner)
        }
    }

    package init(url: ParsedURL, _ profile: Profile) {
        self.url = url
        self.profile = profile
    }

    package init(
        url: ParsedURL, method: String = "GET", fields: [HeaderField] = [], body: [UInt8]? = nil,
        identity: RequestIdentity = RequestIdentity(), followsRedirects: Bool = true, allowsDowngrade: Bool = false,
        cacheMode: CacheMode = .off, staleLimit: StaleLimit = .none, hooks: (any Hooks)? = nil
    ) {
        self.init(
            url: url,
            Profile(
                method: method, fields: fields, body: body, identity: identity, followsRedirects: followsRedirects,
                allowsDowngrade: allowsDowngrade, cacheMode: cacheMode, staleLimit: staleLimit, hooks: hooks))
    }

    /// The same, asked for while the jar has these cookies.
    func asked(with cookies: [UInt8]?) -> TransferRequest {
        TransferRequest(url: url, Profile(profile, cookies: cookies))
    }

    /// What of it the transport needs to know.
    package var manner: RequestManner { profile.manner }
    package var method: String { profile.manner.method }
    /// Everything that will be sent, the downloader's header fields included.
    package var fields: [HeaderField] { profile.manner.fields }
    package var body: [UInt8]? { profile.manner.body }
    package var followsRedirects: Bool { profile.followsRedirects }
    /// Follow from https to http.
    package var allowsDowngrade: Bool { profile.allowsDowngrade }
    package var identity: RequestIdentity { profile.manner.identity }
    package var meaning: RequestMeaning { profile.manner.meaning }
    package var cacheMode: CacheMode { profile.cacheMode }
    package var staleLimit: StaleLimit { profile.staleLimit }
    /// Compared by identity.
    package var hooks: (any Hooks)? { profile.hooks }

    /// The rest seldom differs: equality decides.
    var hash: Int { url.hash }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    package static func == (left: TransferRequest, right: TransferRequest) -> Bool {
        left.url.asksForTheSame(as: right.url) && left.profile.isEqual(to: right.profile)
    }
}
