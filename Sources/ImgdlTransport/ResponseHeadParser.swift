import Glibc
import ImgdlCore

/// Collects the header lines of one exchange, as curl hands them over, into the head of its final response.
struct ResponseHeadParser {
    enum Step: Equatable {
        case more
        /// The final response's head is complete. What lines follow are trailers.
        case complete
        indirect case failed(Failure)
    }

    private var budget: HeaderBudget
    private var status: Int32 = 0
    private var version: Int32 = 0
    private var section: HeaderSection?
    private(set) var isComplete = false

    init(maximumBytes: Int) { budget = HeaderBudget(maximumBytes: maximumBytes) }

    /// Of all lines that have come.
    var bytes: Int { budget.bytes }

    /// Counts a line that nobody wants.
    mutating func hasRoom(for line: UnsafeRawBufferPointer) -> Bool {
        do throws(Failure) {
            try budget.take(line)
            return true
        } catch {
            return false
        }
    }

    /// Another response follows, in the same exchange.
    mutating func restart() {
        status = 0
        section = nil
        isComplete = false
    }

    /// One line, with its line end; an empty one ends the head.
    mutating func receive(_ line: UnsafeRawBufferPointer) -> Step {
        do throws(Failure) {
            let isFolded = line.first.map(Self.isSpace) == true
            try budget.take(line, of: part, behind: isFolded ? lastFieldName : nil)
        } catch {
            return .failed(error)
        }
        guard !isComplete else { return .more }
        let content = Self.withoutLineEnd(line)
        guard let start = content.baseAddress, !content.isEmpty else { return endOfHead() }
        // Some take it for the end of the line (RFC 9112 section 2.2); newer versions of curl refuse it, too.
        guard memchr(start, 0x0D, content.count) == nil else {
            return .failed(Failure(.protocolError, "a line of the response's header has a carriage return within it"))
        }
        if Self.isStatusLine(content) {
            // Another response: what came before was interim, or a proxy's.
            section = HeaderSection()
            guard parseStatusLine(content) else { return .failed(Self.notHTTP(content)) }
        } else if section == nil {
            return .failed(Self.notHTTP(content))
        } else if Self.isSpace(content[0]) {
            // obs-fold (RFC 9112 section 5.2); behind the status line there is nothing to continue (section 2.2)
            guard section?.count != 0 else {
                return .failed(
                    Failure(
                        .protocolError,
                        "the first field of the response's header begins with a space, which continues a field where there is none"
                    ))
            }
            section?.continueValue(Self.trimmed(content))
        } else if let colon = memchr(start, Int32(UInt8(ascii: ":")), content.count) {
            appendField(content, colon: UnsafeRawPointer(colon) - start)
        }
        return .more
    }

    /// Of the header that comes at present; nil behind its end, since trailers are not kept.
    var lastFieldName: String? { isComplete ? nil : section?.lastName(maximumBytes: 44) }

    /// What the next line belongs to.
    var part: HeaderBudget.Part {
        isComplete ? .trailers : (100...199).contains(status) ? .interim : .header
    }

    /// Once, when it is complete.
    mutating func takeHead() throws(Failure) -> ResponseHead {
        let section = section.take() ?? HeaderSection()
        let hasTransferCoding = section.contains("Transfer-Encoding")
        let hasContentCoding = section.contains("Content-Encoding")
        let contentLength = hasTransferCoding ? nil : try contentLength(section)
        var head = ResponseHead(
            status: status, httpVersion: version, section: section, contentLength: contentLength, isEncoded: false)
        if hasTransferCoding {
            try checkTransferCodings(head.fields)
            guard Self.isChunked(head.fields) || !section.contains("Content-Length") else {
                throw Failure(
                    .protocolError,
                    "the response has a Content-Length and a Transfer-Encoding without “chunked”: where it ends cannot be told",
                    status: status)
            }
        }
        if (300...399).contains(status) { try checkLocation(section) }
        if hasContentCoding {
            let codings = Self.contentCodings(head.fields)
            // One that is not known: the body is to come as it was sent (RFC 9110 section 8.4). So is a part of a body, whose
            // coding is that of the whole (section 14.2).
            let isPart = status == 206
            head.remainingCoding = codings.first { isPart || ContentCoding($0) == nil }
            head.isEncoded = head.remainingCoding == nil && !codings.isEmpty
        }
        return head
    }

    /// No other was asked for (RFC 9112 section 6.1), and versions of curl differ in what they make of them.
    private func checkTransferCodings(_ fields: [HeaderField]) throws(Failure) {
        for coding in Self.codings(fields, "Transfer-Encoding")
        where !equalIgnoringCase(coding, "chunked") && !equalIgnoringCase(coding, "identity") {
            throw Failure(
                .protocolError,
                "the response has a Transfer-Encoding that was not asked for: “\(coding.prefix(40))”")
        }
    }

    /// Two targets: who judged the answer by one of them would not have judged the other. Newer versions of curl and browsers
    /// refuse it, too.
    private func checkLocation(_ section: HeaderSection) throws(Failure) {
        guard let first = section.first(named: "Location") else { return }
        guard section.fields.allSatisfy({ !equalIgnoringCase($0.name, "Location") || $0.value == first }) else {
            throw Failure(.protocolError, "the response has two Location fields that differ", status: status)
        }
    }

    private mutating func endOfHead() -> Step {
        guard status != 101 else {
            return .failed(
                Failure(.protocolError, "the server switched protocols (101) without being asked", status: 101))
        }
        guard status >= 200 else { return .more }
        isComplete = true
        return .complete
    }

    static func isStatusLine(_ line: UnsafeRawBufferPointer) -> Bool {
        // Most lines are none, and none of those is worth a call.
        guard line.count >= 5, line[0] == UInt8(ascii: "H") else { return false }
        return memcmp(line.baseAddress!, "HTTP/", 5) == 0
    }

    private mutating func appendField(_ line: UnsafeRawBufferPointer, colon: Int) {
        var nameEnd = colon
        while nameEnd > 0, Self.isSpace(line[nameEnd - 1]) { nameEnd -= 1 }
        var valueStart = colon + 1
        while valueStart < line.count, Self.isSpace(line[valueStart]) { valueStart += 1 }
        var valueEnd = line.count
        while valueEnd > valueStart, Self.isSpace(line[valueEnd - 1]) { valueEnd -= 1 }
        let field = UnsafeRawBufferPointer(start: line.baseAddress, count: valueEnd)
        if Self.isLocation(UnsafeRawBufferPointer(rebasing: field[..<nameEnd])),
            let encoded = Self.encodedReference(UnsafeRawBufferPointer(rebasing: field[valueStart...]))
        {
            let line = field[..<valueStart] + encoded
            return line.withUnsafeBytes { section?.append($0, nameLength: nameEnd, valueStart: valueStart) }
        }
        section?.append(field, nameLength: nameEnd, valueStart: valueStart)
    }

    private static func isLocation(_ name: UnsafeRawBufferPointer) -> Bool {
        let location: StaticString = "Location"
        return name.count == location.utf8CodeUnitCount
            && equalIgnoringCase(name, UnsafeRawBufferPointer(start: location.utf8Start, count: name.count))
    }

    /// A reference that is not UTF-8, with its bytes above ASCII percent-encoded: as characters they would be encoded as two
    /// bytes each, and name something else. nil for all others.
    private static func encodedReference(_ value: UnsafeRawBufferPointer) -> [UInt8]? {
        guard value.contains(where: { $0 >= 0x80 }), String(validating: value, as: UTF8.self) == nil else { return nil }
        return value.flatMap { $0 < 0x80 ? [$0] : Array(URLText.percentEncoded([$0]).utf8) }
    }

    /// Versions of curl differ in which lines they take for one, and what of a status they read.
    private static func notHTTP(_ line: UnsafeRawBufferPointer) -> Failure {
        Failure(
            .protocolError,
            "the answer does not begin with a status line of HTTP: “\(String(decoding: line.prefix(60), as: UTF8.self))”"
        )
    }

    /// "HTTP/1.1 200 OK". False: it has no status of three digits (RFC 9112 section 4).
    private mutating func parseStatusLine(_ line: UnsafeRawBufferPointer) -> Bool {
        var position = 5
        let name = Self.word(line, &position)
        switch (name.count, name.first, name.last) {
        case (3, 0x31, 0x30) where name[1] == UInt8(ascii: "."): version = 10
        case (3, 0x31, 0x31) where name[1] == UInt8(ascii: "."): version = 11
        case (1, 0x33, _): version = 30
        default: version = 20
        }
        let digits = Self.word(line, &position)
        guard digits.count == 3, let number = HeaderSection.number(digits), number >= 100 else { return false }
        status = Int32(number)
        return true
    }

    /// Up to the next space, and without it.
    private static func word(_ line: UnsafeRawBufferPointer, _ position: inout Int) -> UnsafeRawBufferPointer {
        while position < line.count, line[position] == 0x20 { position += 1 }
        let start = position
        while position < line.count, line[position] != 0x20 { position += 1 }
        return UnsafeRawBufferPointer(rebasing: line[start..<position])
    }

    /// RFC 9112 section 6.3: the same number said twice is that number; anything else leaves no way to tell where the
    /// body ends. Where there is a Transfer-Encoding it means nothing.
    private func contentLength(_ section: HeaderSection) throws(Failure) -> Int64? {
        // As nearly all are.
        if let only = section.number(named: "Content-Length") { return only }
        guard section.contains("Content-Length") else { return nil }
        var length: Int64?
        for field in section.fields where equalIgnoringCase(field.name, "Content-Length") {
            for part in field.value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                guard let value = CheckedNumber(digits: Self.trimmed(part))?.length else {
                    throw Failure(
                        .protocolError,
                        "the response's Content-Length is not one number: “\(field.value.prefix(60))”", status: status)
                }
                if let length, length != value {
                    let words = "the response has two Content-Lengths that differ: “\(length)” and “\(value)”"
                    throw Failure(.protocolError, words, status: status)
                }
                length = value
            }
        }
        return length
    }

    /// Whether its last chunk tells where the body ends. Without a Transfer-Encoding a look at the fields is all that it costs.
    static func isChunked(_ fields: [HeaderField]) -> Bool {
        codings(fields, "Transfer-Encoding").last.map { equalIgnoringCase($0, "chunked") } == true
    }

    /// In the order in which they were applied; "identity" is none.
    static func contentCodings(_ fields: [HeaderField]) -> [String] {
        codings(fields, "Content-Encoding").filter { !equalIgnoringCase($0, "identity") }
    }

    private static func codings(_ fields: [HeaderField], _ name: String) -> [String] {
        var codings: [String] = []
        for field in fields where equalIgnoringCase(field.name, name) {
            for part in field.value.utf8.split(separator: UInt8(ascii: ",")) {
                let coding = trimmed(part)
                if !coding.isEmpty { codings.append(String(Substring(coding))) }
            }
        }
        return codings
    }

    private static func withoutLineEnd(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var end = line.count
        if end > 0, line[end - 1] == 0x0A { end -= 1 }
        if end > 0, line[end - 1] == 0x0D { end -= 1 }
        return UnsafeRawBufferPointer(start: line.baseAddress, count: end)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var start = 0
        var end = bytes.count
        while start < end, isSpace(bytes[start]) { start += 1 }
        while start < end, isSpace(bytes[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    private static func trimmed(_ bytes: Substring.UTF8View) -> Substring.UTF8View {
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
        return rest
    }
}
