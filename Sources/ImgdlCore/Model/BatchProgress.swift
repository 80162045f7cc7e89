/// How far a batch is (features F1).
package struct BatchProgress: Equatable, Sendable {
    /// Succeeded, failed or cancelled.
    package var finished = 0
    /// Of these; not the cancelled ones.
    package var failed = 0
    package var cancelled = 0
    package var total: Int

    package init(total: Int) { self.total = total }

    package var isFinished: Bool { finished == total }
}
