/// What arrived and when. A value: read it as long as you like, it does not change any more.
package struct Log: Sendable {
    package struct Arrival: Sendable {
        package var request: Request
        package var arrived: Moment
        /// When the last byte of the answer was handed to the kernel, or the connection or stream ended.
        package var finished: Moment?
        /// The client went away before the answer was complete.
        package var isAbandoned = false
        /// Body bytes that were handed to the kernel. A client that reads no more lets this stand still soon.
        package var bytesSent = 0
    }

    /// What TLS came to on one connection.
    package struct Handshake: Sendable {
        package var at: Moment
        /// By ALPN: h2 or http/1.1, nil where the client named none.
        package var protocolName: String?
        /// Of an earlier session, so that no certificate was shown.
        package var isResumed: Bool
        /// The common name of the client's certificate.
        package var clientName: String?
        /// SNI.
        package var serverName: String?
    }

    package struct Connection: Sendable {
        package var number: Int
        package var opened: Moment
        /// When either side closed it.
        package var closed: Moment?
        /// When the client closed it (FIN or RST), if it was the first to do so.
        package var closedByClient: Moment?
        /// How many requests it carried.
        package var requests = 0
        /// Once TLS is ready for requests; nil for cleartext, and where it came to nothing.
        package var handshake: Handshake?
        /// There are bytes for the client, and for a tenth of a second it has taken none.
        package var isHeldBack = false
        package var isOpen: Bool { closed == nil }
    }

    /// One stream of an HTTP/2 connection. HTTP/1 has none.
    package struct Stream: Sendable {
        package var connection: Int
        package var id: Int32
        package var opened: Moment
        package var closed: Moment?
        /// The error code of the client's RST_STREAM (CANCEL is 8).
        package var resetByClient: UInt32?
        /// The weights that the client gave it (RFC 7540 section 5.3), in order; none where it said nothing.
        package var weights: [Int32] = []
    }

    package var arrivals: [Arrival] = []
    /// In the order they were opened. Those which only asked control questions are left out.
    package var connections: [Connection] = []
    package var streams: [Stream] = []
    /// Requests whose answer is not complete yet.
    package var inFlight = 0
    package var maxInFlight = 0
    package var openConnections = 0
    /// The most connections that were open at once, of those that carried a request.
    package var maxOpenConnections = 0
    var counts: [String: Int] = [:]

    package init() {}

    package var requests: [Request] { arrivals.map(\.request) }
    package func requests(to path: String) -> [Request] {
        arrivals.lazy.map(\.request).filter { $0.path == path }
    }
    /// How many requests came for that path (without query).
    package func count(_ path: String) -> Int { counts[path] ?? 0 }
    package var countsPerPath: [String: Int] { counts }
    /// How many TLS handshakes came to their end.
    package var handshakes: Int { connections.lazy.filter { $0.handshake != nil }.count }
    package var connectionsClosedByClient: Int { connections.lazy.filter { $0.closedByClient != nil }.count }
    package func connection(_ number: Int) -> Connection? { connections.first { $0.number == number } }
    package func stream(_ id: Int32, on connection: Int) -> Stream? {
        streams.first { $0.id == id && $0.connection == connection }
    }
    package var streamsResetByClient: [Stream] { streams.filter { $0.resetByClient != nil } }
}
