/// What is known of one exchange of a transfer with the cache: what was decided, what the decision is about, and the
/// body on its way into the store. The engine's thread alone.
final class CacheExchange {
    enum Plan {
        /// Nothing that is stored is of use. `stores`: the answer may be kept.
        case fetch(stores: Bool)
        case validate(StoredEntry, StaleUse)
        /// With the bytes that are kept.
        case resume(StoredEntry, [BodySlice])
    }

    /// What takes the place of the server's answer.
    struct Replacement {
        let entry: StoredEntry
        let outcome: CacheOutcome
        /// It answers this once, and goes.
        var isLast = false
    }

    private enum End {
        case whole
        case broken
    }

    let key: String
    let question: CacheQuestion
    var request: CacheRequest { question.request }
    /// Entries under the key for who asks, about which the answer may say something.
    var known: [StoredEntry] = []
    var plan = Plan.fetch(stores: false)
    /// Fields that go to the server besides the request's.
    var added: [HeaderField] = []
    var replacement: Replacement?
    /// The context in which the request was sent; nil: its answer is not stored.
    var context: StoredContext?
    /// What the store knew when the request was sent; nil: it was not sent, or there is none.
    private var requestMark: RequestMark?
    /// What had been removed before it was looked for what is stored; nil: there is no store.
    private let removalMark: RemovalMark?
    /// The moment in which the store was searched (`OutdatedURLs`).
    let moment: UInt64
    /// Seconds since 1970; `fractions` has what is missing of them.
    private(set) var requestTime: Int64 = 0
    private(set) var responseTime: Int64 = 0
    private var fractions = TimeFractions(request: 0, response: 0)
    /// As the server sent it, or made whole of a part of it.
    var head: ResponseHead?
    /// What the transfer plays, or what has become of what it received.
    var entry: StoredEntry?
    /// What is made of it, or of what is looked for.
    var images: (any ExpectedImages)?
    /// The body that was stored when the exchange began, for who wants to hear only of a change.
    var snapshot: [BodySlice]?
    var snapshotCharge: MemoryCharge?

    private var writer: (any StoreWriter)?
    private var store: (any Store)?
    private var stored: StoredResponse?
    private var written = 0
    private var end: End?
    /// A decoder has found no whole picture in what comes.
    private var isUndecodable = false
    /// As its head came, nobody waited for it.
    var isUnattended = false

    /// `moment`: of the look-up (`OutdatedURLs`).
    init(key: String, _ question: CacheQuestion, _ store: (any Store)?, at moment: UInt64) {
        self.key = key
        self.question = question
        self.moment = moment
        removalMark = store?.removalMark(key)
    }

    deinit { writer?.abandon() }

    /// Where the server is to be asked without regard to what is stored.
    func forget() {
        plan = .fetch(stores: true)
        added = []
        replacement = nil
    }

    /// Nothing that is stored has a part in it any more. Whether the answer may be stored stays as it was.
    func forgetStored() {
        switch plan {
        case .fetch: break
        case .validate, .resume:
            forget()
            added = question.refreshing
        }
        known = []
    }

    /// The moment of what was found, where that has a part in what comes.
    var storedMoment: UInt64? {
        if case .resume = plan { return moment }
        return snapshot == nil ? nil : moment
    }

    /// How much had been removed when what comes, or is played, was asked for; nil: nothing was asked for yet.
    var removals: RemovalMark? { requestMark?.removals ?? (entry == nil ? nil : removalMark) }

    /// It was sent as somebody else than what is stored was chosen for: with another cookie, say.
    var isAnsweredToAnother: Bool { context != question.request.context }

    /// An answer of this status means nothing without what is stored.
    func leansOnStored(_ status: Int32) -> Bool {
        switch plan {
        case .fetch: false
        case .validate: status == 304
        case .resume: status == 206 || status == 304 || status == 412 || status == 416
        }
    }

    /// The request is sent, or sent again. `now`: microseconds since 1970, as in the next.
    func begin(_ now: Int64, _ context: StoredContext?, _ store: (any Store)?) {
        self.context = context
        requestMark = store?.requestMark(key)
        // What was found goes into what is stored.
        if case .resume = plan, let removalMark { requestMark?.removals = removalMark }
        (requestTime, fractions.request) = Self.parts(now)
        head = nil
        end = nil
        written = 0
        isUndecodable = false
    }

    func receive(_ head: ResponseHead, _ now: Int64) {
        (responseTime, fractions.response) = Self.parts(now)
        self.head = head
    }

    /// The answer as the rules have made it, with its times as fine as they are known.
    func timed(_ response: StoredResponse) -> StoredResponse {
        var timed = response
        guard timed.requestTime == requestTime, timed.responseTime == responseTime else { return timed }
        timed.fractions = fractions
        return timed
    }

    /// Also of a clock that stands before 1970.
    private static func parts(_ microseconds: Int64) -> (seconds: Int64, fraction: Int64) {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        return remainder < 0 ? (quotient - 1, remainder + 1_000_000) : (quotient, remainder)
    }

    // MARK: Storing

    var requestSent: CacheRequest {
        var sent = request
        sent.context = context
        return sent
    }

    /// Begins to store the response; true when its body is wanted.
    func beginWriting(_ store: any Store, isRedirect: Bool) -> Bool {
        guard writer == nil, entry == nil, request.method == "GET", let head, let requestMark else { return false }
        if case .fetch(stores: false) = plan { return false }
        guard
            let stored = CacheRules.stored(
                requestSent, head, requestTime: requestTime, responseTime: responseTime)
        else { return false }
        var response = timed(stored)
        let writer = store.write(key, response, since: requestMark)
        self.store = store
        guard isRedirect else {
            self.writer = writer
            self.stored = response
            return writer != nil
        }
        // Whoever follows it has no use for its body, and nobody waits for it.
        response.extent = .headAlone
        response.bodyLength = 0
        if let writer { finish(writer, response) }
        return false
    }

    @discardableResult
    private func finish(_ writer: any StoreWriter, _ response: StoredResponse) -> Bool {
        guard writer.finish(response) else { return false }
        if !known.isEmpty, let store { settleOvertaken(by: writer.isLost ? nil : response, store) }
        return true
    }

    /// `response`: what is stored of the answer; nil: nothing is.
    private func settleOvertaken(by response: StoredResponse?, _ store: any Store) {
        guard let head else { return }
        let overtaken = CacheRules.overtaken(
            known, by: head, for: requestSent, stored: response, isUnattended: isUnattended)
        for overtaken in overtaken {
            switch overtaken {
            case .removed(let id): store.remove(id)
            case .madeStale(let entry):
                let stale = CacheRules.overtaken(entry.response, at: responseTime)
                store.update(entry.id, stale, of: entry.response.version)
            }
        }
        known = []
    }

    /// By an answer that nothing is stored of, and by one that ends as an error where nobody takes it.
    func settleOvertaken(_ store: any Store) {
        guard !known.isEmpty, let head else { return }
        if case .fetch(stores: false) = plan { return }
        let isStored =
            head.status < 400
            && CacheRules.stored(requestSent, head, requestTime: requestTime, responseTime: responseTime) != nil
        if !isStored { settleOvertaken(by: nil, store) }
    }

    /// A server may send a body byte by byte: the store gets it in pieces of so many bytes, but for the last.
    private static let pieceBytes = 16 << 10

    /// Writes what has come of the body since the last time, if that is enough for a piece.
    func write(_ transfer: ActiveTransfer) {
        guard transfer.body.count - written >= Self.pieceBytes else { return }
        writeAll(transfer)
    }

    private func writeAll(_ transfer: ActiveTransfer) {
        guard let writer, transfer.body.count > written else { return }
        writer.append(transfer.body.slices(from: written))
        written = transfer.body.count
    }

    /// The transport has ended; where it is not known yet whether the response is wanted, `settle` follows.
    func end(isWhole: Bool, _ transfer: ActiveTransfer) {
        end = isWhole ? .whole : .broken
        settle(transfer)
    }

    /// Nothing more comes: what there is is stored, or kept to be resumed.
    func breakOff(_ transfer: ActiveTransfer) {
        if end == nil { end = .broken }
        settle(transfer)
    }

    func settle(_ transfer: ActiveTransfer) {
        guard let end, let writer, var response = stored else { return }
        writeAll(transfer)
        self.writer = nil
        switch end {
        case .whole:
            response.bodyLength = Int64(written)
            response.isUndecodable = isUndecodable
            // Such as a part of another length than its Content-Range says.
            guard response.isSound else { return writer.abandon() }
            let whole = StoredEntry(id: writer.id, response: response, mark: writer.mark)
            images?.areOf(new: whole)
            if finish(writer, response) { entry = whole } else { images = nil }
        case .broken:
            let beginning = head.flatMap {
                ResumeRules.beginning(
                    requestSent, $0, received: Int64(written), requestTime: requestTime, responseTime: responseTime)
            }
            // What no decoder reads is not worth going on with.
            if let beginning, !isUndecodable { writer.keep(timed(beginning)) } else { writer.abandon() }
        }
    }

    /// A decoder found no whole picture in the body. What broke off is judged by nobody.
    func doubt(_ consequence: DecodingRules.Consequence, _ store: any Store) {
        guard consequence != .none, end != .broken else { return }
        isUndecodable = true
        if case .resume(let beginning, _) = plan, entry == nil { store.remove(beginning.id) }
        guard let entry, entry.response.extent == .whole else { return }
        if consequence == .remove { return store.remove(entry.id) }
        guard !entry.response.isUndecodable else { return }
        var response = entry.response
        response.isUndecodable = true
        store.update(entry.id, response, of: entry.response.version)
        self.entry = entry.with(response)
    }
}

/// What one look into the store came to, whatever thread it was on.
final class CacheChoice: @unchecked Sendable {
    private let question: CacheQuestion
    private let wallTime: Int64
    /// Somebody has a use for the body.
    let needsBody: Bool
    /// Somebody wants to compare the body that is stored with what comes.
    let compares: Bool
    /// Nothing large is held for what waits.
    private let isQueued: Bool
    private(set) var decision = CacheDecision.forward(adding: [], stores: true)
    private var entries: [StoredEntry] = []
    /// It was looked for what the decision does not need.
    private(set) var isSnapshot = false
    private var wasAsked = false

    init(_ question: CacheQuestion, wallTime: Int64, needsBody: Bool, compares: Bool, isQueued: Bool) {
        self.question = question
        self.wallTime = wallTime
        self.needsBody = needsBody
        self.compares = compares
        self.isQueued = isQueued
    }

    /// Those that are stored for who asks.
    var entriesForAsker: [StoredEntry] { entries.filter(isForAsker) }

    private func isForAsker(_ entry: StoredEntry) -> Bool {
        VaryRules.matches(question.request, entry, entry.freshness(wallTime))
    }

    /// The server is not asked.
    var isAnswer: Bool { decision.isAnswer }

    /// Hands the decision over: it is large, and asked for once.
    func takeDecision() -> CacheDecision {
        var taken = CacheDecision.unavailable
        swap(&taken, &decision)
        return taken
    }

    /// What was said of a part of the store does not hold for the whole.
    func startOver() { wasAsked = false }

    /// A store that has nothing under the key may not have asked.
    func chooseIfNotAsked() { if !wasAsked { _ = choose([]) } }

    /// The whole store's.
    func choose(_ entries: [StoredEntry]) -> StoreChoice {
        wasAsked = true
        self.entries = entries
        let decided = CacheRules.decide(question, entries, wallTime: wallTime, wantsChange: compares)
        decision = decided
        isSnapshot = false
        switch decided {
        case .forward, .unavailable:
            guard compares else { return .nothing }
            let whole = entries.firstIndex { $0.response.extent == .whole && isForAsker($0) }
            return whole.map { snapshot($0) } ?? .nothing
        case .answer(let index, _, _, _): return .entry(index, withBody: needsBody)
        case .answerPart(let index, _, _, let range, _): return .entry(index, withBody: needsBody && range != nil)
        case .validate(let index, _, _): return compares ? snapshot(index) : .entry(index, withBody: false)
        case .resume(let index, _): return .entry(index, withBody: !isQueued)
        }
    }

    /// Of what is in memory: it can only answer.
    func chooseInMemory(_ entries: borrowing [StoredEntry]) -> StoreChoice {
        let choice = choose(copy entries)
        return decision.isAnswer ? choice : .nothing
    }

    private func snapshot(_ index: Int) -> StoreChoice {
        isSnapshot = true
        return .entry(index, withBody: !isQueued)
    }

    /// What the decision needs was not read, since there was no place to go on with it.
    var isTooLarge: Bool {
        guard isQueued else { return false }
        if case .resume = decision { return true }
        return isSnapshot
    }
}
