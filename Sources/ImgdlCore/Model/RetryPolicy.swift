/// How often and when a subscriber wants its transfer tried again after what may pass (features B14).
package struct RetryPolicy: Equatable, Sendable {
    package static let defaultBase: Int64 = 500
    package static let defaultMaximum: Int64 = 60_000

    /// Attempts after the first; 0 for none.
    package var count = 0
    /// Milliseconds: the wait before the first is at random between 0 and this; it doubles with each.
    package var base = defaultBase
    /// Milliseconds: no wait is longer, whatever Retry-After says: a longer one ends the attempts.
    package var maximum = defaultMaximum

    package init() {}
}
