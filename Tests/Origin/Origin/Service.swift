/// Which script answers which request: the test's own routes first, then the built-in paths.
struct Service {
    let pictures: Pictures
    let journal: Journal
    let signals: Signals
    let shared: Monitor<Origin.Shared>

    /// A connection's life, on its own thread.
    func converse(on connection: Connection) {
        var reader = RequestReader(connection)
        while true {
            do {
                guard var request = try reader.next() else { return }
                let isControl = request.path.hasPrefix("/_")
                connection.noteDepartures()
                if isControl { journal.hide(connection.number) } else { request = journal.arrived(request) }
                let exchange = Exchange(
                    request, on: connection, settings: isControl ? Settings() : shared.read(\.settings))
                let script = isControl ? control : script(for: request.path)
                do { try script(exchange) } catch {
                    // A script that fails for a reason of its own is not the client's doing: say so where it can.
                    if !(error is ConnectionEnded) { exchange.fail(error) }
                }
                guard exchange.conclude() else { return }
            } catch RequestReader.Failure.malformed(let reason) {
                let text = "cannot read the request: \(reason)\n"
                let answer =
                    "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
                try? Array(answer.utf8).withUnsafeBytes { try connection.send($0) }
                return
            } catch {
                return
            }
        }
    }

    private func script(for path: String) -> Origin.Script {
        if let own = shared.read({ $0.routes[path] }) { return own }
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1] : ""
        switch parts.first {
        case "pictures": return { try pictures.answer($0, pictures.content[rest] ?? pictures.content.file(rest)) }
        case "files": return { try pictures.answer($0, pictures.content.file(rest)) }
        case "status": return { try status($0, rest) }
        case "redirect": return { try redirect($0, rest) }
        case "redirect-loop": return { try $0.respond(302, headers: ["Location": "/redirect-loop"]) }
        case "echo":
            return { try $0.respond(headers: ["Content-Type": "application/json"], text: $0.request.jsonWithBody.text) }
        case "garbage":
            return { exchange in
                try exchange.send(raw: "\u{1}\u{2} this is not HTTP\r\n\r\n")
            }
        case "flaky": return flaky
        default: return { try $0.respond(404, text: "nothing at \(path)\n") }
        }
    }

    // MARK: Built-in paths

    private func status(_ exchange: Exchange, _ text: String) throws {
        guard let status = Int(text), (200...999).contains(status) else {
            return try exchange.respond(400, text: "not a final status: \(text)\n")
        }
        var headers: Headers = [:]
        for header in exchange.request.query.all("header") {
            let parts = header.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { headers.add(String(parts[0]), parts[1].trimmed) }
        }
        try exchange.respond(status, headers: headers, text: "status \(status)\n")
    }

    /// `/redirect?to=URL&code=302`, or N hops of it: `/redirect/N?to=URL`.
    private func redirect(_ exchange: Exchange, _ hops: String) throws {
        let query = exchange.request.query
        guard let to = query["to"], let code = Int(query["code"] ?? "302"), (300...399).contains(code) else {
            return try exchange.respond(400, text: "needs to=URL and a code between 300 and 399\n")
        }
        var location = to
        if let hops = Int(hops), hops > 1 { location = "/redirect/\(hops - 1)?code=\(code)&to=\(percentEncoded(to))" }
        try exchange.respond(code, headers: ["Location": location])
    }

    /// Fails the first `fail` requests with that `id`, then answers 200 (or the picture that is named).
    private func flaky(_ exchange: Exchange) throws {
        let query = exchange.request.query
        guard let fail = Int(query["fail"] ?? "1"), let status = Int(query["status"] ?? "503") else {
            return try exchange.respond(400, text: "fail and status are numbers\n")
        }
        let hasFailed = shared.change { shared in
            let count = shared.failures[query["id"] ?? "", default: 0]
            shared.failures[query["id"] ?? ""] = count + 1
            return count
        }
        if hasFailed < fail {
            var headers: Headers = [:]
            if let seconds = query["retry_after"] { headers.add("Retry-After", seconds) }
            try exchange.respond(status, headers: headers, text: "failure \(hasFailed + 1) of \(fail)\n")
        } else if let name = query["picture"] {
            let picture = pictures.content[name] ?? pictures.content.file(name)
            guard let picture else { return try exchange.respond(404, text: "no picture \(name)\n") }
            try exchange.respond(headers: ["Content-Type": picture.type], body: picture.bytes)
        } else {
            try exchange.respond(text: "recovered\n")
        }
    }
}

extension Exchange {
    /// Answers 500 with the error when nothing has been sent, else cuts the connection.
    fileprivate func fail(_ error: any Error) {
        if hasBegun { reset() } else { try? respond(500, text: "the script failed: \(error)\n") }
    }
}
