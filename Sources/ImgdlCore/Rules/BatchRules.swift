/// When a batch's requests are begun, and how far the batch is (features F1–F5, R09). Requests are numbers from 0 and begin
/// in that order; each begins once or is cancelled before, and ends once.
package struct BatchRules {
    package private(set) var progress: BatchProgress
    private let width: Int
    /// Those before it have begun.
    private var next = 0
    private var running = 0
    private var isPaused = false
    private var isCancelled = false

    /// `width`: how many at a time, 1 at least.
    package init(count: Int, width: Int) {
        progress = BatchProgress(total: count)
        self.width = max(1, width)
    }

    /// Whether the next one begins now: ask until none does, after each event.
    package mutating func begin() -> Bool {
        guard !isPaused, !isCancelled, running < width, next < progress.total else { return false }
        running += 1
        next += 1
        return true
    }

    /// One has ended, begun or not.
    package mutating func ended(_ index: Int, _ code: ErrorCode) {
        if index < next { running -= 1 }
        progress.finished += 1
        switch code {
        case .ok: break
        case .cancelled: progress.cancelled += 1
        default: progress.failed += 1
        }
    }

    package mutating func setPaused(_ paused: Bool) { isPaused = paused }

    /// Begins no more. Whether there are some that have not begun, and so must be ended: false the second time.
    package mutating func cancelWaiting() -> Bool {
        guard !isCancelled else { return false }
        isCancelled = true
        return next < progress.total
    }
}
