/// Reads HTTP/1 requests from a connection, one after the other.
/// Strict where a client under test could be wrong, with a bound on what it keeps.
struct RequestReader {
    enum Failure: Error { case malformed(String) }

    private static let longestHead = 1 << 20
    private static let longestBody = 64 << 20

    private let connection: Connection
    private var buffer: [UInt8] = []

    init(_ connection: Connection) { self.connection = connection }

    /// The next request, or nil when the client has closed.
    mutating func next() throws -> Request? {
        guard let head = try readHead() else { return nil }
        var request = try parse(head)
        request.connection = connection.number
        if request.headers["Expect"]?.lowercased() == "100-continue" {
            try Array("HTTP/1.1 100 Continue\r\n\r\n".utf8).withUnsafeBytes { try connection.send($0) }
        }
        if request.headers.lists("chunked", in: "Transfer-Encoding") {
            request.body = try readChunks()
        } else if let text = request.headers["Content-Length"] {
            guard let length = Int(text), length >= 0, length <= Self.longestBody
            else { throw Failure.malformed("Content-Length: \(text)") }
            request.body = try take(length)
        }
        return request
    }

    private mutating func readHead() throws -> [UInt8]? {
        let end = Array("\r\n\r\n".utf8)
        var searched = 0
        while true {
            if buffer.count >= 4 {
                for start in searched...(buffer.count - 4) where buffer[start..<start + 4].elementsEqual(end) {
                    return try take(start + 4)
                }
                searched = buffer.count - 3
            }
            guard buffer.count < Self.longestHead else { throw Failure.malformed("head too long") }
            if try !fill() {
                if buffer.isEmpty { return nil }
                throw ConnectionEnded()
            }
        }
    }

    private func parse(_ head: [UInt8]) throws -> Request {
        let lines = head.dropLast(4).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
            String(decoding: $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0, as: UTF8.self)
        }
        let words = lines[0].split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 3, !words[0].isEmpty, words[2].hasPrefix("HTTP/1.")
        else { throw Failure.malformed("request line: \(lines[0])") }
        var headers = Headers()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex
            else { throw Failure.malformed("header line: \(line)") }
            headers.add(String(line[..<colon]), line[line.index(after: colon)...].trimmed)
        }
        var request = Request(method: words[0], target: words[1], version: words[2], headers: headers)
        request.head = head
        return request
    }

    private mutating func readChunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = try readLine()
            guard let size = Int(line.prefix { $0 != ";" }.trimmed, radix: 16), size >= 0,
                body.count + size <= Self.longestBody
            else { throw Failure.malformed("chunk size: \(line)") }
            if size == 0 { break }
            body += try take(size)
            guard try readLine().isEmpty else { throw Failure.malformed("chunk end") }
        }
        while try !readLine().isEmpty {}  // Trailers.
        return body
    }

    private mutating func readLine() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = try take(end + 1).dropLast()
                return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
            }
            guard buffer.count < Self.longestHead, try fill() else { throw ConnectionEnded() }
        }
    }

    private mutating func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count {
            if try !fill() { throw ConnectionEnded() }
        }
        let taken = Array(buffer[..<count])
        buffer.removeFirst(count)
        return taken
    }

    /// False at the end of the stream.
    private mutating func fill() throws -> Bool {
        try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { part in
            let count = try connection.receive(into: part)
            buffer.append(contentsOf: part[..<count])
            return count > 0
        }
    }
}
