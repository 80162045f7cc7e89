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
    var firstSubscriber: SubscriberID = 0
    var lastSubscriber: SubscriberID = 0
    var subscriberCount = 0
    /// Live subscribers of each priority: the transfer has the highest that is not 0.
    var priorityCounts: (Int32, Int32, Int32) = (0, 0, 0)
    var progressCount = 0
    var bodyLimit = Int64.max

    /// Start of the hop, then the moment of the last byte.
    var lastActivity = Instant(nanoseconds: 0)
    /// When its own deadline is looked at; nil when no reminder stands.
    var reminder: Instant?
    /// URLs asked, the first included; empty while there was no redirect.
    var hops: [ParsedURL] = []
    var method: String
    var sendsBody: Bool
    var redirect: Redirect?

    /// Of the last response, a redirect's too; 0 before the first.
    var status: Int32 = 0
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

    /// Only safe methods are shared: two POSTs are two.
    var isShareable: Bool { request.method == "GET" || request.method == "HEAD" }

    var priority: Priority {
        if priorityCounts.2 > 0 { return .high }
        return priorityCounts.1 > 0 ? .normal : .low
    }

    mutating func count(_ priority: Priority, _ change: Int32) {
        switch priority {
        case .low: priorityCounts.0 += change
        case .normal: priorityCounts.1 += change
        case .high: priorityCounts.2 += change
        }
    }

    /// When it is too late for the next byte.
    func deadline(_ limits: Limits) -> Instant? {
        switch phase {
        case .connecting: lastActivity.advanced(byMilliseconds: limits.connectTimeout)
        case .receiving:
            lastActivity.advanced(
                byMilliseconds: isDraining ? min(limits.drainTimeout, limits.idleTimeout) : limits.idleTimeout)
        case .waiting, .decoding: nil
        }
    }
}

/// One subscriber as the rules see it, from acceptance to its terminal; in the list of its transfer.
struct Subscriber {
    var options: SubscriberOptions
    let transfer: TransferID
    let variant: Int?
    var previous: SubscriberID = 0
    var next: SubscriberID = 0
    var lastPartial: Instant?
    /// There is a newer partial image, too early for this one.
    var isPartialHeld = false
    var isPartialTimerSet = false
}
