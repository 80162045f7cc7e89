/// One transfer as the rules see it, from its first subscriber to its last.
struct Transfer {
    enum Phase: Equatable {
        case waiting
        /// At the transport, no connection yet.
        case connecting
        /// The request is out, or the body comes.
        case receiving
        /// The transport has ended; decoders are at work.
        case decoding
    }

    let request: TransferRequest
    var phase = Phase.waiting
    /// It has been started, and not told as stopped.
    var isObserved = false
    /// The ends of the list of its subscribers; 0 for none.
    var firstSubscriber: SubscriberID = 0
    var lastSubscriber: SubscriberID = 0
    /// Live subscribers of each priority: the transfer has the highest that is not 0.
    private var priorityCounts: (Int32, Int32, Int32) = (0, 0, 0)
    private(set) var progressCount = 0
    /// The lowest of its subscribers, or lower: looked at anew when it is passed.
    var bodyLimit = Int64.max

    /// At its host and among the running; -1: none.
    var place: WaitingQueue.Place = -1
    var runningIndex: Int32 = 0
    /// Counts starts: the lower, the older.
    var startNumber: UInt32 = 0
    private var continuingCount: Int32 = 0
    var pauses: Pauses = []
    var pausedAt = Instant(nanoseconds: 0)
    /// What of its body counts as memory in use.
    var countedBytes: Int64 = 0
    var picture = PictureSize.unknown

    /// Start of the hop, then the moment of the last byte.
    var lastActivity = Instant(nanoseconds: 0)
    /// When its own deadline is looked at; nil when no reminder stands.
    var reminder: Instant?
    /// URLs asked after the first.
    var laterHops: [ParsedURL] = []
    var method: String
    var sendsBody: Bool
    /// Followed once what is left of the body has been read.
    var redirect: Redirect?

    /// Of the last response, ten times the number.
    var httpVersion: Int32 = 0
    /// Of the last response, a redirect's too; 0 before the first.
    var status: Int32 = 0
    /// The response is there that is no redirect to follow.
    var hasHead = false
    var received: Int64 = 0
    var expected: Int64 = -1
    /// Known to end in this, once what is left of the body has been read.
    var doom: Failure?
    /// How the transport ended, when decoders are still to salvage what came.
    var failure: Failure?
    var variants: [Variant] = []

    init(_ request: TransferRequest) {
        self.request = request
        method = request.method
        sendsBody = request.body != nil
    }

    /// A connection's worth of the concurrency limit is taken.
    var isRunning: Bool { phase == .connecting || phase == .receiving }

    /// What is left of the body is read only to use the connection again.
    var isDraining: Bool { redirect != nil || doom != nil }

    var hasWholeBody: Bool { phase == .decoding && failure == nil }

    /// URLs asked, the first included.
    var hops: [ParsedURL] { [request.url] + laterHops }

    /// Only safe methods are shared: two POSTs are two.
    var isShareable: Bool { request.method == "GET" || request.method == "HEAD" }

    /// How many bytes the server says will come; the length that answers a HEAD is not that of a body.
    var announcedBody: Int64? { expected < 0 || method == "HEAD" ? nil : expected }

    /// When it is too late for the next byte.
    func deadline(_ limits: Limits) -> Instant? {
        guard pauses.isEmpty else { return nil }
        return switch phase {
        case .connecting: lastActivity.advanced(byMilliseconds: limits.connectTimeout)
        case .receiving where isDraining:
            lastActivity.advanced(byMilliseconds: min(limits.drainTimeout, limits.idleTimeout))
        case .receiving: lastActivity.advanced(byMilliseconds: limits.idleTimeout)
        case .waiting, .decoding: nil
        }
    }

    // MARK: Subscribers

    var priority: Priority {
        if priorityCounts.2 > 0 { return .high }
        return priorityCounts.1 > 0 ? .normal : .low
    }

    /// Somebody asked for it to go on in the background (features O4).
    var continuesInBackground: Bool { continuingCount > 0 }
    var subscriberCount: Int { Int(priorityCounts.0) + Int(priorityCounts.1) + Int(priorityCounts.2) }

    mutating func count(_ priority: Priority, _ change: Int32) {
        switch priority {
        case .low: priorityCounts.0 += change
        case .normal: priorityCounts.1 += change
        case .high: priorityCounts.2 += change
        }
    }

    mutating func join(_ options: SubscriberOptions, _ variant: Int?) {
        count(options.priority, 1)
        if options.continuesInBackground { continuingCount += 1 }
        bodyLimit = min(bodyLimit, options.maximumBodyBytes)
        if options.events.contains(.progress) { progressCount += 1 }
        if let variant { variants[variant].join(options) }
    }

    mutating func leave(_ options: SubscriberOptions, _ variant: Int?) {
        count(options.priority, -1)
        if options.continuesInBackground { continuingCount -= 1 }
        if options.events.contains(.progress) { progressCount -= 1 }
        if let variant { variants[variant].leave(options) }
    }

    /// The one that decodes so, made when there is none.
    mutating func variant(_ options: DecodeOptions) -> Int {
        if let known = variants.firstIndex(where: { $0.options == options }) { return known }
        variants.append(Variant(options: options, hasNewBytes: received > 0))
        return variants.count - 1
    }
}

/// One subscriber as the rules see it, from acceptance to its terminal; in the list of its transfer.
struct Subscriber {
    var options: SubscriberOptions
    let transfer: TransferID
    let variant: Int?
    var previous: SubscriberID
    var next: SubscriberID = 0
    var clock = TotalClock.off
    /// It waits for the header.
    var isProgressHeld = false
    var lastPartial: Instant?
    /// There is a newer partial image, too early for this one.
    var isPartialHeld = false
    var isPartialTimerSet = false

    init(options: SubscriberOptions, transfer: TransferID, variant: Int?, previous: SubscriberID) {
        self.options = options
        self.transfer = transfer
        self.variant = variant
        self.previous = previous
    }
}

extension SlotTable<Transfer> {
    subscript(_ id: TransferID) -> Transfer {
        _read { yield self[id.rawValue] }
        _modify { yield &self[id.rawValue] }
    }

    func contains(_ id: TransferID) -> Bool { contains(id.rawValue) }

    static func slot(_ id: TransferID) -> Int { slot(id.rawValue) }
}
