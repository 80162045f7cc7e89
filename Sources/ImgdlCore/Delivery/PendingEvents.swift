/// What waits to be delivered to one subscription. Most wait for their terminal alone, which needs nothing besides.
enum PendingEvents {
    case nothing
    case terminal(DownloadResult)
    case several(SeveralEvents)
    case steps(PendingSteps)

    /// The picture that the event takes the place of.
    mutating func add(_ event: DownloadEvent) -> DecodedImage? {
        switch self {
        case .nothing:
            if case .terminal(let result) = event {
                self = .terminal(result)
                return nil
            }
            if case .step(let step) = event {
                self = .steps(PendingSteps(step))
                return nil
            }
            let several = SeveralEvents()
            self = .several(several)
            return several.add(event)
        case .terminal:
            // Nothing comes after it.
            return nil
        case .several(let several): return several.add(event)
        case .steps(let steps):
            steps.add(event)
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

    var terminal: DownloadResult? {
        switch self {
        case .nothing: nil
        case .terminal(let result): result
        case .several(let several): several.terminal
        case .steps(let steps): steps.terminal
        }
    }

    mutating func takeFirst() -> DownloadEvent? {
        switch self {
        case .nothing: return nil
        case .terminal(let result):
            self = .nothing
            return .terminal(result)
        case .several(let several): return several.takeFirst()
        case .steps(let steps): return steps.takeFirst()
        }
    }
}

/// Steps of a batch that wait: each is told, and so is an event of its own. No more than it has requests.
final class PendingSteps {
    private var steps = Queue<BatchProgress>()
    private(set) var terminal: DownloadResult?

    init(_ first: BatchProgress) { steps.append(first) }

    func add(_ event: DownloadEvent) {
        switch event {
        case .step(let step): steps.append(step)
        case .terminal(let result): terminal = result
        default: preconditionFailure("a batch announces steps and its end alone")
        }
    }

    var isEmpty: Bool { steps.isEmpty && terminal == nil }

    func takeFirst() -> DownloadEvent? {
        if let step = steps.popFirst() { return .step(step) }
        return terminal.take().map { .terminal($0) }
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
    private(set) var terminal: DownloadResult?
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
        case .terminal(let result):
            terminal = result
            // The final picture takes the place of a partial one.
            return partial.take()
        case .step: preconditionFailure("a batch announces steps and its end alone")
        }
        return nil
    }

    var isEmpty: Bool {
        !isStarted && response == nil && header == nil && !hasProgress && partial == nil && terminal == nil
    }

    func takeFirst() -> DownloadEvent? {
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
        if let partial = partial.take() { return .partial(partial, latest) }
        return terminal.take().map { .terminal($0) }
    }

    private func note(_ progress: Progress) {
        if progress.received >= latest.received { latest = progress }
    }
}
