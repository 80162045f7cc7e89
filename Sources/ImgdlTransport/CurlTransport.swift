import ImgdlCore
package final class ThreadedResolver: Resolver, @unchecked Sendable {
    package init(clock: any Clock) {}
    package func resolve(_ host: String, completion: @escaping @Sendable (Result<[String], Failure>) -> Void) {}
    package func close() {}
}
package final class CurlTransport: Transport {
    package init(configuration: TransportConfiguration, loop: any TransportLoop, events: any TransportEvents, clock: any Clock, resolver: any Resolver) throws(Failure) {}
    package func parse(_ url: String) throws(Failure) -> ParsedURL { fatalError() }
    package func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { fatalError() }
    package func start(_ id: TransferID, _ request: TransportRequest) {}
    package func cancel(_ id: TransferID) {}
    package func close() {}
    package var deadline: Instant? { nil }
    package func deadlineReached(_ now: Instant) {}
    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}
