import ImgdlCore

/// Collects the header lines of one response, as curl hands them over, into a head. Once per response: strings are made
/// here and nowhere below.
struct ResponseHeadParser {
    enum Step: Equatable {
        case more
        /// The final response's head is complete. What lines follow are trailers.
        case complete
        case failed(Failure)
    }

    private let maximumBytes: Int
    private var bytes = 0
    private var status: Int32 = 0
    private var version: Int32 = 0
    private var fields: [HeaderField] = []
    private(set) var isComplete = false

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// One line, with its line end; an empty one ends the head.
    mutating func receive(_ line: UnsafeRawBufferPointer) -> Step {
        guard !isComplete else { return .more }
        bytes += line.count
        guard bytes <= maximumBytes else {
            return .failed(Failure(.headerLimit, "the response's header is larger than \(maximumBytes) bytes"))
        }
        let content = Self.withoutLineEnd(line)
        if content.isEmpty { return endOfHead() }
        if Self.isStatusLine(content) {
            // Another response: what came before was interim, or a proxy's.
            fields = []
            fields.reserveCapacity(16)
            parseStatusLine(content)
        } else if content.first == 0x20 || content.first == 0x09 {
            // obs-fold (RFC 9112 section 5.2)
            if let last = fields.indices.last {
                fields[last].value += " " + Self.text(Self.trimmed(content))
            }
        } else if let colon = content.firstIndex(of: UInt8(ascii: ":")) {
            let name = Self.trimmed(UnsafeRawBufferPointer(rebasing: content[..<colon]))
            let value = Self.trimmed(UnsafeRawBufferPointer(rebasing: content[(colon + 1)...]))
            fields.append(HeaderField(Self.text(name), Self.text(value)))
        }
        return .more
    }

    /// Valid when complete.
    func head() throws(Failure) -> ResponseHead {
        let contentCodings = codings("Content-Encoding")
        let unknownCoding = Self.unknown(contentCodings + codings("Transfer-Encoding"))
        var head = ResponseHead(
            status: status, httpVersion: version, fields: fields, contentLength: try contentLength(),
            isEncoded: unknownCoding == nil && contentCodings.contains { !equalIgnoringCase($0, "identity") })
        head.remainingCoding = unknownCoding
        return head
    }

    private mutating func endOfHead() -> Step {
        guard status != 101 else {
            return .failed(Failure(.protocolError, "the server switched protocols without being asked", status: 101))
        }
        guard status >= 200 else { return .more }
        isComplete = true
        return .complete
    }

    static func isStatusLine(_ line: UnsafeRawBufferPointer) -> Bool {
        line.count >= 5 && line[0] == UInt8(ascii: "H") && line.starts(with: "HTTP/".utf8)
    }

    private mutating func parseStatusLine(_ line: UnsafeRawBufferPointer) {
        var rest = line[5...]
        let name = Self.word(&rest)
        switch (name.count, name.first, name.last) {
        case (3, 0x31, 0x30) where name[name.startIndex + 1] == UInt8(ascii: "."): version = 10
        case (3, 0x31, 0x31) where name[name.startIndex + 1] == UInt8(ascii: "."): version = 11
        case (1, 0x33, _): version = 30
        default: version = 20
        }
        let digits = Self.word(&rest)
        let isNumber = (1...9).contains(digits.count) && digits.allSatisfy { (0x30...0x39).contains($0) }
        status = isNumber ? digits.reduce(0) { 10 * $0 + Int32($1 - 0x30) } : 0
    }

    /// Up to the next space, and without it.
    private static func word(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        rest = rest.drop { $0 == 0x20 }
        let word = rest.prefix { $0 != 0x20 }
        rest = rest[word.endIndex...]
        return word
    }

    /// RFC 9112 section 6.3: with a Transfer-Encoding it means nothing; the same number said twice is that number;
    /// anything else leaves no way to tell where the body ends.
    private func contentLength() throws(Failure) -> Int64? {
        if fields.first(named: "Transfer-Encoding") != nil { return nil }
        var length: Int64?
        guard let said = fields.first(named: "Content-Length") else { return nil }
        var count = 0
        for index in fields.indices where equalIgnoringCase(fields[index].name, "Content-Length") { count += 1 }
        // As nearly all are.
        if count == 1, let value = Self.number(said) { return value }
        for field in fields where equalIgnoringCase(field.name, "Content-Length") {
            for part in field.value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                let digits = Self.trimmed(part)
                guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }),
                    let value = Int64(Substring(digits)), length == nil || length == value
                else {
                    throw Failure(
                        .protocolError, "the response's Content-Length is not one number: “\(field.value.prefix(60))”",
                        status: status)
                }
                length = value
            }
        }
        return length
    }

    /// Of digits alone, and not too many of them.
    private static func number(_ text: String) -> Int64? {
        var text = text
        return text.withUTF8 { digits in
            guard (1...18).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return digits.reduce(0) { 10 * $0 + Int64($1 - 0x30) }
        }
    }

    /// One that curl gives up at: the body is to come as it was sent (RFC 9110 section 8.4).
    private static func unknown(_ codings: [String]) -> String? {
        let known = ["identity", "gzip", "x-gzip", "deflate", "br", "zstd", "chunked"]
        return codings.first { coding in !known.contains { equalIgnoringCase($0, coding) } }
    }

    private func codings(_ name: String) -> [String] {
        guard fields.first(named: name) != nil else { return [] }
        var codings: [String] = []
        for field in fields where equalIgnoringCase(field.name, name) {
            for part in field.value.utf8.split(separator: UInt8(ascii: ",")) {
                let coding = Self.trimmed(part)
                if !coding.isEmpty { codings.append(String(Substring(coding))) }
            }
        }
        return codings
    }

    private static func withoutLineEnd(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var end = line.count
        if end > 0, line[end - 1] == 0x0A { end -= 1 }
        if end > 0, line[end - 1] == 0x0D { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: line[..<end])
    }

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var start = 0
        var end = bytes.count
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while start < end, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    private static func trimmed(_ bytes: Substring.UTF8View) -> Substring.UTF8View {
        var rest = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = rest.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return rest
    }

    /// UTF-8 where it is; else each byte is a character of ISO 8859-1 (RFC 9110 section 5.5 calls them opaque).
    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        // Nearly always; and the general way takes ten times as long.
        if bytes.reduce(0, |) < 0x80 { return String(decoding: bytes, as: UTF8.self) }
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
