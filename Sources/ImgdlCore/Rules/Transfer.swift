/// One transfer as the rules see it, from its first subscriber to its last. Small while it waits: many do. Not copied:
/// that would count a dozen objects up and down.
@dynamicMemberLookup
struct Transfer: ~Copyable {
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
        /// It failed in a way that may pass, and waits before it tries again (features B14), until `restsUntil`; or its turn has
        /// come, and it waits for executors that are behind.
        case resting
    }

    let request: TransferRequest
    /// What has come of it since it first left the queue.
    private var course: CommonUntilChanged<TransferCourse>
    var phase = Phase.waiting
    /// This attempt's subscribers have been told that it has started.
    var isUnderWay = false {
        didSet { if isUnderWay { hasStarted = true } }
    }
    /// So have those of this attempt or an earlier one.
    private(set) var hasStarted = false
    var pauses: Pauses = []
    /// The ends of the list of its subscribers.
    var firstSubscriber = SubscriberLink.none
    var lastSubscriber = SubscriberLink.none
    /// Live subscribers of each priority: the transfer has the highest that is not 0.
    private var priorityCounts: (Int32, Int32, Int32) = (0, 0, 0)
    private(set) var progressCount: Int32 = 0
    private var continuingCount: Int32 = 0
    var variants: [Variant] = []

    /// `fresh`: of one that has not begun.
    init(_ request: consuming TransferRequest, _ fresh: borrowing CommonUntilChanged<TransferCourse>.Common) {
        self.request = request
        course = CommonUntilChanged(fresh)
    }

    subscript<Member>(dynamicMember path: WritableKeyPath<TransferCourse, Member>) -> Member {
        @inline(__always) get { course.value[keyPath: path] }
        @inline(__always) _modify { yield &course.value[keyPath: path] }
    }

    subscript<Member>(dynamicMember path: WritableKeyPath<TransferDetours, Member>) -> Member {
        @inline(__always) get { course.value.detours[keyPath: path] }
        @inline(__always) _modify { yield &course.value.detours[keyPath: path] }
    }

    /// As many bytes its body has at least, as it is given out.
    var bodyBytes: Int64 { self.received + (self.heldIsEncoded ? 0 : self.heldBytes) }

    /// What this attempt asked first, unless a hook says otherwise what the request does.
    var firstURL: ParsedURL {
        get { course.value.detours.chosenURL ?? request.url }
        set { course.value.detours.chosenURL = newValue }
    }

    /// As nearly all hops do.
    var asksItsOwnURL: Bool { course.value.detours.laterHops.isEmpty && course.value.detours.chosenURL == nil }

    var firstMethod: String {
        get { course.value.detours.chosenMethod ?? request.method }
        set { course.value.detours.chosenMethod = newValue }
    }

    /// Whether a hook has put a condition in place of the request's own, or none; nil: it has not been asked, or has changed
    /// nothing.
    var isChosenConditional: Bool? {
        get { course.value.detours.isChosenConditional }
        set { course.value.detours.isChosenConditional = newValue }
    }

    /// Of this hop.
    var method: String {
        get { course.value.detours.hopMethod ?? request.method }
        set { course.value.detours.hopMethod = newValue }
    }

    var sendsBody: Bool {
        get { course.value.detours.hopSendsBody ?? (request.body != nil) }
        set { course.value.detours.hopSendsBody = newValue }
    }

    /// In or before the queue, or between two attempts.
    var isWaiting: Bool { phase == .waiting || phase == .resting || phase == .consulting && !isUnderWay }

    /// What is left of the body is read only to use the connection again.
    var isDraining: Bool {
        course.value.detours.redirect != nil || course.value.detours.doom != nil
            || course.value.detours.credential != nil
            || course.value.cache.takesOver || course.value.cache.asksAgain
    }

    /// Its body waits for a turn here, and gets the time back that it waits. A drain has so much time and no more.
    var waitsForTurn: Bool { course.value.waitingSince != nil && !isDraining }

    var hasWholeBody: Bool { (phase == .decoding || phase == .transforming) && course.value.detours.failure == nil }

    /// The response is a success whose body nobody has to decode further.
    var isPlainSuccess: Bool { ResponseRules.isSuccess(course.value.status) && !course.value.hasRemainingCoding }

    func asks(_ kind: HookKinds) -> Bool { request.hooks?.kinds.contains(kind) ?? false }

    /// Nothing is decoded before the body is whole.
    var transformsBody: Bool { asks(.transformBody) }

    /// URLs asked, the first included.
    var hops: [ParsedURL] { [firstURL] + course.value.detours.laterHops }

    /// Only safe methods are shared: two POSTs are two.
    var isShareable: Bool { request.method == "GET" || request.method == "HEAD" }

    /// What the hop asks changes nothing at the server, and may be stored.
    var isSafe: Bool { method == "GET" || method == "HEAD" }

    /// How many bytes the server says will come; the length that answers a HEAD is not that of a body.
    var announcedBody: Int64? { course.value.expected < 0 || method == "HEAD" ? nil : course.value.expected }

    /// When it is too late for the next byte.
    func deadline(_ limits: Limits) -> Instant? {
        guard pauses.isEmpty, course.value.detours.question == nil, !course.value.cache.isPlaying else { return nil }
        switch phase {
        case .connecting: return course.value.lastActivity.advanced(byMilliseconds: course.value.lowest.connectTimeout)
        case .receiving where isDraining:
            return course.value.lastActivity.advanced(
                byMilliseconds: min(limits.drainTimeout, course.value.lowest.idleTimeout))
        case .receiving where waitsForTurn: return nil
        case .receiving: return course.value.lastActivity.advanced(byMilliseconds: course.value.lowest.idleTimeout)
        case .waiting, .asking, .consulting, .transforming, .decoding, .resting: return nil
        }
    }

    /// Nobody but the rules themselves has an interest in it.
    var isUnattended: Bool {
        let ownCount = Int(course.value.internalCount)
        return ownCount > 0 && ownCount == subscriberCount
    }

    /// It is at the transport for one subscriber alone, and its end is worth waiting for.
    func isNearlyDone(_ now: Instant) -> Bool {
        guard subscriberCount == 1, phase == .receiving, course.value.place >= 0, !isDraining,
            let answered = course.value.answered, let firstByte = firstByteNanoseconds
        else { return false }
        return ResumeRules.isNearlyDone(
            received: course.value.received, expected: course.value.expected,
            bodyNanoseconds: now.nanoseconds - answered.nanoseconds, firstByteNanoseconds: firstByte)
    }

    /// From the beginning to the first byte of the answer.
    var firstByteNanoseconds: Int64? {
        guard let sent = course.value.sent, let answered = course.value.answered else { return nil }
        return answered.nanoseconds - sent.nanoseconds
    }

    /// As before its first attempt, but for what it has learned: what came so far is void.
    mutating func reset() {
        phase = .resting
        course.value.detours.chosenURL = nil
        course.value.detours.chosenMethod = nil
        course.value.detours.isChosenConditional = nil
        course.value.detours.hopMethod = nil
        course.value.detours.hopSendsBody = nil
        course.value.detours.laterHops = []
        course.value.detours.latestCookie = nil
        course.value.detours.doom = nil
        course.value.reminder = nil
        course.value.hasHead = false
        course.value.outcome = .network
        course.value.cache.reset()
        course.value.heldRequest = nil
        isUnderWay = false
        course.value.sent = nil
        course.value.answered = nil
        course.value.askedAt = nil
        course.value.expected = -1
        course.value.head = nil
        course.value.hasRemainingCoding = false
        course.value.drained = 0
        course.value.retryAfter = nil
        voidBody()
    }

    mutating func receive(_ bytes: Int64, _ now: Instant) { course.value.receive(bytes, now) }

    /// What came of the body is not that of the picture.
    mutating func voidBody() {
        course.value.received = 0
        course.value.picture = .unknown
        course.value.awaitsLook = false
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

    /// The options by reference: they are large, and little is asked of them.
    mutating func join(_ options: Boxed<SubscriberOptions>, _ limits: Limits) {
        count(options.wrappedValue.priority, 1)
        if options.wrappedValue.continuesInBackground { continuingCount += 1 }
        if options.wrappedValue.events.contains(.progress) { progressCount += 1 }
        if course.value.knowsLowest, !course.value.lowest.covers(options, limits) {
            course.value.lowest.include(options, limits)
        }
    }

    mutating func leave(_ options: Boxed<SubscriberOptions>) {
        count(options.wrappedValue.priority, -1)
        if options.wrappedValue.continuesInBackground { continuingCount -= 1 }
        if options.wrappedValue.events.contains(.progress) { progressCount -= 1 }
    }

    /// The one that decodes so, made when there is none.
    mutating func variant(_ options: DecodeOptions) -> Int {
        if let known = variants.firstIndex(where: { $0.options == options }) { return known }
        let hasNewBytes = course.value.received > 0 && (!transformsBody || phase == .decoding)
        variants.append(Variant(options: options, hasNewBytes: hasNewBytes))
        return variants.count - 1
    }
}

/// One subscriber as the rules see it, from acceptance to its terminal; in the list of its transfer.
@dynamicMemberLookup
struct Subscriber: ~Copyable {
    @Boxed var options: SubscriberOptions
    /// What few of them ever have.
    private var course: CommonUntilChanged<SubscriberCourse>
    private var sinceNanoseconds = noTime
    let transferSlot: UInt32
    var previous: SubscriberLink
    var next = SubscriberLink.none
    private let variantIndex: Int32
    /// Where what it is handed waits for its host.
    let executor: Backlogs.Executor
    /// One bit each: with a byte for each, one that waits would take more than it may.
    private var marks = Marks()

    private struct Marks: OptionSet {
        let rawValue: UInt8
        static let isInternal = Marks(rawValue: 1 << 0)
        static let hasStarted = Marks(rawValue: 1 << 1)
        static let isProgressHeld = Marks(rawValue: 1 << 2)
        static let isPartialHeld = Marks(rawValue: 1 << 3)
        static let isPartialTimerSet = Marks(rawValue: 1 << 4)
        static let hasResponse = Marks(rawValue: 1 << 5)
        static let hasHeader = Marks(rawValue: 1 << 6)

        subscript(mark: Marks) -> Bool {
            get { contains(mark) }
            set { if newValue { formUnion(mark) } else { subtract(mark) } }
        }
    }

    /// Nobody's: it keeps a transfer going for the cache's sake, and is told nothing.
    var isInternal: Bool {
        get { marks[.isInternal] }
        set { marks[.isInternal] = newValue }
    }
    /// Its transfer has left the queue once.
    var hasStarted: Bool {
        get { marks[.hasStarted] }
        set { marks[.hasStarted] = newValue }
    }
    /// It waits for the header.
    var isProgressHeld: Bool {
        get { marks[.isProgressHeld] }
        set { marks[.isProgressHeld] = newValue }
    }
    /// There is a newer partial image, too early for this one.
    var isPartialHeld: Bool {
        get { marks[.isPartialHeld] }
        set { marks[.isPartialHeld] = newValue }
    }
    var isPartialTimerSet: Bool {
        get { marks[.isPartialTimerSet] }
        set { marks[.isPartialTimerSet] = newValue }
    }
    /// What it was told of this attempt.
    var hasResponse: Bool {
        get { marks[.hasResponse] }
        set { marks[.hasResponse] = newValue }
    }
    var hasHeader: Bool {
        get { marks[.hasHeader] }
        set { marks[.hasHeader] = newValue }
    }

    private static let noTime = Int64.min

    /// nil: nothing is decoded for it.
    var variant: Int? { variantIndex < 0 ? nil : Int(variantIndex) }

    /// `fresh`: of one that has been told nothing.
    init(
        options: consuming Boxed<SubscriberOptions>, transfer: TransferID, variant: Int?,
        executor: Backlogs.Executor, previous: SubscriberLink,
        _ fresh: borrowing CommonUntilChanged<SubscriberCourse>.Common
    ) {
        _options = options
        course = CommonUntilChanged(fresh)
        transferSlot = UInt32(SlotTable<Transfer>.slot(transfer))
        variantIndex = variant.map { Int32($0) } ?? -1
        self.executor = executor
        self.previous = previous
    }

    /// Its clocks run since then: it joined a transfer that was under way.
    var since: Instant? {
        get { sinceNanoseconds == Self.noTime ? nil : Instant(nanoseconds: sinceNanoseconds) }
        set { sinceNanoseconds = newValue?.nanoseconds ?? Self.noTime }
    }

    var takesAnySuccess: Bool { options.validation.statuses == nil && options.validation.contentTypes == nil }

    /// It takes what pixels there are of a picture that failed.
    var maySalvage: Bool { options.salvages && variant != nil }

    /// When it may see the next partial image; nil for at once.
    var partialDue: Instant? { course.value.lastPartial?.advanced(byMilliseconds: options.partialInterval) }

    /// Milliseconds before its next attempt, at most.
    var longestWait: Int64 { RetryRules.longestWait(options.retry, attempt: course.value.retries) }

    subscript<Member>(dynamicMember path: WritableKeyPath<SubscriberCourse, Member>) -> Member {
        @inline(__always) get { course.value[keyPath: path] }
        @inline(__always) _modify { yield &course.value[keyPath: path] }
    }
}

/// A place in the list of a transfer's subscribers: the slot, half as large as the number.
struct SubscriberLink: Equatable, BitwiseCopyable {
    private let rawValue: UInt32

    static let none = SubscriberLink(rawValue: .max)

    private init(rawValue: UInt32) { self.rawValue = rawValue }

    init(_ subscriber: SubscriberID) { rawValue = UInt32(SlotTable<Subscriber>.slot(subscriber)) }

    /// nil for none.
    var slot: Int? { self == .none ? nil : Int(rawValue) }
}

extension SubscriberOptions {
    /// Milliseconds.
    func connectTimeout(_ limits: Limits) -> Int64 { connectTimeout > 0 ? connectTimeout : limits.connectTimeout }
    func idleTimeout(_ limits: Limits) -> Int64 { idleTimeout > 0 ? idleTimeout : limits.idleTimeout }
}

extension SlotTable<Transfer> {
    subscript(_ id: TransferID) -> Transfer {
        @inline(__always) unsafeAddress { address(of: id.rawValue) }
        @inline(__always) unsafeMutableAddress { mutableAddress(of: id.rawValue) }
    }

    func contains(_ id: TransferID) -> Bool { contains(id.rawValue) }

    static func slot(_ id: TransferID) -> Int { slot(id.rawValue) }
}
