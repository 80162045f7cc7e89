/// One transfer as the rules see it, from its first subscriber to its last.
struct Transfer {
    enum Phase: Equatable {
        case waiting
        /// It has its place, and nothing is at the transport: a hook is asked what to send.
        case asking
        /// The cache is asked what it has, with a place or without one.
        case consulting
        /// At the transport, no connection yet.
        case connecting
        /// The request is out, or the body comes.
        case receiving
        /// The transport has ended; a hook is asked for the body to decode.
        case transforming
        /// The transport has ended; decoders are at work.
        case decoding
        /// It failed in a way that may pass, and waits before it tries again (features B14).
        case resting
    }

    let request: TransferRequest
    var phase = Phase.waiting
    var cache = CacheUse()
    /// This attempt's subscribers have been told that it has started.
    var isUnderWay = false {
        didSet { if isUnderWay { hasStarted = true } }
    }
    /// So have those of this attempt or an earlier one.
    private(set) var hasStarted = false
    /// It has been started, and not told as stopped.
    var isObserved = false
    /// The ends of the list of its subscribers; 0 for none.
    var firstSubscriber: SubscriberID = 0
    var lastSubscriber: SubscriberID = 0
    /// Live subscribers of each priority: the transfer has the highest that is not 0.
    private var priorityCounts: (Int32, Int32, Int32) = (0, 0, 0)
    private(set) var progressCount = 0
    /// The lowest of its subscribers, or lower: looked at anew when they are passed.
    var bodyLimit = Int64.max
    var connectTimeout = Int64.max
    var idleTimeout = Int64.max

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
    /// Begun, and neither its end reported nor stopped.
    var isAtTransport = false
    /// What a hook is asked, and how many questions there were.
    var question: Question?
    var questionCount: UInt32 = 0
    /// What waits for the answer: the head, and an end that came meanwhile.
    var askedHead: AskedHead?
    var heldEnd: Result<Void, Failure>?
    /// Hooks had a part in what becomes of it: its failure says nothing about the URL.
    var isModified = false
    var isRefused = false
    var wasChallenged = false
    /// With which its hop is asked again, once what is left of the challenge's body has been read.
    var credential: Credential?

    /// What this attempt asked first, unless a hook says otherwise what the request does.
    var firstURL: ParsedURL
    var firstMethod: String
    /// URLs asked after the first.
    var laterHops: [ParsedURL] = []
    var method: String
    var sendsBody: Bool
    /// Followed once what is left of the body has been read.
    var redirect: Redirect?

    /// When the connection of the hop stood, and when its answer came.
    var sent: Instant?
    var answered: Instant?
    /// Where the last response is from.
    var outcome = CacheOutcome.network
    /// Of the last response, ten times the number.
    var httpVersion: Int32 = 0
    /// Of the last response, a redirect's too; 0 before the first.
    var status: Int32 = 0
    /// The response is there that is no redirect to follow.
    var hasHead = false
    var received: Int64 = 0
    var expected: Int64 = -1
    /// Of the final response, in lower case, without parameters.
    var mediaType = ""
    var remainingCoding: String?
    /// Known to end in this, once what is left of the body has been read.
    var doom: Failure?
    /// Bytes of that rest.
    var drained: Int64 = 0
    /// Milliseconds that the server asks to wait before the next attempt.
    var retryAfter: Int64?
    /// Attempts after the first.
    var retries = 0
    /// When it goes back into the queue.
    var restsUntil: Instant?
    /// How the transport ended, when decoders are still to salvage what came.
    var failure: Failure?
    var variants: [Variant] = []

    init(_ request: TransferRequest) {
        self.request = request
        method = request.method
        sendsBody = request.body != nil
        firstURL = request.url
        firstMethod = request.method
    }

    /// In or before the queue: nobody has been told that this attempt has started.
    var isWaiting: Bool { phase == .waiting || phase == .resting || phase == .consulting && !isUnderWay }

    /// What is left of the body is read only to use the connection again. Inlined: a call would copy the transfer.
    @inline(__always) var isDraining: Bool {
        redirect != nil || doom != nil || credential != nil || cache.takesOver || cache.asksAgain
    }

    var hasWholeBody: Bool { (phase == .decoding || phase == .transforming) && failure == nil }

    func asks(_ kind: HookKinds) -> Bool { request.hooks?.kinds.contains(kind) ?? false }

    /// Nothing is decoded before the body is whole.
    var transformsBody: Bool { asks(.transformBody) }

    /// URLs asked, the first included.
    var hops: [ParsedURL] { [firstURL] + laterHops }

    /// Only safe methods are shared: two POSTs are two.
    var isShareable: Bool { request.method == "GET" || request.method == "HEAD" }

    /// What the hop asks changes nothing at the server, and may be stored.
    var isSafe: Bool { method == "GET" || method == "HEAD" }

    /// How many bytes the server says will come; the length that answers a HEAD is not that of a body.
    var announcedBody: Int64? { expected < 0 || method == "HEAD" ? nil : expected }

    /// When it is too late for the next byte.
    func deadline(_ limits: Limits) -> Instant? {
        guard pauses.isEmpty, question == nil, !cache.isPlaying else { return nil }
        switch phase {
        case .connecting: return lastActivity.advanced(byMilliseconds: connectTimeout)
        case .receiving where isDraining:
            return lastActivity.advanced(byMilliseconds: min(limits.drainTimeout, idleTimeout))
        case .receiving: return lastActivity.advanced(byMilliseconds: idleTimeout)
        case .waiting, .asking, .consulting, .transforming, .decoding, .resting: return nil
        }
    }

    /// As before its first attempt, but for what it has learned: what came so far is void.
    mutating func reset() {
        phase = .resting
        firstURL = request.url
        firstMethod = request.method
        method = request.method
        sendsBody = request.body != nil
        laterHops = []
        reminder = nil
        hasHead = false
        outcome = .network
        cache.reset()
        isUnderWay = false
        sent = nil
        answered = nil
        expected = -1
        mediaType = ""
        remainingCoding = nil
        doom = nil
        drained = 0
        retryAfter = nil
        voidBody()
    }

    /// What came of the body is not that of the picture.
    mutating func voidBody() {
        received = 0
        picture = .unknown
        for variant in variants.indices { variants[variant].reset() }
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

    mutating func join(_ options: SubscriberOptions, _ variant: Int?, _ limits: Limits) {
        count(options.priority, 1)
        if options.continuesInBackground { continuingCount += 1 }
        bodyLimit = min(bodyLimit, options.maximumBodyBytes)
        connectTimeout = min(connectTimeout, options.connectTimeout(limits))
        idleTimeout = min(idleTimeout, options.idleTimeout(limits))
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
        variants.append(Variant(options: options, hasNewBytes: received > 0 && (!transformsBody || phase == .decoding)))
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
    /// Nobody's: it keeps a transfer going for the cache's sake, and is told nothing.
    var isInternal = false
    var clock = TotalClock.off
    /// Its transfer has left the queue once.
    var hasStarted = false
    /// What it was told that is told once, whatever is tried again.
    var told: EventMask = []
    /// The latest progress it was told of; -1 for none.
    var toldReceived: Int64 = -1
    var toldExpected: Int64 = -1
    /// Its clocks run since then: it joined a transfer that was under way.
    var since: Instant?
    /// Attempts after the first that it has asked for.
    var retries = 0
    /// Why it does not take the response that is being drained.
    var doom: Failure?
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

extension SubscriberOptions {
    /// Milliseconds.
    func connectTimeout(_ limits: Limits) -> Int64 { connectTimeout > 0 ? connectTimeout : limits.connectTimeout }
    func idleTimeout(_ limits: Limits) -> Int64 { idleTimeout > 0 ? idleTimeout : limits.idleTimeout }
}

extension SlotTable<Transfer> {
    subscript(_ id: TransferID) -> Transfer {
        unsafeAddress { address(of: id.rawValue) }
        unsafeMutableAddress { mutableAddress(of: id.rawValue) }
    }

    func contains(_ id: TransferID) -> Bool { contains(id.rawValue) }

    static func slot(_ id: TransferID) -> Int { slot(id.rawValue) }
}
