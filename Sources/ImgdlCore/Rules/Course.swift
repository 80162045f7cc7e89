/// What the rules know of a transfer that has left the queue once; the same for all that have not.
struct TransferCourse {
    var cache = CacheUse()
    /// At its host and among the running; -1: none.
    var place: WaitingQueue.Place = -1
    var runningIndex: Int32 = 0
    /// Subscribers of the rules' own.
    var internalCount: Int32 = 0
    /// It has been started, and not told as stopped.
    var isObserved = false
    var lowest = LowestLimits()
    /// Those are its subscribers'.
    var knowsLowest = false
    /// Counts starts: the lower, the older.
    var startNumber: UInt64 = 0
    var pausedAt = Instant(nanoseconds: 0)
    /// What of its body counts as memory in use.
    var countedBytes: Int64 = 0
    var picture = PictureSize.unknown
    /// Somebody who decodes has joined one whose body nobody has looked at.
    var awaitsLook = false

    /// Start of the hop, then the moment of the last byte.
    var lastActivity = Instant(nanoseconds: 0)
    /// Instant since which bytes of its body wait for their turn here, and its idle clock stands still; of a pause
    /// meanwhile, since its end.
    var waitingSince: Instant?
    /// When its own deadline is looked at; nil when no reminder stands.
    var reminder: Instant?
    /// Goes to the server when it has a place at its host.
    var heldRequest: HopRequest?
    /// Begun, and neither its end reported nor stopped.
    var isAtTransport = false
    @Boxed var detours = TransferDetours()

    /// When the connection of the hop stood, and when its answer came.
    var sent: Instant?
    var answered: Instant?
    /// Before which moment nothing of it was asked for (`OutdatedURLs`), over all hops; nil: nothing was.
    var askedAt: UInt64?
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
    /// Of the final response.
    var head: ResponseHead?
    /// Whether that has a `remainingCoding`: asked for each subscriber, and the text would be counted.
    var hasRemainingCoding = false
    /// Bytes read of what is left of a body that nobody wants.
    var drained: Int64 = 0
    /// Milliseconds that the server asks to wait before the next attempt.
    var retryAfter: Int64?

    /// More of a body that is wanted.
    mutating func receive(_ bytes: Int64, _ now: Instant) {
        received += bytes
        countedBytes += bytes
        lastActivity = now
    }
}

/// The lowest limits of a transfer's subscribers, or lower ones: they are looked at anew when they are passed.
struct LowestLimits {
    var bodyBytes: Int64 = 0
    /// Milliseconds.
    var connectTimeout: Int64 = 0
    var idleTimeout: Int64 = 0

    static let none = LowestLimits(bodyBytes: .max, connectTimeout: .max, idleTimeout: .max)

    func covers(_ options: Boxed<SubscriberOptions>, _ limits: Limits) -> Bool {
        bodyBytes <= options.wrappedValue.maximumBodyBytes
            && connectTimeout <= options.wrappedValue.connectTimeout(limits)
            && idleTimeout <= options.wrappedValue.idleTimeout(limits)
    }

    mutating func include(_ options: Boxed<SubscriberOptions>, _ limits: Limits) {
        bodyBytes = min(bodyBytes, options.wrappedValue.maximumBodyBytes)
        connectTimeout = min(connectTimeout, options.wrappedValue.connectTimeout(limits))
        idleTimeout = min(idleTimeout, options.wrappedValue.idleTimeout(limits))
    }
}

/// What few transfers ever know: of hooks, redirects, failures and attempts after the first. The same for all others.
struct TransferDetours {
    /// What a hook is asked, and how many questions there were.
    var question: Question?
    var questionCount: UInt64 = 0
    /// What waits for the answer: the head, and an end that came meanwhile.
    var askedHead: AskedHead?
    var heldEnd: Result<Void, Failure>?
    var isRefused = false
    var wasChallenged = false
    /// A hook has given a credential.
    var hasAnsweredChallenge = false
    /// With which its hop is asked again, once what is left of the challenge's body has been read.
    var credential: Credential?

    /// In place of the request's own: what a hook has chosen to ask first, then what the hop asks; nil: the request's.
    var chosenURL: ParsedURL?
    var chosenMethod: String?
    var isChosenConditional: Bool?
    var hopMethod: String?
    var hopSendsBody: Bool?
    /// The jar has changed since it was asked for: what comes of it says nothing of who asked so.
    var hasOtherCookies = false
    /// URLs asked after the first.
    var laterHops: [ParsedURL] = []
    /// The last of all hops whose answer set a cookie for the next ones.
    var latestCookie: Int?
    /// Bytes of the body that the transport holds while nobody takes them: among what is counted, not received.
    var heldBytes: Int64 = 0
    /// Whether codings of those are not undone yet.
    var heldIsEncoded = false
    /// Memory that the transport holds to undo the codings of its body: no part of what is counted.
    var codingBytes: Int64 = 0
    /// The bytes that it holds besides its body.
    var keptBytes: Int64 = 0
    /// Followed once what is left of the body has been read.
    var redirect: Redirect?

    /// Known to end in this, once what is left of the body has been read.
    var doom: Failure?
    /// How the transport ended, when decoders are still to salvage what came.
    var failure: Failure?
    /// Attempts after the first.
    var retries = 0
    /// When it goes back into the queue, unless whoever asked for so short a wait has left.
    var restsUntil: Instant?
    /// Not before that, as its server has asked.
    var mayTryAgain = Instant(nanoseconds: 0)
    /// The part of each longest wait that is waited, as a part of all numbers.
    var jitter: UInt64 = 0
    /// What it is to be consulted about once its executor or its hooks have caught up.
    var heldConsultation: Consultation?
    /// It does nothing but wait for executors that are behind.
    var isHeldForExecutors = false
    /// Of its body, the bytes that count for the hooks it waits for.
    var owedBytes: Int64 = 0
    /// It is among those that wait for what a hook makes of their body.
    var isTransforming = false
    /// How much had come at the last look at its pace; -1: nobody has looked.
    var seenBytes: Int64 = -1
    /// It brings next to nothing while others wait for memory: from where, and the bytes that count for that.
    var isSlow = false
    var slowSource: Source?
    var slowBytes: Int64 = 0
    /// Milliseconds that it is behind `slowBytes` a second (Downloads+Drips).
    var behind: Int64 = 0
}

/// What the rules know of a subscriber that has timeouts, retries or progress.
struct SubscriberCourse {
    var clock = TotalClock.off
    /// The latest progress it was told of; -1 for none.
    var toldReceived: Int64 = -1
    var toldExpected: Int64 = -1
    /// Attempts after the first that it has asked for.
    var retries = 0
    /// When it would try again if it were alone.
    var restsUntil: Instant?
    /// Why it does not take the response that is being drained.
    var doom: Failure?
    var lastPartial: Instant?
}
