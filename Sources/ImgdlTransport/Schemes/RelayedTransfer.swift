import Glibc
import ImgdlCore

/// A transfer that a loader runs: takes its reports on any thread, and tells the engine on the engine's, in order.
final class RelayedTransfer: LoadReceiver, @unchecked Sendable {
    private enum Report {
        case connected
        case head(ResponseHead)
        case body([UInt8], taken: (@Sendable () -> Void)?)
        case end(Failure?)
    }

    /// What the loader may report next.
    private enum Stage {
        case head, body, nothing
    }

    /// Of a body that is paused, or comes faster than it is taken. Who can wait is told to.
    static let waitingBytesBeforeWait = 1 << 20
    /// Who cannot wait fails.
    static let maximumWaitingBytes = 64 << 20

    let id: TransferID
    private let hasBody: Bool
    private unowned let events: any TransportEvents
    private weak var loop: (any TransportLoop)?
    private let clock: any Clock
    private let isOver: (TransferID) -> Void

    private let lock = Lock()
    private let controlReturned: Condition
    // Under the lock:
    private var reported: [Report] = []
    private var isTellingPosted = false
    private var stage = Stage.head
    private var isHeard = true
    /// Bytes of pieces that have come and are not told yet, and of all that have come.
    private var waitingBytes = 0
    private var comeBytes: Int64 = 0
    /// The most that anybody takes, as far as is known here.
    private var bodyLimit = Int64.max
    /// A piece was refused, and its loader is to hear when it may come again.
    private var owesResume = false
    /// How many bytes would have come with the piece that was refused, which are more than `bodyLimit` allows.
    private var offeredBytes: Int64?
    private var isPaused = false
    /// Its body would hold more than may be held: it has ended in that, and nobody is told what waits of it.
    private var isCut = false
    private let waits: Bool
    /// The thread that calls its loader's controls at this moment.
    private var controller: pthread_t?

    // On the engine's thread:
    private var controls: LoadControls?
    /// Not told yet, from `position` on.
    private var untold: [Report] = []
    private var position = 0
    private var hasEnded = false
    private var status: Int32 = 0
    /// Bytes of the body that will come, where that can be held against it.
    private var announced: Int64?
    private var received: Int64 = 0
    private var isDiscarding = false
    /// Of `waitingBytes`, what the engine counts.
    private var toldHeld = 0
    private let begun: Instant
    private var firstByte: Instant?

    init(
        _ id: TransferID, _ request: TransportRequest, waits: Bool, loop: any TransportLoop,
        events: any TransportEvents, clock: any Clock, isOver: @escaping (TransferID) -> Void
    ) {
        self.id = id
        self.waits = waits
        hasBody = request.method != "HEAD"
        self.loop = loop
        self.events = events
        self.clock = clock
        self.isOver = isOver
        begun = clock.now()
        controlReturned = Condition(lock)
    }

    /// Engine's thread. Without a loader it fails.
    func begin(_ request: TransportRequest, with loader: (any SchemeLoader)?) {
        learnBodyLimit()
        lock.withLock { reported.append(.connected) }
        postTelling()
        guard let loader else {
            try? end(CurlURL.unsupported(request.url.scheme))
            return
        }
        var fields = request.fields
        if let credential = request.credential, fields.first(named: "Authorization") == nil {
            let pair = Base64.encoded(Array("\(credential.user):\(credential.password)".utf8))
            fields.append(HeaderField("Authorization", "Basic \(pair)"))
        }
        let outgoing = OutgoingRequest(url: request.url, method: request.method, fields: fields, body: request.body)
        controls = loader.start(outgoing, self)
    }

    // MARK: What the loader reports

    func receive(_ head: ResponseHead) throws(Failure) {
        try report(.head(head), at: .head, next: .body, "there is a response already")
    }

    func receive(_ body: [UInt8], taken: (@Sendable () -> Void)?) throws(Failure) {
        let verdict = lock.withLock { () -> Admission in
            guard isHeard, stage == .body else { return .taken }
            let verdict = admission(of: body.count)
            if verdict == .taken {
                waitingBytes += body.count
                comeBytes += Int64(body.count)
            } else if verdict == .later {
                owesResume = true
            }
            return verdict
        }
        switch verdict {
        case .taken: break
        case .later:
            // Where it is not paused the engine has it soon, and looks then.
            postTelling()
            throw Failure(.notReady, "as much of the body waits as may: the loader is called when it may go on")
        case .never:
            let failure = Failure(
                .bodyLimit,
                "more than \(Self.maximumWaitingBytes) bytes of the body wait to be taken: the loader does not wait for it"
            )
            try end(failure, cutting: true)
            throw failure
        }
        try report(
            .body(body, taken: taken), at: .body, next: .body, "a body comes after the response and before the end")
    }

    private enum Admission {
        case taken, later, never
    }

    /// Under the lock. A single piece is as long as its host likes, where somebody takes as much.
    private func admission(of count: Int) -> Admission {
        guard waits else {
            return waitingBytes == 0 || waitingBytes + count <= Self.maximumWaitingBytes ? .taken : .never
        }
        // As a rule it fits, and nothing has to be added up from what others say.
        if waitingBytes + count <= Self.waitingBytesBeforeWait { return .taken }
        if Int64(count) > bodyLimit - comeBytes {
            offeredBytes = comeBytes + Int64(count)
            return .later
        }
        return waitingBytes > 0 || isPaused ? .later : .taken
    }

    func end(_ failure: Failure?) throws(Failure) { try end(failure, cutting: false) }

    /// A failure may come in place of the response.
    private func end(_ failure: Failure?, cutting: Bool) throws(Failure) {
        let (isInOrder, isHeard) = lock.withLock { () -> (Bool, Bool) in
            // Under one lock with the new stage: no control begins in between.
            while let controller, pthread_equal(controller, pthread_self()) == 0, !HostCode.isAbandoned {
                _ = controlReturned.wait(until: clock.now().advanced(byMilliseconds: Int64(HostCode.lookMilliseconds)))
            }
            guard stage == .body || (stage == .head && failure != nil) else { return (false, false) }
            stage = .nothing
            if cutting { isCut = true }
            if self.isHeard { reported.append(.end(failure)) }
            return (true, self.isHeard)
        }
        guard isInOrder else { throw Failure(.invalidOperation, "a transfer ends once, after its response") }
        if isHeard { postTelling() }
    }

    private func report(_ report: Report, at expected: Stage, next: Stage, _ problem: String) throws(Failure) {
        let (isInOrder, isHeard) = lock.withLock { () -> (Bool, Bool) in
            guard stage == expected else { return (false, false) }
            stage = next
            if self.isHeard { reported.append(report) }
            return (true, self.isHeard)
        }
        guard isInOrder else { throw Failure(.invalidOperation, problem) }
        if isHeard { postTelling() }
    }

    private func postTelling() {
        let isNew = lock.withLock {
            defer { isTellingPosted = true }
            return !isTellingPosted
        }
        if isNew { loop?.perform { [self] in tell() } }
    }

    // MARK: What the engine asks

    func setPaused(_ isPaused: Bool) {
        lock.withLock { self.isPaused = isPaused }
        guard !isPaused else { return }
        // What it waited for may have told whose body it is.
        if !hasEnded { learnBodyLimit() }
        postTelling()
    }

    /// Nothing is told any more. `givingUp`: and its loader hears of it, unless it has reported the end.
    func finish(givingUp: Bool) {
        guard !hasEnded else { return }
        hasEnded = true
        untold = []
        let controls = controls
        self.controls = nil
        isOver(id)
        lock.withLock {
            isHeard = false
            owesResume = false
            reported = []
        }
        if givingUp, let cancel = controls?.cancel { control(cancel) }
    }

    /// Calls the loader, unless it has reported the end; `end` waits for it on another thread.
    private func control(_ function: () -> Void) {
        let isEnded = lock.withLock { () -> Bool in
            if stage != .nothing { controller = pthread_self() }
            return stage == .nothing
        }
        guard !isEnded else { return }
        function()
        lock.withLock {
            controller = nil
            controlReturned.broadcast()
        }
    }

    /// What was refused may come again, once nothing waits any more.
    private func resumeLoader() {
        let isDue = lock.withLock { () -> Bool in
            guard owesResume, !isPaused, waitingBytes == 0, stage == .body else { return false }
            owesResume = false
            return true
        }
        if isDue, let resume = controls?.resume { control(resume) }
    }

    /// What was refused is to come again, and may be more than anybody takes: that is so whether it is paused or not.
    private func weighOffer() {
        let offered = lock.withLock { () -> Int64? in
            defer { offeredBytes = nil }
            return stage == .body ? offeredBytes : nil
        }
        guard let offered else { return }
        let limit = learnBodyLimit()
        if offered > limit { fail(ResponseRules.bodyLimit(limit, announced: nil)) }
    }

    @discardableResult
    private func learnBodyLimit() -> Int64 {
        let limit = events.bodyLimit(id)
        lock.withLock { bodyLimit = limit }
        return limit
    }

    // MARK: What the engine is told

    private func tell() {
        let (new, isCut) = lock.withLock { () -> ([Report], Bool) in
            isTellingPosted = false
            defer { reported = [] }
            return (reported, self.isCut)
        }
        guard !hasEnded else { return }
        untold += new
        if isCut { dropBody() }
        while !hasEnded, position < untold.count {
            if case .body = untold[position], lock.withLock({ isPaused }) {
                tellHeld()
                break
            }
            let report = untold[position]
            untold[position] = .connected
            position += 1
            tell(report)
        }
        if position == untold.count || hasEnded {
            untold = []
            position = 0
        }
        if !hasEnded { weighOffer() }
        if !hasEnded { resumeLoader() }
    }

    private func dropBody() {
        untold = untold[position...].filter { if case .body = $0 { false } else { true } }
        position = 0
    }

    /// What is held, where that has changed.
    private func tellHeld() {
        let bytes = lock.withLock { waitingBytes }
        guard bytes != toldHeld else { return }
        toldHeld = bytes
        events.transferHolds(id, bytes, isEncoded: false)
    }

    private func tell(_ report: Report) {
        switch report {
        case .connected: events.transferConnected(id)
        case .head(let head): tellHead(head)
        case .body(let bytes, let taken):
            lock.withLock { waitingBytes -= bytes.count }
            if toldHeld > 0 { tellHeld() }
            // It may have ended: as much as is held is more than anybody takes.
            if !hasEnded { tellBody(bytes) }
            if !hasEnded { taken?() }
        case .end(let failure):
            if let failure {
                fail(failure)
            } else if !isDiscarding, let announced, received < announced {
                fail(Failure(.truncated, "the body ends after \(received) of \(announced) bytes"))
            } else {
                succeed()
            }
        }
    }

    private func tellHead(_ head: ResponseHead) {
        firstByte = clock.now()
        status = head.status
        if hasBody, !head.isEncoded, head.status != 204, head.status != 304 { announced = head.contentLength }
        if case .discard = events.transferReceived(id, head: head) { isDiscarding = true }
        if !hasEnded { learnBodyLimit() }
    }

    private func tellBody(_ bytes: [UInt8]) {
        guard hasBody, !bytes.isEmpty else { return }
        var count = bytes.count
        if isDiscarding { count = min(count, BodyDisposition.previewBytes - Int(received)) }
        received += Int64(count)
        if let announced, received > announced {
            return fail(Failure(.protocolError, "the body is longer than the \(announced) bytes announced"))
        }
        bytes.withUnsafeBytes { events.transferReceived(id, body: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        // There is no connection to keep for others.
        if isDiscarding, received >= Int64(BodyDisposition.previewBytes), !hasEnded { succeed() }
    }

    private func succeed() {
        finish(givingUp: true)
        events.transferFinished(id, times)
    }

    private func fail(_ failure: Failure) {
        var failure = failure
        if failure.status == 0 { failure.status = status }
        finish(givingUp: true)
        events.transferFailed(id, failure, times)
    }

    private var times: TransferTimes {
        var times = TransferTimes()
        times.bytesReceived = received
        if let firstByte {
            times.firstByte = firstByte.nanoseconds - begun.nanoseconds
            times.body = clock.now().nanoseconds - firstByte.nanoseconds
        }
        return times
    }
}
