import Synchronization

/// The one thread that owns all mutable state of the pipeline. It carries events from the mailbox, the transport and
/// the clock to the rules, and performs the actions that come back. It decides nothing itself.
final class Engine: TransportEvents {
    let mailbox: Mailbox
    private let loop: EventLoop
    let clock: any Clock
    let codec: any ImageCodec
    private let store: any Store
    private let workers: WorkerPool
    private let ledger: MemoryLedger
    var transport: (any Transport)?
    var downloads: Downloads
    /// By slot of the rules' numbers.
    private var subscriptions: [Subscription?] = []
    private var active: [ActiveTransfer?] = []
    /// Answers that hooks gave inside the call that asked them: looked at when the actions before them are done.
    var promptReplies: [(id: TransferID, number: UInt32, reply: HookReply)] = []
    /// Of those that wait, too.
    var measurements: [TransferMeasurement?] = []
    let statistics = DownloaderStatistics()
    var observer: (any TransferObserver)?
    private var isShuttingDown = false
    private var isPerformingCommands = false
    private let isStopped = Atomic<Bool>(false)
    private let endLock = Lock()
    private let ended: Condition
    private var hasEnded = false

    init(
        limits: Limits, loop: EventLoop, mailbox: Mailbox, clock: any Clock, codec: any ImageCodec, store: any Store,
        workers: WorkerPool, ledger: MemoryLedger
    ) {
        var random = SystemRandomNumberGenerator()
        downloads = Downloads(limits, seed: random.next())
        ended = Condition(endLock)
        self.loop = loop
        self.mailbox = mailbox
        self.clock = clock
        self.codec = codec
        self.store = store
        self.workers = workers
        self.ledger = ledger
    }

    /// Before `run`.
    func attach(_ transport: any Transport) { self.transport = transport }

    /// Ends the thread as it stands, without a word to anybody: the process exits. Threads: any.
    func stop() {
        isStopped.store(true, ordering: .releasing)
        endLock.withLock { if !hasEnded { loop.wake() } }
    }

    /// False when the time is over first. Threads: any but the engine's.
    @discardableResult
    func waitUntilStopped(until deadline: Instant) -> Bool {
        endLock.withLock {
            while !hasEnded, ended.wait(until: deadline) {}
            return hasEnded
        }
    }

    /// The thread's body: until shut down and empty.
    func run() {
        while !isStopped.load(ordering: .acquiring) {
            performCommands()
            loop.forEachReady { [transport] descriptor, readable, writable in
                transport?.descriptorReady(descriptor, readable: readable, writable: writable)
            }
            let now = clock.now()
            if let deadline = transport?.deadline, deadline <= now { transport?.deadlineReached(now) }
            if let deadline = downloads.nextDeadline, deadline <= now {
                downloads.deadlineReached(now)
                performActions()
            }
            if isShuttingDown, downloads.subscriberCount == 0 { break }
            let deadline = [downloads.nextDeadline, transport?.deadline].compactMap { $0 }.min()
            loop.wait(until: deadline, now: now)
        }
        settle(mailbox.close(), isExiting: isStopped.load(ordering: .acquiring))
        transport?.close()
        transport = nil
        endLock.withLock {
            hasEnded = true
            ended.broadcast()
        }
    }

    /// Commands come before what bytes lead to: what a caller said before a transfer ended decides what starts next.
    private func performCommands() {
        guard !isPerformingCommands else { return }
        isPerformingCommands = true
        takeReleasedMemory()
        for command in mailbox.takeAll() { perform(command) }
        isPerformingCommands = false
    }

    private func perform(_ command: Command) {
        let now = clock.now()
        switch command {
        case .submit(let subscription):
            let (subscriber, transfer) = downloads.submit(subscription.request, subscription.options, now)
            subscription.subscriberID = subscriber
            subscription.transferID = transfer
            let slot = SlotTable<Subscription>.slot(subscriber)
            while subscriptions.count <= slot { subscriptions.append(nil) }
            subscriptions[slot] = subscription
            measure(subscription)
        case .cancel(let subscription): downloads.cancel(subscription.subscriberID, now)
        case .setPriority(let subscription, let priority): downloads.setPriority(subscription.subscriberID, priority)
        case .end(let subscriptions, let failure): end(subscriptions, failure)
        case .cancelAll: downloads.cancelAll(now)
        case .setMaximumConcurrent(let maximum): downloads.setMaximumConcurrent(maximum, now)
        case .setMaximumPerHost(let maximum): downloads.setMaximumPerHost(maximum, now)
        case .setOrder(let order): downloads.setOrder(order)
        case .setSuspended(let suspended):
            // A downloader that ends is not held up: its downloads were promised to run to their end.
            downloads.setSuspended(suspended && !isShuttingDown, now)
        case .enterBackground(let grace): if !isShuttingDown { downloads.enterBackground(grace: grace, now) }
        case .enterForeground: downloads.enterForeground(now)
        case .invalidate(let cancelling): downloads.invalidate(cancels: cancelling, now)
        case .reconfigure(let transport, let limits): reconfigure(transport, limits, now)
        case .memoryReleased: takeReleasedMemory()
        case .decodeStepped(let report): decodeStepped(report, now)
        case .answered(let id, let number, let reply): answered(id, number, reply, now)
        case .setObserver(let observer): replaceObserver(observer)
        case .perform(let work): work()
        case .shutDown(let cancelling):
            isShuttingDown = true
            // What waits must be able to end.
            downloads.setSuspended(false, now)
            downloads.enterForeground(now)
            if cancelling { downloads.cancelAll(now) }
        }
        performActions()
    }

    // MARK: Actions

    private func performActions() {
        performTakenActions()
        while !promptReplies.isEmpty {
            let (id, number, reply) = promptReplies.removeFirst()
            answered(id, number, reply, clock.now())
            performTakenActions()
        }
    }

    private func performTakenActions() {
        let actions = downloads.takeActions()
        // Before anybody is told of an end: whoever looks then sees it.
        ledger.note(inUse: downloads.memoryInUse, peak: downloads.memoryPeak)
        if !actions.isEmpty { noteLoad() }
        for action in actions { perform(action) }
        if downloads.isHeldBack, ledger.wakeOnReturn() { mailbox.post(.memoryReleased) }
    }

    private func takeReleasedMemory() {
        let bytes = ledger.take()
        guard bytes > 0 else { return }
        downloads.memoryReleased(bytes, clock.now())
        performActions()
    }

    /// The old transport ends with all that it carried; the next starts are the new one's.
    private func reconfigure(_ new: any Transport, _ limits: Limits, _ now: Instant) {
        downloads.reconfigure(limits, now)
        performActions()
        transport?.close()
        transport = new
    }

    private func perform(_ action: Action) {
        switch action {
        case .start(let id): start(id)
        case .follow(let id, let redirect): follow(id, redirect)
        case .authenticate(let id, let credential): authenticate(id, credential)
        case .ask(let id, let question): ask(id, question)
        case .setPriority(let id, let priority): transport?.setPriority(id, priority)
        case .setPaused(let id, let isPaused): transport?.setPaused(id, isPaused)
        case .restart(let id): transfer(id)?.reset()
        case .stop(let id): transport?.cancel(id)
        case .forget(let id):
            // One that never left the queue has none.
            if transfer(id) != nil { active[SlotTable<ActiveTransfer>.slot(id.rawValue)] = nil }
            measurements[SlotTable<ActiveTransfer>.slot(id.rawValue)] = nil
        case .reserve(let id, let variant, let bytes):
            transfer(id)?.addVariants(upTo: variant)
            transfer(id)?.variants[variant].charge = MemoryCharge(bytes, ledger)
        case .decode(let id, let variant, let step): decode(id, variant, step)
        case .emit(let subscriber, let notice): emit(subscriber, notice)
        case .end(let subscriber, let outcome): end(subscriber, outcome)
        case .observe(let id, let milestone, let subscribers): observe(id, milestone, subscribers)
        }
    }

    /// What is held of a transfer that leaves the queue.
    func open(_ id: TransferID) -> ActiveTransfer? {
        if let known = transfer(id) { return known }
        guard let request = downloads.request(id) else { return nil }
        let slot = SlotTable<ActiveTransfer>.slot(id.rawValue)
        while active.count <= slot { active.append(nil) }
        let opened = ActiveTransfer(request)
        active[slot] = opened
        return opened
    }

    private func start(_ id: TransferID) {
        guard let transfer = open(id) else { return }
        transfer.startHop(transfer.outgoing?.url ?? transfer.request.url, redirect: nil)
        observeStart(id)
        transport?.start(id, transportRequest(id, transfer))
    }

    private func follow(_ id: TransferID, _ redirect: Redirect) {
        guard let transfer = transfer(id) else { return }
        measureFollow(id)
        if let status = transfer.response?.head.status { transfer.hops.append(Hop(url: transfer.url, status: status)) }
        transfer.startHop(redirect.url, redirect: redirect)
        transport?.start(id, transportRequest(id, transfer))
    }

    private func authenticate(_ id: TransferID, _ credential: Credential) {
        guard let transfer = transfer(id) else { return }
        transfer.authentication = (transfer.url, credential)
        transfer.dropBody()
        transfer.startHop(transfer.url, redirect: transfer.redirect)
        transport?.start(id, transportRequest(id, transfer))
    }

    /// Of the hop that begins.
    private func transportRequest(_ id: TransferID, _ transfer: ActiveTransfer) -> TransportRequest {
        let request = transfer.request
        var next = TransportRequest(
            url: request.url, method: request.method, fields: request.fields, body: request.body,
            maximumHeaderBytes: downloads.limits.maximumHeaderBytes, credential: request.credential,
            usesCookies: request.usesCookies, tls: request.tls, priority: downloads.priority(id))
        if let outgoing = transfer.outgoing {
            next.url = outgoing.url
            next.method = outgoing.method
            next.fields = outgoing.fields
            next.body = outgoing.body
            let isElsewhere = !outgoing.url.isSameOrigin(as: request.url)
            next.credential = outgoing.url.credential ?? (isElsewhere ? nil : request.credential)
        }
        if let redirect = transfer.redirect { next = RedirectRules.request(for: redirect, of: next) }
        if let (origin, credential) = transfer.authentication, transfer.url.isSameOrigin(as: origin) {
            next.credential = credential
        }
        return next
    }

    private func emit(_ subscriber: SubscriberID, _ notice: Notice) {
        guard let subscription = subscriptions[SlotTable<Subscription>.slot(subscriber)],
            let transfer = transfer(subscription.transferID)
        else { return }
        switch notice {
        case .started: subscription.post(.started)
        case .response:
            if let response = transfer.response { subscription.post(.response(response, transfer.progress)) }
        case .header(let variant):
            if let header = transfer.variants[variant].header { subscription.post(.header(header, transfer.progress)) }
        case .progress(let received, let expected):
            subscription.post(.progress(Progress(received: received, expected: expected)))
        case .partial(let variant):
            if let image = transfer.variants[variant].image { subscription.post(.partial(image, transfer.progress)) }
        }
    }

    private func end(_ subscriber: SubscriberID, _ outcome: Outcome) {
        let slot = SlotTable<Subscription>.slot(subscriber)
        guard let subscription = subscriptions[slot] else { return }
        subscriptions[slot] = nil
        let transfer = transfer(subscription.transferID)
        var result: DownloadResult
        switch outcome {
        case .success(let variant):
            result = DownloadResult(failure: nil, message: "", response: transfer?.response)
            if let variant {
                result.image = transfer?.variants[variant].image
                subscription.pictureCharge = transfer?.variants[variant].charge
            }
            if subscription.options.wantsBody {
                result.body = transfer?.contiguousBody()
                subscription.bodyCharge = transfer.map { bodyCharge($0) }
                if result.body == nil {
                    result.failure = Failure(.outOfMemory, "no memory to hand over the body in one piece")
                }
            }
        case .failure(let failure, let salvaged):
            result = DownloadResult(failure: failure, message: "", response: transfer?.response)
            if let salvaged {
                result.image = transfer?.variants[salvaged].image
                subscription.pictureCharge = transfer?.variants[salvaged].charge
            }
        }
        if let transfer { result.progress = transfer.progress }
        result.contentType = result.response?.head.mediaType ?? ""
        result.metrics = measureEnd(subscription, result.code)
        if let failure = result.failure {
            if ResponseRules.showsBody(failure.code) { result.preview = transfer?.firstBytes() ?? [] }
            result.message = "\(subscription.request.url.redacted): \(failure.message)"
        }
        subscription.post(.terminal(result))
    }

    /// The body leaves with a terminal: its bytes count until the terminal has been delivered.
    private func bodyCharge(_ transfer: ActiveTransfer) -> MemoryCharge {
        if let charge = transfer.bodyCharge { return charge }
        let bytes = transfer.progress.received
        downloads.holdMemory(bytes)
        let charge = MemoryCharge(bytes, ledger)
        transfer.bodyCharge = charge
        return charge
    }

    // MARK: Decoding

    private func decode(_ id: TransferID, _ variant: Int, _ step: DecodeStep) {
        guard let transfer = transfer(id), let options = downloads.decodeOptions(id, variant: variant) else { return }
        transfer.addVariants(upTo: variant)
        let session =
            transfer.variants[variant].session
            ?? DecodeSession(
                codec.makeDecoder(options), transfer.variants[variant].charge, attempt: transfer.attempt, clock: clock)
        transfer.variants[variant].session = session
        let slices = transfer.takeNewBytes(for: session)
        let isTaken = workers.submit(downloads.priority(id)) { [mailbox] in
            mailbox.post(.decodeStepped(session.run(step, slices, transfer: id, variant: variant)))
        }
        if !isTaken {
            var report = DecodeReport(transfer: id, variant: variant, attempt: transfer.attempt)
            report.verdict = .failed(Failure(.outOfMemory, "no thread to decode on"))
            mailbox.post(.decodeStepped(report))
        }
    }

    private func decodeStepped(_ report: DecodeReport, _ now: Instant) {
        guard let transfer = transfer(report.transfer), downloads.request(report.transfer) != nil,
            report.attempt == transfer.attempt
        else { return }
        measureDecode(report)
        if let header = report.header { transfer.variants[report.variant].header = header }
        if let image = report.image { transfer.variants[report.variant].image = image }
        if report.verdict != .fed { transfer.variants[report.variant].session = nil }
        if case .failed = report.verdict { transfer.variants[report.variant].image = report.image }
        downloads.decodeStepped(
            report.transfer, variant: report.variant, report.verdict, hasHeader: report.header != nil,
            hasPartial: report.verdict == .fed && report.image != nil, now)
    }

    // MARK: Transport

    func transferConnected(_ id: TransferID) {
        downloads.connected(id, clock.now())
        performActions()
    }

    func transferSent(_ id: TransferID) { downloads.sent(id, clock.now()) }

    func transferReceived(_ id: TransferID, head: ResponseHead) -> BodyDisposition {
        guard let transfer = transfer(id) else { return .discard }
        measurement(id)?.update { $0.answer(head.httpVersion) }
        receive(head, of: transfer)
        _ = downloads.headReceived(
            id, head, location: location(head, transfer.url), retryAfter: retryAfter(head), clock.now())
        // A hook may answer at once: only then is it known what becomes of the body.
        performActions()
        return downloads.disposition(id)
    }

    /// The head as it came, or as a hook wants it taken.
    func receive(_ head: ResponseHead, of transfer: ActiveTransfer) {
        transfer.response = Response(url: transfer.url, head: head, hops: transfer.hops)
        transfer.expected = ResponseRules.expectedBytes(head)
    }

    func retryAfter(_ head: ResponseHead) -> Int64? { RetryRules.retryAfter(head, wallTime: clock.wallTime()) }

    func transferReceived(_ id: TransferID, body: UnsafeRawBufferPointer) {
        guard let transfer = transfer(id) else { return }
        if downloads.disposition(id) == .discard {
            // What is read of an unwanted body belongs to no picture.
            transfer.appendPreview(body)
            downloads.bodyReceived(id, body.count, clock.now())
            return performActions()
        }
        if let size = transfer.probe(body, codec) { downloads.probed(id, size) }
        if transfer.append(body) {
            measurement(id)?.setBodyBytes(Int(transfer.received))
            downloads.bodyReceived(id, body.count, clock.now())
        } else {
            transport?.cancel(id)
            downloads.failed(id, Failure(.outOfMemory, "no memory for the body"), clock.now())
        }
        performActions()
    }

    func transferFinished(_ id: TransferID, _ times: TransferTimes) {
        performCommands()
        measureExchange(id, times)
        downloads.finished(id, clock.now())
        performActions()
    }

    func transferFailed(_ id: TransferID, _ failure: Failure, _ times: TransferTimes) {
        performCommands()
        measureExchange(id, times)
        downloads.failed(id, failure, clock.now())
        performActions()
    }

    private func location(_ head: ResponseHead, _ base: ParsedURL) -> Result<ParsedURL, Failure>? {
        guard RedirectRules.isRedirect(head.status), let reference = head.fields.first(named: "Location"),
            let transport
        else { return nil }
        return Result { () throws(Failure) in try transport.resolveReference(reference, against: base) }
    }

    func transfer(_ id: TransferID) -> ActiveTransfer? {
        let slot = SlotTable<ActiveTransfer>.slot(id.rawValue)
        return slot < active.count ? active[slot] : nil
    }
}
