/// Questions and orders of tests in other languages, under `/_`. They leave no trace in the log.
struct Control {
    let journal: Journal
    let signals: Signals
    /// What `/_reset` forgets beside the log.
    var forget: () -> Void = {}

    func answer(_ exchange: Exchange) throws {
        let request = exchange.request
        let parts = request.path.split(separator: "/").map(String.init)
        switch (parts.first, parts.count) {
        case ("_log", 1):
            try answer(exchange, journal.log)
        case ("_times", 1):
            try exchange.respond(text: times(request.query))
        case ("_wait", 1):
            try waitForLog(exchange)
        case ("_reset", 1):
            journal.reset()
            forget()
            try exchange.respond(text: "forgotten\n")
        case ("_gate", 2), ("_gate", 3):
            try gate(exchange, signals.gate(parts[1]), parts.count == 3 ? parts[2] : "")
        default:
            try exchange.respond(404, text: "no such control: \(request.path)\n")
        }
    }

    private func answer(_ exchange: Exchange, _ log: Log, status: Int = 200) throws {
        try exchange.respond(status, headers: ["Content-Type": "application/json"], text: log.json.text)
    }

    /// `/_times?target=T&slower_ms=N`: a line for each of the last requests that are for the target, took so long, or have
    /// no answer. Seconds are those of the monotonic clock, which clients on this machine have, too.
    private func times(_ query: Query) -> String {
        let target = query["target"]
        let limit = Duration.milliseconds(query["slower_ms"].flatMap { Int($0) } ?? 1000)
        let chosen = journal.log.arrivals.filter { arrival in
            arrival.request.target == target || arrival.finished.map { $0 - arrival.arrived >= limit } ?? true
        }
        return chosen.suffix(40).map(\.timesText).joined()
    }

    private func gate(_ exchange: Exchange, _ gate: Gate, _ order: String) throws {
        switch order {
        case "open":
            gate.open()
            try exchange.respond(text: "open\n")
        case "close":
            gate.close()
            try exchange.respond(text: "closed\n")
        case "reached":
            let count = Int(exchange.request.query["count"] ?? "1") ?? 1
            let reached = gate.waitUntilReached(count, until: deadline(exchange.request.query))
            try exchange.respond(reached ? 200 : 504, text: reached ? "reached\n" : "not reached\n")
        case "":
            let state: JSON = .object([("open", .bool(gate.isOpen)), ("waiting", .number(gate.waiting))])
            try exchange.respond(headers: ["Content-Type": "application/json"], text: state.text)
        default:
            try exchange.respond(404, text: "a gate can be open, close or reached\n")
        }
    }

    /// Answers the log as soon as every count is at least (`open` and `in_flight`: exactly) what the query says;
    /// 504 and the log as it is at the deadline.
    private func waitForLog(_ exchange: Exchange) throws {
        let query = exchange.request.query
        var conditions: [(Log) -> Bool] = []
        for item in query.items where item.name != "deadline_ms" && item.name != "path" {
            guard let count = Int(item.value) else { return try exchange.respond(400, text: "\(item.name)=NUMBER\n") }
            switch item.name {
            case "requests":
                let path = query["path"]
                conditions.append { (path.map($0.count) ?? $0.arrivals.count) >= count }
            case "closed_by_client": conditions.append { $0.connectionsClosedByClient >= count }
            case "abandoned": conditions.append { $0.arrivals.lazy.filter(\.isAbandoned).count >= count }
            case "handshakes": conditions.append { $0.handshakes >= count }
            case "bytes_sent": conditions.append { $0.arrivals.lazy.map(\.bytesSent).reduce(0, +) >= count }
            case "held_back": conditions.append { $0.connections.lazy.filter(\.isHeldBack).count == count }
            case "connections": conditions.append { $0.connections.count >= count }
            case "open": conditions.append { $0.openConnections == count }
            case "in_flight": conditions.append { $0.inFlight == count }
            default: return try exchange.respond(400, text: "cannot wait for \(item.name)\n")
            }
        }
        let holds = journal.wait(until: deadline(query)) { log in conditions.allSatisfy { $0(log) } }
        try answer(exchange, journal.log, status: holds ? 200 : 504)
    }

    private func deadline(_ query: Query) -> Deadline {
        .after(.milliseconds(query["deadline_ms"].flatMap { Int($0) } ?? 30_000))
    }
}

extension Log.Arrival {
    fileprivate var timesText: String {
        let end = finished.map { "\(isAbandoned ? "abandoned" : "answered") \($0.secondsText)" } ?? "not answered"
        let beginning = "\(request.target) on connection \(request.connection): came \(arrived.secondsText)"
        return "\(beginning), \(end), \(bytesSent) bytes\n"
    }
}

extension Moment {
    fileprivate var secondsText: String {
        let milliseconds = String(nanoseconds / 1_000_000 % 1000)
        return "\(nanoseconds / 1_000_000_000).\(String(repeating: "0", count: 3 - milliseconds.count))\(milliseconds)"
    }
}
