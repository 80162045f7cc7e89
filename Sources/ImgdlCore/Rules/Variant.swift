/// One way of decoding a transfer's body, shared by all its subscribers that asked for the same (features T30).
struct Variant {
    enum Phase: Equatable {
        /// No decoder yet.
        case unopened
        /// The decoder waits for bytes.
        case open
        /// A worker has it: at most one step is in flight, newer bytes wait (features B6, R27).
        case busy
        /// A worker has it for the last time.
        case finishing
        /// The picture is there for who still asks, or it failed and nobody joins any more.
        case done
    }

    let options: DecodeOptions
    var phase = Phase.unopened
    var subscriberCount = 0
    var headerCount = 0
    var partialCount = 0
    var salvageCount = 0
    /// Bytes have come that the decoder has not had.
    var hasNewBytes = false
    /// The decoder has had bytes since it last showed a picture.
    var hasUnshown = false
    var hasHeader = false
    var hasPartial = false
    var lastPartial: Instant?
    /// Milliseconds, the least that a subscriber asked for.
    var partialInterval: Int64
    var isTimerSet = false

    /// Its header may still come.
    var owesHeader: Bool { !hasHeader && phase != .done }

    var wantsEarly: Bool { headerCount > 0 || partialCount > 0 }

    func mayShow(_ now: Instant) -> Bool {
        partialCount > 0 && lastPartial.map { $0.advanced(byMilliseconds: partialInterval) <= now } ?? true
    }

    mutating func join(_ options: SubscriberOptions) {
        subscriberCount += 1
        if options.events.contains(.header) { headerCount += 1 }
        if options.events.contains(.partial) {
            partialInterval = partialCount == 0 ? options.partialInterval : min(partialInterval, options.partialInterval)
            partialCount += 1
        }
        if options.salvages { salvageCount += 1 }
    }

    mutating func leave(_ options: SubscriberOptions) {
        subscriberCount -= 1
        if options.events.contains(.header) { headerCount -= 1 }
        if options.events.contains(.partial) { partialCount -= 1 }
        if options.salvages { salvageCount -= 1 }
    }
}
