/// Where the time and the bytes of one download went, for one subscriber (features B24, K1, T26, R11). Nanoseconds; 0
/// where there was none. Of the last attempt, except where said.
package struct Metrics: Equatable, Sendable {
    /// 10, 11, 20; 0 before an answer.
    package var httpVersion: Int32 = 0
    /// From the request to the start of its transfer; 0 for one that joined later.
    package var queue: Int64 = 0
    package var resolve: Int64 = 0
    package var connect: Int64 = 0
    package var tls: Int64 = 0
    package var firstByte: Int64 = 0
    package var body: Int64 = 0
    /// From the start of the first attempt to the last byte, hops and waits included.
    package var transfer: Int64 = 0
    /// Work of a thread for this subscriber's decode options.
    package var decode: Int64 = 0
    /// From the request to its end, or to now.
    package var total: Int64 = 0
    /// On the wire, of all hops and attempts that the transport has reported.
    package var bytesReceived: Int64 = 0
    package var bytesSent: Int64 = 0
    /// Of the body, Content-Encoding undone.
    package var bodyBytes: Int64 = 0
    package var redirects: UInt32 = 0
    package var retries: UInt32 = 0
    package var isConnectionReused = false
    /// The transfer was there before the request.
    package var isShared = false
    /// Of the server, numeric; empty before a connection.
    package var address = NumericAddress()

    package init() {}
}
