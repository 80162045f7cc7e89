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
    private(set) var subscriberCount = 0
    private(set) var headerCount = 0
    private(set) var partialCount = 0
    /// Bytes of memory counted for its decoder.
    var reserved: Int64 = 0
    /// Bytes of these that its picture keeps besides its pixels.
    var reservedBeside: Int64 = 0
    /// Its decoder is not opened for want of memory, or of bytes that tell the size.
    var isHeldBack = false
    /// In the line of decoders that wait for room.
    var isInLine = false
    /// How often others have got room since it has stood there for longest.
    var passes = 0
    /// In the line of those that wait for executors.
    var waitsForExecutor = false
    /// Bytes have come that the decoder has not had.
    var hasNewBytes: Bool
    /// The decoder has had bytes since it last showed a picture.
    var hasUnshown = false
    var hasHeader = false
    var hasPartial = false
    var lastPartial: Instant?
    /// Bytes of the body when it last showed a picture, of any attempt: what has been seen is not shown again.
    var shownBytes: Int64 = 0
    /// Milliseconds, the least that anybody asked for since there was nobody.
    private var partialInterval: Int64 = 0
    var isTimerSet = false

    init(options: DecodeOptions, hasNewBytes: Bool) {
        self.options = options
        self.hasNewBytes = hasNewBytes
    }

    /// No worker has it, and there is more to come.
    var isIdle: Bool { phase == .unopened || phase == .open }

    /// There are bytes that it has not read, and its header may be in them.
    var owesHeader: Bool {
        switch phase {
        case .unopened, .open: !hasHeader && hasNewBytes && !isHeldBack
        case .busy, .finishing: !hasHeader
        case .done: false
        }
    }

    var wantsEarly: Bool { headerCount > 0 || partialCount > 0 }

    /// When it may show the next picture; nil for at once.
    var nextPartial: Instant? { lastPartial?.advanced(byMilliseconds: partialInterval) }

    func mayShow(_ now: Instant) -> Bool { partialCount > 0 && nextPartial.map { $0 <= now } ?? true }

    /// Its decoder is gone, with all that it gave.
    mutating func reset() {
        phase = .unopened
        hasNewBytes = false
        hasUnshown = false
        hasHeader = false
        hasPartial = false
        isHeldBack = false
        passes = 0
        waitsForExecutor = false
    }

    mutating func join(_ options: SubscriberOptions) {
        subscriberCount += 1
        if options.events.contains(.header) { headerCount += 1 }
        if options.events.contains(.partial) {
            let interval = options.partialInterval
            partialInterval = partialCount == 0 ? interval : min(partialInterval, interval)
            partialCount += 1
        }
    }

    mutating func leave(_ options: SubscriberOptions) {
        subscriberCount -= 1
        if options.events.contains(.header) { headerCount -= 1 }
        if options.events.contains(.partial) { partialCount -= 1 }
    }
}
