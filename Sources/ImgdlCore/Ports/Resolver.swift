/// One wish for the addresses of a name. Later ones are greater; none is used again by its resolver.
package struct LookUpID: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static func < (left: LookUpID, right: LookUpID) -> Bool { left.rawValue < right.rawValue }
}

/// Port: names to addresses. libcurl's own resolver starts a thread for each transfer and blocks the loop when a
/// resolving handle is removed (performance facts, "Names"), so look-ups are ours and curl is told the result.
///
/// Threads: `completion` may be called on any. The rest is called on the engine's thread alone.
package protocol Resolver: AnyObject {
    typealias Completion = @Sendable (Result<[String], Failure>) -> Void

    /// Looks up; `completion` runs once, with at least one numeric address (no brackets) or a failure `resolveFailed`.
    /// Look-ups of the same name at the same time are one. nil where it has run inside the call.
    func resolve(_ host: String, completion: @escaping Completion) -> LookUpID?
    /// Nobody waits for it any more: its completion is dropped, unless it is running already. A name that nobody waits
    /// for leaves its place to others.
    func abandon(_ id: LookUpID)
    /// What was found out is forgotten, and what can be asked anew is: answers may come from another network.
    func networkChanged()
    /// Completes what is waiting with `shutDown`; waits for no look-up. Descriptors are closed, threads end.
    func close()

    /// For resolvers with descriptors in the transport's loop: as of a `Transport`. They have some, and a deadline, only
    /// while somebody waits.
    var deadline: Instant? { get }
    func deadlineReached(_ now: Instant)
    /// False: it is not one of the resolver's.
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) -> Bool
}
