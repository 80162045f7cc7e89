/// Exchanges that carry an answer with a picture: of HTTP/1.1, or a stream.
package protocol PictureExchange: Scripted {
    var request: Request { get }
    /// HTTP/2 says by frames where a body ends, and has no fields of the connection's.
    var isStream: Bool { get }
    func respond(_ status: Int, text: String) throws
    func sendHead(_ status: Int, _ headers: Headers) throws
    func sendBody(_ bytes: ArraySlice<UInt8>) throws
    func endBody() throws
    /// Ends it by a reset, behind what was sent before.
    func breakOff() throws
    func close()
}

extension Exchange: PictureExchange {
    package var isStream: Bool { false }
    package func respond(_ status: Int, text: String) throws { try respond(status, headers: [:], text: text) }
    package func sendHead(_ status: Int, _ headers: Headers) throws { try send(status: status, headers: headers) }
    package func sendBody(_ bytes: ArraySlice<UInt8>) throws { try send(body: bytes) }
    package func endBody() throws { try end() }
    package func breakOff() { reset() }
}

/// Serves a picture with the faults its URL names.
package struct Pictures {
    package let content: Content

    package init(content: Content) { self.content = content }

    /// The one of that name, with what the request's query asks for.
    package func answer(_ exchange: some PictureExchange, named name: String) throws {
        try answer(exchange, content[name] ?? content.file(name))
    }

    func answer(_ exchange: some PictureExchange, _ picture: Picture?) throws {
        guard let picture else { return try exchange.respond(404, text: "no such picture\n") }
        let faults: Faults
        do { faults = try Faults(exchange.request.query) } catch let fault as Faults.Unknown {
            return try exchange.respond(400, text: "no such fault: \(fault.text)\n")
        }

        var headers: Headers = ["Content-Type": faults.type ?? picture.type]
        var body = faults.isEmpty ? [] : picture.bytes
        if let bomb = faults.bomb {
            body = Deflate.gzipOfZeros(bomb)
            headers.add("Content-Encoding", "gzip")
        } else if faults.coding != .identity {
            body = Deflate.compress(body, as: faults.coding).dropLast(faults.codingCut)
            body += [UInt8](repeating: 7, count: faults.codingTail)
            headers.add("Content-Encoding", faults.coding.rawValue)
        }
        var status = faults.status ?? 200
        if let etag = faults.etag { headers.add("ETag", "\"\(etag)\"") }
        if status == 200 {
            if let etag = faults.etag, exchange.request.headers.lists("\"\(etag)\"", in: "If-None-Match") {
                status = 304
                body = []
            } else {
                (status, body) = selectRange(of: body, faults, exchange.request, &headers)
            }
        }
        for field in faults.headers { headers.add(field.name, field.value) }
        for line in 0..<faults.fillerKilobytes {
            let name = "X-Filler-\(line)"
            // Name, colon, space, value and line end make exactly 1024 bytes.
            headers.add(name, String(repeating: "f", count: 1024 - name.utf8.count - 4))
        }
        if !faults.keepsAlive, !exchange.isStream { headers.add("Connection", "close") }
        if status != 304 { frame(body.count, faults, &headers, isStream: exchange.isStream) }
        if exchange.request.method == "HEAD" { body = [] }

        try exchange.pause(faults.delay)
        if faults.firstByteNeverComes { try exchange.stall() }
        if faults.holdsHead { try exchange.wait(faults.gate) }
        try exchange.sendHead(status, headers)
        if status == 304, exchange.isStream { return try exchange.endBody() }
        if status == 304 || exchange.request.method == "HEAD" { return }
        try send(body.prefix(max(0, body.count - faults.shortBy)), faults, exchange)
    }

    private func frame(_ count: Int, _ faults: Faults, _ headers: inout Headers, isStream: Bool) {
        if faults.isChunked {
            if isStream { return }
            headers.add("Transfer-Encoding", "chunked")
            return
        }
        switch faults.length {
        case .right: headers.add("Content-Length", String(count))
        case .lie: headers.add("Content-Length", String(count / 2))
        case .value(let value): headers.add("Content-Length", value)
        case .none: break
        }
    }

    private func send(_ body: ArraySlice<UInt8>, _ faults: Faults, _ exchange: some PictureExchange) throws {
        var cuts = faults.cuts[...]
        let start = Moment.now
        var sent = 0
        while true {
            while let next = cuts.first, next.offset <= sent {
                cuts.removeFirst()
                switch next.cut {
                case .reset: return try exchange.breakOff()
                case .close: return exchange.close()
                case .stall: try exchange.stall()
                case .hold: try exchange.wait(faults.gate)
                }
            }
            if sent == body.count { break }
            var end = body.count
            if let size = faults.writeSize { end = min(end, sent + min(size, body.count)) }
            if let rate = faults.bytesPerSecond { end = min(end, sent + max(1, min(rate, body.count * 20) / 20)) }
            if let next = cuts.first { end = min(end, next.offset) }
            if let rate = faults.bytesPerSecond {
                // From the start, so that late wake-ups do not add up.
                try exchange.pause(start + .nanoseconds(Int64(Double(end) / Double(rate) * 1e9)) - .now)
            }
            try exchange.sendBody(body[body.startIndex + sent..<body.startIndex + end])
            sent = end
            guard sent < body.count else { continue }
            try exchange.pause(faults.pause)
        }
        if faults.lastChunkIsMissing || faults.shortBy > 0 { exchange.close() } else { try exchange.endBody() }
    }

    // MARK: Ranges

    /// One byte range, as RFC 9110 section 14 has it; a list of ranges is answered whole, as a server may.
    private func selectRange(
        of body: [UInt8], _ faults: Faults, _ request: Request, _ headers: inout Headers
    ) -> (status: Int, body: [UInt8]) {
        if faults.ranges == .ignore { return (200, body) }
        headers.add("Accept-Ranges", "bytes")
        guard request.method == "GET", let text = request.headers["Range"] else { return (200, body) }
        if let validator = request.headers["If-Range"], validator != faults.etag.map({ "\"\($0)\"" }) {
            return (200, body)
        }
        guard let asked = byteRange(text, size: body.count) else { return (200, body) }
        guard faults.ranges != .refuse, !asked.isEmpty else {
            headers.add("Content-Range", "bytes */\(body.count)")
            return (416, [])
        }
        let shift = faults.ranges == .wrong ? 1 : 0
        headers.add(
            "Content-Range", "bytes \(asked.lowerBound + shift)-\(asked.upperBound - 1 + shift)/\(body.count + shift)")
        return (206, Array(body[asked]))
    }

    /// Nil when it is no single byte range; empty when it cannot be satisfied.
    private func byteRange(_ text: String, size: Int) -> Range<Int>? {
        guard text.hasPrefix("bytes=") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            guard let count = Int(ends[1]) else { return nil }
            return max(0, size - count)..<size
        }
        guard let first = Int(ends[0]) else { return nil }
        if first >= size { return 0..<0 }
        if ends[1].isEmpty { return first..<size }
        guard let last = Int(ends[1]), last >= first else { return nil }
        return first..<min(last + 1, size)
    }
}
