/// As much of JSON as the log needs to be written.
package enum JSON {
    case number(Int)
    case text(String)
    case bool(Bool)
    case list([JSON])
    case object([(String, JSON)])
    case null

    package var text: String {
        switch self {
        case .number(let number): return String(number)
        case .text(let text): return quoted(text)
        case .bool(let bool): return bool ? "true" : "false"
        case .list(let items): return "[" + items.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            return "{" + members.map { quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        case .null: return "null"
        }
    }

    private func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20:
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension Headers {
    /// Pairs rather than an object: order and repetition matter.
    var json: JSON { .list(fields.map { .list([.text($0.name), .text($0.value)]) }) }
}

extension Request {
    var json: JSON { .object(members) }

    /// For `/echo`; the log leaves bodies out, they would be all of it.
    var jsonWithBody: JSON {
        .object(
            members + [
                ("body_text", .text(String(decoding: body, as: UTF8.self))),
                ("body_hex", .text(body.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())),
            ])
    }

    fileprivate var members: [(String, JSON)] {
        [
            ("method", .text(method)), ("target", .text(target)), ("path", .text(path)), ("version", .text(version)),
            ("headers", headers.json), ("connection", .number(connection)), ("sequence", .number(sequence)),
            ("body_bytes", .number(body.count)),
        ]
    }
}

extension Log {
    var json: JSON {
        .object([
            ("requests", .list(arrivals.map { .object($0.request.members + [("bytes_sent", .number($0.bytesSent))]) })),
            ("counts", .object(countsPerPath.sorted { $0.key < $1.key }.map { ($0.key, .number($0.value)) })),
            ("in_flight", .number(inFlight)), ("max_in_flight", .number(maxInFlight)),
            ("open_connections", .number(openConnections)), ("max_open_connections", .number(maxOpenConnections)),
            ("connections_closed_by_client", .number(connectionsClosedByClient)),
            ("abandoned", .number(arrivals.lazy.filter(\.isAbandoned).count)),
            (
                "connections",
                .list(connections.map(\.json))
            ),
            ("handshakes", .number(handshakes)),
        ])
    }
}

extension Log.Connection {
    fileprivate var json: JSON {
        .object([
            ("number", .number(number)), ("requests", .number(requests)), ("open", .bool(isOpen)),
            ("closed_by_client", .bool(closedByClient != nil)), ("held_back", .bool(isHeldBack)),
            ("tls", handshake?.json ?? .null),
        ])
    }
}

extension Log.Handshake {
    fileprivate var json: JSON {
        func optional(_ text: String?) -> JSON { text.map { .text($0) } ?? .null }
        return .object([
            ("protocol", optional(protocolName)), ("resumed", .bool(isResumed)), ("client", optional(clientName)),
            ("server_name", optional(serverName)),
        ])
    }
}
