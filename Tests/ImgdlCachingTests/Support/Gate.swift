@testable import ImgdlCore

/// Holds whoever comes until it is opened.
final class Gate: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var isOpen = false
    private var held = 0

    init() { changed = Condition(lock) }

    func pass() {
        lock.withLock {
            held += 1
            changed.broadcast()
            while !isOpen { changed.wait() }
        }
    }

    func open() {
        lock.withLock {
            isOpen = true
            changed.broadcast()
        }
    }

    /// Whether somebody has come.
    func waitUntilHeld() -> Bool {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        return lock.withLock {
            while held == 0 { if !changed.wait(until: limit) { return false } }
            return true
        }
    }
}
