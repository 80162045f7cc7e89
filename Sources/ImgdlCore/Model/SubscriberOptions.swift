/// Which events a subscriber receives; the terminal comes always. Values are ABI.
package struct EventMask: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let started = EventMask(rawValue: 1 << 0)
    package static let response = EventMask(rawValue: 1 << 1)
    package static let header = EventMask(rawValue: 1 << 2)
    package static let progress = EventMask(rawValue: 1 << 3)
    package static let partial = EventMask(rawValue: 1 << 4)
    package static let terminal = EventMask(rawValue: 1 << 5)
    package static let all = EventMask(rawValue: (1 << 6) - 1)
}

/// Three of them; a transfer has the highest of its live subscribers (features B12).
package enum Priority: Int8, Comparable, CaseIterable, Sendable {
    case low = -1
    case normal = 0
    case high = 1

    package static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
    /// 0 to 2, for tables.
    package var index: Int { Int(rawValue) + 1 }
}

/// What of a request is not about the bytes and so belongs to its subscriber alone (features B4).
package struct SubscriberOptions: Sendable {
    package static let defaultMaximumBodyBytes: Int64 = 256 << 20
    package static let defaultPartialInterval: Int64 = 100

    package var priority = Priority.normal
    package var events: EventMask = []
    /// Hand the body over.
    package var wantsBody = false
    /// How to decode; nil for not at all.
    package var decode: DecodeOptions? = DecodeOptions()
    /// It decodes nothing, and takes no body that could not be decoded: a later request is to have it as a picture.
    package var isForPicture = false
    /// A redirect is taken as it is: who has asked follows redirects, and it is the answer behind them that has a type.
    package var takesRedirects = false
    /// A failure brings the pixels that could be had (features B5).
    package var salvages = false
    /// Any HTTP status is a success.
    package var acceptsAnyStatus = false
    package var maximumBodyBytes = defaultMaximumBodyBytes
    /// Milliseconds from the start of the transfer, 0 for none (features I32).
    package var totalTimeout: Int64 = 0
    /// Milliseconds at least between two partial images.
    package var partialInterval = defaultPartialInterval
    /// Milliseconds; 0: the downloader's.
    package var connectTimeout: Int64 = 0
    package var idleTimeout: Int64 = 0
    package var retry = RetryPolicy()
    package var validation = Validation()
    package var continuesInBackground = false
    /// Wants to hear only if it has changed: what comes from the cache, or has the bytes that were stored when the transfer
    /// began, is `notModified` (features O3).
    package var ignoresCached = false
    /// Ask again, whatever failed a moment ago (features E4, E10).
    package var retriesFailed = false
    /// URLs in its responses keep the values of their queries.
    package var showsFullURLs = false
    /// 0: as the URL says, else 1 (features X10).
    package var scaleFactor = 0.0

    package init() {}
}
