/// What the transport measured of one exchange (one hop of one attempt), in nanoseconds; 0 where there was none.
package struct TransferTimes: Equatable, Sendable {
    package var resolve: Int64 = 0
    package var connect: Int64 = 0
    package var tls: Int64 = 0
    /// From the request's end to the first byte of the answer.
    package var firstByte: Int64 = 0
    /// From the first byte to the last.
    package var body: Int64 = 0
    /// On the wire, heads included, Content-Encoding not undone.
    package var bytesReceived: Int64 = 0
    package var bytesSent: Int64 = 0
    package var isConnectionReused = false
    /// Of the server (or the proxy), numeric; empty before a connection.
    package var address = NumericAddress()

    package init() {}
}
