/// What waits to be delivered to one subscription. Most wait for their terminal alone, which needs nothing besides.
enum PendingEvents: ~Copyable {
    case nothing
    case terminal(Terminal)
    case several(SeveralEvents)
    case steps(PendingSteps)

    /// The picture that the event takes the place of.
    mutating func add(_ event: DownloadEvent) -> DecodedImage? {
        switch consume self {
        case .nothing:
            if case .step(let step) = event {
                self = .steps(PendingSteps(step))
                return nil
            }
            let several = SeveralEvents()
            self = .several(several)
            return several.add(event)
        case .terminal(let terminal):
            // Nothing comes after it.
            self = .terminal(terminal)
            return nil
        case .several(let several):
            self = .several(several)
            return several.add(event)
        case .steps(let steps):
            self = .steps(steps)
            steps.add(event)
            return nil
        }
    }

    /// The picture that it takes the place of.
    mutating func add(_ terminal: consuming Terminal) -> DecodedImage? {
        switch consume self {
        case .nothing:
            self = .terminal(terminal)
            return nil
        case .terminal: preconditionFailure("a request has one terminal")
        case .several(let several):
            self = .several(several)
            return several.end(terminal)
        case .steps(let steps):
            self = .steps(steps)
            steps.end(terminal)
            return nil
        }
    }

    var isEmpty: Bool {
        switch self {
        case .nothing: true
        case .terminal: false
        case .several(let several): several.isEmpty
        case .steps(let steps): steps.isEmpty
        }
    }

    /// The rest is for nobody.
    consuming func onlyTerminal() -> Terminal? {
        switch consume self {
        case .nothing: nil
        case .terminal(let terminal): terminal
        case .several(let several): several.takeTerminal()
        case .steps(let steps): steps.takeTerminal()
        }
    }

    mutating func takeFirst() -> PendingEvent? {
        switch consume self {
        case .nothing:
            self = .nothing
            return nil
        case .terminal(let terminal):
            self = .nothing
            return .terminal(terminal)
        case .several(let several):
            self = .several(several)
            return several.takeFirst()
        case .steps(let steps):
            self = .steps(steps)
            return steps.takeFirst()
        }
    }
}

/// An event, or the terminal, that is taken to be delivered.
enum PendingEvent: ~Copyable {
    case event(DownloadEvent)
    case terminal(Terminal)
}

/// Steps of a batch that wait: each is told, and so is an event of its own. No more than it has requests.
final class PendingSteps {
    private var steps = Queue<BatchProgress>()
    private var terminal: Terminal?

    init(_ first: BatchProgress) { steps.append(first) }

    func add(_ event: DownloadEvent) {
        guard case .step(let step) = event else { preconditionFailure("a batch announces steps and its end alone") }
        steps.append(step)
    }

    func end(_ terminal: consuming Terminal) { self.terminal = consume terminal }

    func takeTerminal() -> Terminal? { terminal.take() }

    var isEmpty: Bool { steps.isEmpty && !hasEnded }

    private var hasEnded: Bool {
        switch terminal {
        case .none: false
        case .some: true
        }
    }

    func takeFirst() -> PendingEvent? {
        if let step = steps.popFirst() { return .event(.step(step)) }
        if let terminal = terminal.take() { return .terminal(terminal) }
        return nil
    }
}

/// One of each kind at most, newer progress and newer partial images in place of older ones. A slow subscriber never
/// makes a queue grow. HEADER, PROGRESS and PARTIAL tell the newest progress there is when they are taken, so that the
/// numbers do not go back; RESPONSE begins anew.
final class SeveralEvents {
    private var isStarted = false
    private var response: (Response, Progress)?
    private var header: ImageHeader?
    private var hasProgress = false
    private var partial: DecodedImage?
    private var terminal: Terminal?
    private var latest = Progress()

    /// The partial picture that is not delivered any more.
    func add(_ event: DownloadEvent) -> DecodedImage? {
        switch event {
        case .started: isStarted = true
        case .response(let response, let progress):
            self.response = (response, progress)
            // Of an earlier attempt.
            header = nil
            return partial.take()
        case .header(let header, let progress):
            self.header = header
            note(progress)
        case .progress(let progress):
            hasProgress = true
            note(progress)
        case .partial(let image, let progress):
            note(progress)
            let displaced = partial
            partial = image
            return displaced
        case .step: preconditionFailure("a batch announces steps and its end alone")
        }
        return nil
    }

    /// The partial picture, whose place the final one takes.
    func end(_ terminal: consuming Terminal) -> DecodedImage? {
        self.terminal = consume terminal
        return partial.take()
    }

    func takeTerminal() -> Terminal? { terminal.take() }

    var isEmpty: Bool {
        !isStarted && response == nil && header == nil && !hasProgress && partial == nil && !hasEnded
    }

    private var hasEnded: Bool {
        switch terminal {
        case .none: false
        case .some: true
        }
    }

    func takeFirst() -> PendingEvent? {
        if let event = takeEvent() { return .event(event) }
        if let terminal = terminal.take() { return .terminal(terminal) }
        return nil
    }

    private func takeEvent() -> DownloadEvent? {
        if isStarted {
            isStarted = false
            return .started
        }
        if let (response, progress) = response.take() { return .response(response, progress) }
        if let header = header.take() { return .header(header, latest) }
        if hasProgress {
            hasProgress = false
            return .progress(latest)
        }
        return partial.take().map { .partial($0, latest) }
    }

    private func note(_ progress: Progress) {
        if progress.received >= latest.received { latest = progress }
    }
}
