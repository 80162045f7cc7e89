/// Port: names to addresses. libcurl's own resolver starts a thread for each transfer and blocks the loop when a
/// resolving handle is removed (performance facts, "Names"), so look-ups are ours and curl is told the result.
package protocol Resolver: AnyObject, Sendable {
    /// Looks up; `completion` runs on any thread, once, with at least one numeric address (no brackets) or a failure
    /// `resolveFailed`. Look-ups of the same name at the same time are one.
    func resolve(_ host: String, completion: @escaping @Sendable (Result<[String], Failure>) -> Void)
    /// Completes what is waiting with `shutDown` and lets the workers end; does not wait for a look-up in the kernel.
    func close()
}
