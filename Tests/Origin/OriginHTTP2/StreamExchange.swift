import Origin

/// What carries a stream's steps.
protocol StreamCarrier {
    var signals: Signals { get }
    func sendHead(_ id: Int32, status: Int, headers: Headers) throws
    func sendBody(_ id: Int32, _ bytes: [UInt8]) throws
    func endBody(_ id: Int32) throws
    func resetAfterBody(_ id: Int32, _ code: HTTP2Error) throws
    func goAwayAfterBody(_ id: Int32, _ last: Int32?, _ code: HTTP2Error) throws
    func closeAfterBody(_ id: Int32)
    func sayGoodbyeAfterBody(_ id: Int32) throws
    func shutDownAfterBody(_ id: Int32) throws
    func refuseAfterBody(_ id: Int32, others: Bool, _ code: HTTP2Error, _ ending: ConnectionEnding) throws
}

/// How a connection ends.
package enum ConnectionEnding: CaseIterable, Sendable {
    /// It stays open.
    case none
    /// FIN without the goodbye of TLS.
    case shutDown
    /// close_notify, while TCP stays open.
    case goodbye
    case close
}

/// An exchange of HTTP/1.1 that takes the steps of a stream: RST for a reset, the end of keep-alive for a GOAWAY.
struct PlainStream: StreamCarrier {
    let exchange: Exchange
    var signals: Signals { exchange.signals }

    func sendHead(_ id: Int32, status: Int, headers: Headers) throws {
        var headers = headers
        let hasBody = status >= 200 && status != 204 && status != 304
        if hasBody, headers["Content-Length"] == nil { headers["Transfer-Encoding"] = "chunked" }
        try exchange.send(status: status, headers: headers)
    }

    func sendBody(_ id: Int32, _ bytes: [UInt8]) throws { try exchange.send(body: bytes) }
    func endBody(_ id: Int32) throws { try exchange.end() }
    func resetAfterBody(_ id: Int32, _ code: HTTP2Error) { exchange.reset() }
    func goAwayAfterBody(_ id: Int32, _ last: Int32?, _ code: HTTP2Error) { exchange.closeAfterwards() }
    func closeAfterBody(_ id: Int32) { exchange.close() }
    func sayGoodbyeAfterBody(_ id: Int32) { exchange.sayGoodbye() }
    func shutDownAfterBody(_ id: Int32) { exchange.shutDownSending() }
    func refuseAfterBody(_ id: Int32, others: Bool, _ code: HTTP2Error, _ ending: ConnectionEnding) { exchange.reset() }
}

/// One stream and the script that answers it, on a thread of its own.
/// Steps throw `ConnectionEnded` once the stream or its connection is closed; let it pass, it ends the script.
/// A step hands its frames to the connection's thread and returns; frames of one stream keep their order.
package final class StreamExchange: Scripted {
    package let request: Request
    private let carrier: any StreamCarrier

    init(_ request: Request, on carrier: some StreamCarrier) {
        self.request = request
        self.carrier = carrier
    }

    package var signals: Signals { carrier.signals }
    package var party: Signals.Party { .init(connection: request.connection, stream: request.stream) }

    /// The whole answer; adds content-length. HEAD gets no body.
    package func respond(_ status: Int = 200, headers: Headers = [:], body: [UInt8] = []) throws {
        var headers = headers
        if headers["content-length"] == nil, status != 204, status != 304 {
            headers.add("content-length", String(body.count))
        }
        try send(status: status, headers: headers)
        if request.method != "HEAD" { try send(body: body) }
        try end()
    }

    /// A HEADERS frame with exactly these headers. A status below 200 may be sent any number of times before the
    /// final one.
    package func send(status: Int, headers: Headers = [:]) throws {
        try carrier.sendHead(request.stream, status: status, headers: headers)
    }

    /// Body bytes, as DATA frames as the client's windows allow.
    package func send(body: some Collection<UInt8>) throws { try carrier.sendBody(request.stream, Array(body)) }

    /// END_STREAM.
    package func end() throws { try carrier.endBody(request.stream) }

    /// RST_STREAM, after the bytes that were sent before it.
    package func reset(_ code: HTTP2Error = .internalError) throws {
        try carrier.resetAfterBody(request.stream, code)
    }

    /// GOAWAY, after the bytes that this stream has sent before it. Streams above `lastStream` were not processed and
    /// are forgotten by this server; nil is the highest that has come. The connection stays open for the others.
    package func goAway(lastStream: Int32? = nil, code: HTTP2Error = .noError) throws {
        try carrier.goAwayAfterBody(request.stream, lastStream, code)
    }

    /// Closes the connection under all its streams, after the frames that this stream has sent before.
    package func close() { carrier.closeAfterBody(request.stream) }

    /// The goodbye of TLS (close_notify), after the frames that this stream has sent before: nothing follows, and TCP stays open.
    package func sayGoodbye() throws { try carrier.sayGoodbyeAfterBody(request.stream) }

    /// FIN without the goodbye of TLS, after the frames that this stream has sent before.
    package func shutDownSending() throws { try carrier.shutDownAfterBody(request.stream) }

    /// GOAWAY, which counts this stream, its RST_STREAM, and those of the others, too, if asked for, in one flight, after the
    /// bytes that this stream has sent before it; then the connection ends.
    package func refuse(others: Bool = false, code: HTTP2Error = .refusedStream, ending: ConnectionEnding) throws {
        try carrier.refuseAfterBody(request.stream, others: others, code, ending)
    }

    /// True when the client resets this stream or closes the connection before the deadline.
    package func waitForClientReset(until deadline: Deadline = .patient) -> Bool {
        waitForClientClose(until: deadline)
    }
}

extension StreamExchange: PictureExchange {
    package var isStream: Bool { true }
    package func respond(_ status: Int, text: String) throws { try respond(status, body: Array(text.utf8)) }
    package func sendHead(_ status: Int, _ headers: Headers) throws { try send(status: status, headers: headers) }
    package func sendBody(_ bytes: ArraySlice<UInt8>) throws { try send(body: bytes) }
    package func endBody() throws { try end() }
    package func breakOff() throws { try reset() }
}
