import Glibc
import Origin

/// A scripted HTTP/2 server on 127.0.0.1: over TLS with ALPN, or cleartext with prior knowledge.
/// A connection's thread speaks the protocol; each stream's script runs on a thread of its own, so that one stream
/// can stall while its siblings go on.
package final class HTTP2Origin: @unchecked Sendable {
    package typealias Script = (StreamExchange) throws -> Void

    package enum Security: Equatable, Sendable {
        case cleartext
        case tls(Certificate)
        /// With what else TLS has to offer.
        case secured(TLS)
        package static let tls = Security.tls(.valid)

        fileprivate var options: TLS? {
            switch self {
            case .cleartext: nil
            case .tls(let certificate): TLS(certificate)
            case .secured(let options): options
            }
        }
    }

    package var caFile: String? { authority?.file }
    /// Nil for cleartext. Its files are for clients: the authority to trust, the pin, certificates to show.
    package let authority: Authority?
    private let journal = Journal()
    private let signals = Signals()
    private let listener: Listener
    private let routes = Monitor(Routes<Script>())

    /// Of the connections that speak HTTP/1.1 whatever is offered.
    package let otherAuthority: Authority?

    /// `alsoHTTP1` answers clients that offer no h2 in HTTP/1.1, by the same scripts; the first `http1Connections` of
    /// their connections speak that in any case, as an older machine behind the same balancer would. Those that come after the
    /// first `secureConnections` are of cleartext, as where one port serves http and https.
    package init(
        port: UInt16 = 0, security: Security = .tls, alsoHTTP1: Bool = false, http1Connections: Int = 0,
        secureConnections: Int = .max, maxConcurrentStreams: Int = 100
    ) throws {
        let protocols = alsoHTTP1 ? ["h2", "http/1.1"] : ["h2"]
        authority = try security.options.map { try Authority($0, protocols: protocols) }
        otherAuthority = try http1Connections > 0 ? Authority(security.options ?? TLS(), protocols: ["http/1.1"]) : nil
        listener = try Listener(port: port, journal: journal, signals: signals)
        let script: (String) -> Script = { [routes] path in routes.read { $0[path] } ?? { try $0.respond(404) } }
        let conversation = Conversation(
            journal: journal, settings: { Settings() },
            script: { request in { try script(request.path)(StreamExchange(request, on: PlainStream(exchange: $0))) } })
        try listener.start { [authority, otherAuthority] connection in
            guard connection.number <= secureConnections else { return conversation.run(on: connection) }
            let own = connection.number <= http1Connections ? otherAuthority : authority
            if let own, (try? connection.secure(by: own)) == nil { return }
            if authority != nil, connection.protocolName != "h2" {
                if alsoHTTP1 || own === otherAuthority { conversation.run(on: connection) }
                return
            }
            HTTP2Session(connection, maxConcurrentStreams: maxConcurrentStreams, script: script)?.run()
        }
    }

    deinit { stop() }

    /// Opens all gates, closes every connection, joins every thread. Not to be called by a script.
    package func stop() {
        listener.stop()
        routes.change { $0 = Routes() }
        authority?.removeFiles()
        otherAuthority?.removeFiles()
    }

    package var port: Int { Int(listener.port) }
    package var base: String { "\(authority == nil ? "http" : "https")://127.0.0.1:\(port)" }
    package func url(_ path: String) -> String { base + path }

    /// A script for one path (without query). A later one for the same path takes its place.
    package func route(_ path: String, _ script: @escaping Script) { routes.change { $0.set(path, script) } }
    package func route(prefix: String, _ script: @escaping Script) {
        routes.change { $0.set(prefix: prefix, script) }
    }

    /// Serves the pictures of `content` as `Origin` does, with the faults that their URLs name: below /pictures/.
    package func serve(_ content: Content) {
        let pictures = Pictures(content: content), prefix = "/pictures/"
        route(prefix: prefix) { try pictures.answer($0, named: String($0.request.path.dropFirst(prefix.count))) }
    }

    package func gate(_ name: String) -> Gate { signals.gate(name) }

    package var log: Log { journal.log }
    package func resetLog() { journal.reset() }

    /// As `Origin.wait`.
    @discardableResult
    package func wait(until deadline: Deadline = .patient, for condition: (Log) throws -> Bool) rethrows -> Bool {
        try journal.wait(until: deadline, for: condition)
    }
}

/// Error codes of RFC 9113 section 7.
package struct HTTP2Error: RawRepresentable, Hashable, Sendable {
    package var rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let noError = HTTP2Error(rawValue: 0)
    package static let protocolError = HTTP2Error(rawValue: 1)
    package static let internalError = HTTP2Error(rawValue: 2)
    package static let flowControlError = HTTP2Error(rawValue: 3)
    package static let refusedStream = HTTP2Error(rawValue: 7)
    package static let cancel = HTTP2Error(rawValue: 8)
    package static let enhanceYourCalm = HTTP2Error(rawValue: 11)
    package static let http11Required = HTTP2Error(rawValue: 13)
}
