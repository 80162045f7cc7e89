@testable import ImgdlCore

/// A random sequence of events, legal for a transport and for workers, told to the rules and to a witness.
struct RandomPlay {
    private var random: SeededGenerator
    private var downloads: Downloads
    private var witness: Witness
    private(set) var transcript: [String] = []
    private let paths: Int
    private var everybody: [SubscriberID] = []
    private var everyTransfer: [TransferID] = []
    private var latest: [TransferRequest: TransferID] = [:]

    init(seed: UInt64) {
        random = SeededGenerator(seed)
        var limits = Limits()
        limits.maximumConcurrent = Int.random(in: 1...5, using: &random)
        limits.order = Bool.random(using: &random) ? .fifo : .lifo
        limits.connectTimeout = [300, 5_000].randomElement(using: &random)!
        limits.idleTimeout = [200, 5_000].randomElement(using: &random)!
        limits.drainTimeout = [100, 1_000].randomElement(using: &random)!
        limits.maximumRedirects = Int.random(in: 0...3, using: &random)
        limits.maximumPerHost = Int.random(in: 0...2, using: &random)
        limits.agingInterval = [20, 400, 10_000].randomElement(using: &random)!
        limits.memoryBudget = [300, 2_000, 1 << 30].randomElement(using: &random)!
        limits.earlyDecodeBytes = [1, 50, 1_000].randomElement(using: &random)!
        paths = Int.random(in: 1...8, using: &random)
        downloads = Downloads(limits)
        witness = Witness(limits)
    }

    mutating func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
        try enterForeground()
        if Bool.random(using: &random) {
            for id in witness.liveSubscribers { witness.subscribers[id]!.wasCancelled = true }
            downloads.cancelAll(witness.now)
            try settle("cancelAll at the end")
        } else {
            try runToTheEnd()
        }
        while !witness.charges.isEmpty { try release(0) }
        guard downloads.memoryInUse == 0, witness.liveSubscribers.isEmpty, witness.liveTransfers.isEmpty, downloads.nextDeadline == nil else {
            throw Witness.Violation(text: "something is left at the end")
        }
    }

    /// Nobody cancels and nothing hangs: everybody must come to an end.
    private mutating func runToTheEnd() throws {
        witness.isSuspended = false
        downloads.setSuspended(false, witness.now)
        try settle("resume at the end")
        for _ in 0..<10_000 where !witness.liveSubscribers.isEmpty {
            if let id = witness.running.randomElement(using: &random) {
                try report(id)
            }
            try stepDecoder()
            try releaseMemory()
        }
    }

    private mutating func step() throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<16: try submit()
        case 16..<20: try cancel()
        case 20: if random.oneIn(4) { try cancelAll() }
        case 21..<24: try setPriority()
        case 24..<26: try changeDownloader()
        case 26..<76: if let id = witness.running.randomElement(using: &random) { try report(id) }
        case 76..<90: try stepDecoder()
        case 90..<96: try pass()
        case 96..<98: try releaseMemory()
        default: try reportStale()
        }
    }

    // MARK: Callers

    private mutating func submit() throws {
        var options = SubscriberOptions()
        options.events = EventMask(rawValue: UInt32.random(in: 0..<64, using: &random))
        options.priority = Priority.allCases.randomElement(using: &random)!
        options.decode = random.oneIn(4) ? nil : .number(UInt64.random(in: 0..<3, using: &random))
        options.salvages = random.oneIn(3)
        options.acceptsAnyStatus = random.oneIn(4)
        options.partialInterval = [0, 50, 300].randomElement(using: &random)!
        if random.oneIn(4) { options.totalTimeout = [50, 500].randomElement(using: &random)! }
        if random.oneIn(4) { options.maximumBodyBytes = [0, 20, 200].randomElement(using: &random)! }
        options.continuesInBackground = random.oneIn(3)
        let path = Int.random(in: 0..<paths, using: &random)
        let request = TransferRequest(
            url: testURL("https://\(["a", "b", "c"][path % 3]).example/\(path)"),
            method: random.oneIn(8) ? ["HEAD", "POST"].randomElement(using: &random)! : "GET",
            followsRedirects: !random.oneIn(8))
        let (subscriber, id) = downloads.submit(request, options, witness.now)
        if let joined = witness.transfers[id] {
            if !joined.isJoinable || request.method == "POST" {
                throw Witness.Violation(text: "joined what cannot be joined")
            }
        } else {
            if let latest = latest[request], request.method != "POST", witness.transfers[latest]!.isJoinable {
                throw Witness.Violation(text: "a second transfer of the same bytes")
            }
            latest[request] = id
            everyTransfer.append(id)
        }
        var record = Witness.SubscriberRecord(options: options, transfer: id, priority: options.priority)
        record.variant = downloads.subscribers.get(subscriber)?.variant
        witness.accept(subscriber, record)
        witness.transfers[id]!.host = HostAndPort(request.url)
        everybody.append(subscriber)
        try settle("submit \(request.method) \(path) as \(name(subscriber)) of \(name(id)), \(options)")
    }

    private mutating func cancel() throws {
        guard let subscriber = everybody.suffix(30).randomElement(using: &random) else { return }
        if !witness.subscribers[subscriber]!.hasEnded { witness.subscribers[subscriber]!.wasCancelled = true }
        downloads.cancel(subscriber, witness.now)
        try settle("cancel \(name(subscriber))")
    }

    private mutating func cancelAll() throws {
        for id in witness.liveSubscribers { witness.subscribers[id]!.wasCancelled = true }
        downloads.cancelAll(witness.now)
        try settle("cancelAll")
    }

    private mutating func setPriority() throws {
        guard let subscriber = everybody.suffix(30).randomElement(using: &random) else { return }
        let priority = Priority.allCases.randomElement(using: &random)!
        witness.subscribers[subscriber]!.priority = priority
        downloads.setPriority(subscriber, priority)
        try settle("\(name(subscriber)) gets priority \(priority)")
    }

    private mutating func changeDownloader() throws {
        switch Int.random(in: 0..<8, using: &random) {
        case 4:
            let grace = ([nil, 5, 100] as [Int64?]).randomElement(using: &random)!
            witness.isInBackground = true
            witness.isGraceOver = false
            downloads.enterBackground(grace: grace, witness.now)
            try settle("background, grace \(grace as Any)")
        case 5, 6: try enterForeground()
        case 7:
            witness.limits.maximumPerHost = Int.random(in: 0...3, using: &random)
            downloads.setMaximumPerHost(witness.limits.maximumPerHost, witness.now)
            try settle("width for each host \(witness.limits.maximumPerHost)")
        case 0:
            witness.limits.maximumConcurrent = Int.random(in: 1...6, using: &random)
            downloads.setMaximumConcurrent(witness.limits.maximumConcurrent, witness.now)
            try settle("width \(witness.limits.maximumConcurrent)")
        case 1:
            downloads.setOrder(Bool.random(using: &random) ? .fifo : .lifo)
            try settle("order \(downloads.limits.order)")
        default:
            witness.isSuspended = !witness.isSuspended && random.oneIn(2)
            downloads.setSuspended(witness.isSuspended, witness.now)
            try settle("suspended \(witness.isSuspended)")
        }
    }

    private mutating func enterForeground() throws {
        witness.isInBackground = false
        witness.isGraceOver = false
        downloads.enterForeground(witness.now)
        try settle("foreground")
    }

    // MARK: Memory

    /// Somebody has looked enough at the picture of a transfer that is over.
    private mutating func releaseMemory() throws {
        let over = witness.charges.indices.filter { witness.transfers[witness.charges[$0].transfer]!.isForgotten }
        if let index = over.randomElement(using: &random) { try release(index) }
    }

    private mutating func release(_ index: Int) throws {
        let bytes = witness.release(index)
        downloads.memoryReleased(bytes, witness.now)
        try settle("\(bytes) bytes are released")
    }

    // MARK: The transport

    /// What may come next of a transfer.
    private mutating func report(_ id: TransferID) throws {
        let transfer = witness.transfers[id]!
        if random.oneIn(12) {
            ended(id, failed: true)
            downloads.failed(id, .lost, witness.now)
            try settle("\(name(id)) is lost")
        } else if transfer.transport == .connecting, !random.oneIn(4) {
            witness.transfers[id]!.transport = .receiving
            witness.transfers[id]!.since = witness.now
            downloads.connected(id, witness.now)
            try settle("\(name(id)) is connected")
        } else if !transfer.hasHead, !transfer.isDraining {
            try head(id)
        } else if random.oneIn(4) {
            ended(id, failed: false)
            downloads.finished(id, witness.now)
            try settle("\(name(id)) is finished")
        } else {
            guard !transfer.isTransportPaused else { return }
            let count = Int.random(in: 1...40, using: &random)
            if !transfer.isDraining, transfer.received == 0 || downloads.transfers[id].picture == .undecided {
                let (width, height) = (Int.random(in: 1...20, using: &random), Int.random(in: 1...20, using: &random))
                let sizes: [PictureSize] = [
                    .undecided, .unknown, .known(width: width, height: height, isProgressive: random.oneIn(3)),
                ]
                downloads.probed(id, sizes.randomElement(using: &random)!)
            }
            if !transfer.isDraining {
                witness.transfers[id]!.received += Int64(count)
                witness.transfers[id]!.since = witness.now
            }
            downloads.bodyReceived(id, count, witness.now)
            try settle("\(name(id)) receives \(count)")
        }
    }

    private mutating func ended(_ id: TransferID, failed: Bool) {
        witness.transfers[id]!.transport = .ended
        if failed { witness.transfers[id]!.failed = true } else { witness.transfers[id]!.finished = true }
    }

    private mutating func head(_ id: TransferID) throws {
        let status = ([200, 200, 200, 302, 302, 303, 307, 404, 304] as [Int32]).randomElement(using: &random)!
        let location: Result<ParsedURL, Failure>? =
            switch Int.random(in: 0..<8, using: &random) {
            case 0: nil
            case 1: .failure(Failure(.invalidURL, "no host"))
            case 2: .success(testURL("http://a.example/down"))
            default: .success(testURL("https://b.example/\(Int.random(in: 0..<20, using: &random))"))
            }
        let length = random.oneIn(3) ? Int64.random(in: 0...300, using: &random) : nil
        let head = ResponseHead(
            status: status, httpVersion: random.oneIn(4) ? 20 : 11, fields: [], contentLength: length, isEncoded: random.oneIn(9))
        witness.transfers[id]!.transport = .receiving
        witness.transfers[id]!.lastStatus = status
        witness.transfers[id]!.since = witness.now
        // Where it turns out to be a redirect, nobody is told of a response.
        witness.transfers[id]!.hasHead = true
        let disposition = downloads.headReceived(id, head, location: location, witness.now)
        if disposition == .discard, downloads.request(id) != nil {
            witness.transfers[id]!.isDraining = true
            if downloads.transfers[id].redirect != nil { witness.transfers[id]!.hasHead = false }
        }
        if witness.transfers[id]!.hasHead, let request = downloads.request(id) {
            let isRefused = ResponseRules.failure(status: status, request: request) != nil
            witness.transfers[id]!.isClosed = isRefused || witness.transfers[id]!.isDraining
        }
        try settle("\(name(id)) answers \(status): \(disposition)")
    }

    /// Reports that come too late, of transfers and decoders that are over.
    private mutating func reportStale() throws {
        let over = everyTransfer.suffix(40).filter { witness.transfers[$0]!.isForgotten }
        guard let id = over.randomElement(using: &random) else { return }
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 3, isEncoded: false)
        downloads.connected(id, witness.now)
        guard downloads.headReceived(id, head, location: nil, witness.now) == .discard else {
            throw Witness.Violation(text: "receives for what is over")
        }
        downloads.bodyReceived(id, 3, witness.now)
        downloads.finished(id, witness.now)
        downloads.failed(id, .lost, witness.now)
        downloads.decodeStepped(id, variant: 0, .finished, hasHeader: true, hasPartial: true, witness.now)
        guard downloads.actions.isEmpty else { throw Witness.Violation(text: "acts for what is over") }
        try settle("reports of \(name(id)), which is over")
    }

    // MARK: Workers and time

    private mutating func stepDecoder() throws {
        let busy = everyTransfer.suffix(60).flatMap { id in
            witness.transfers[id]!.stepsInFlight.keys.sorted().map { (id: id, variant: $0) }
        }
        guard let (id, variant) = busy.randomElement(using: &random) else { return }
        let step = witness.transfers[id]!.stepsInFlight.removeValue(forKey: variant)!
        var verdict = random.oneIn(step == .salvage ? 2 : 10) ? DecodeVerdict.failed(.bad) : .finished
        if case .feed = step, verdict == .finished { verdict = .fed }
        if verdict != .fed { witness.transfers[id]!.endedVariants.insert(variant) }
        if case .failed = verdict { witness.transfers[id]!.isClosed = true }
        let hasPartial = step == .feed(showing: true) && verdict == .fed && !random.oneIn(3)
        let hasHeader =
            witness.transfers[id]!.headers.contains(variant) || hasPartial || verdict == .finished || random.oneIn(2)
        if hasHeader { witness.transfers[id]!.headers.insert(variant) }
        downloads.decodeStepped(
            id, variant: variant, verdict, hasHeader: hasHeader, hasPartial: hasPartial, witness.now)
        try settle("\(name(id)) variant \(variant) \(step): \(verdict), header \(hasHeader), partial \(hasPartial)")
    }

    /// Time passes, and the rules are called when they have asked to be.
    private mutating func pass() throws {
        let span = ([1, 10, 60, 400, 3_000] as [Int64]).randomElement(using: &random)!
        let end = witness.now.advanced(byMilliseconds: span)
        while let deadline = downloads.nextDeadline, deadline <= end {
            witness.now = max(witness.now, deadline)
            downloads.deadlineReached(witness.now)
            witness.isGraceOver = downloads.background?.isOver ?? false
            try settle("deadline", afterDeadlines: true)
            if let next = downloads.nextDeadline, next <= witness.now {
                throw Witness.Violation(text: "asks again for a time that has been dealt with")
            }
        }
        witness.now = end
        transcript.append("\(span) ms pass")
    }

    private mutating func settle(_ event: String, afterDeadlines: Bool = false) throws {
        transcript.append(event)
        for action in downloads.takeActions() {
            transcript.append("    \(describe(action))")
            try witness.see(action)
        }
        try witness.check(downloads, afterDeadlines: afterDeadlines)
    }

    // MARK: Names

    private func name(_ id: TransferID) -> String { "T\(id.rawValue & 0xFFFF_FFFF).\(id.rawValue >> 32)" }
    private func name(_ id: SubscriberID) -> String { "S\(id & 0xFFFF_FFFF).\(id >> 32)" }

    private func describe(_ action: Action) -> String {
        switch action {
        case .start(let id): "start \(name(id))"
        case .follow(let id, let redirect): "follow \(name(id)) \(redirect.method) \(redirect.url.canonical)"
        case .setPriority(let id, let priority): "hurry \(name(id)) \(priority)"
        case .setPaused(let id, let isPaused): "\(isPaused ? "pause" : "resume") \(name(id))"
        case .reserve(let id, let variant, let bytes): "reserve \(bytes) for \(name(id)) variant \(variant)"
        case .stop(let id): "stop \(name(id))"
        case .forget(let id): "forget \(name(id))"
        case .decode(let id, let variant, let step): "decode \(name(id)) variant \(variant) \(step)"
        case .emit(let subscriber, let notice): "tell \(name(subscriber)) \(notice)"
        case .observe(let id, let milestone, let subscribers): "observe \(name(id)) \(milestone) of \(subscribers)"
        case .end(let subscriber, .success(let variant)): "end \(name(subscriber)) success \(variant as Any)"
        case .end(let subscriber, .failure(let failure, let salvaged)):
            "end \(name(subscriber)) \(failure.code) \(failure.status) salvaged \(salvaged as Any)"
        }
    }
}
