import ImgdlCore

@testable import ImgdlTransport

private let wallTime: Int64 = 1_800_000_000

func fuzzHTTPDate(_ bytes: UnsafeRawBufferPointer) throws {
    guard let seconds = HTTPDate.seconds(bytes.text, wallTime: wallTime) else { return }
    // The years 1 to 9999.
    try require((-62_135_596_800...253_402_300_799).contains(seconds), "\(seconds) seconds")
}

func fuzzRetryAfter(_ bytes: UnsafeRawBufferPointer) throws {
    let head = ResponseHead(
        status: 503, httpVersion: 11, fields: [HeaderField("Retry-After", bytes.text)], contentLength: nil,
        isEncoded: false)
    try require(RetryRules.retryAfter(head, wallTime: wallTime) ?? 0 >= 0, "a wait into the past")
}

/// A pattern in the first line, a type in the rest.
func fuzzContentType(_ bytes: UnsafeRawBufferPointer) throws {
    let (pattern, rest) = bytes.firstLineAndRest
    let type = ResponseHead.mediaType(of: rest.text)
    try require(ResponseHead.mediaType(of: type) == type, "“\(type)” is not a media type's last form")
    try require(ContentTypeRules.accepts(type, ["*/*"]), "\(type) is no type at all")
    _ = ContentTypeRules.accepts(type, [pattern.text])
}

/// Lines as curl gives them, and what is made of them.
func fuzzResponseHead(_ bytes: UnsafeRawBufferPointer) throws {
    let limit = 2000
    var parser = ResponseHeadParser(maximumBytes: limit)
    var received = 0
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
        received += line.count
        switch parser.receive(UnsafeRawBufferPointer(rebasing: line)) {
        case .more: break
        case .failed: return
        case .complete:
            try require(received <= limit, "\(received) bytes, the limit is \(limit)")
            guard let head = try? parser.takeHead() else { return }
            try require(head.contentLength ?? 0 >= 0, "a negative length")
            let fields = head.fields
            for name in fields.map(\.name) where name.utf8.allSatisfy({ $0 < 0x80 }) {
                try require(head.first(named: name) == fields.first(named: name), "two answers for \(name)")
            }
            let size = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
            // Latin-1 takes twice the bytes in UTF-8, a fold adds a space.
            try require(size <= 3 * received, "\(size) bytes of fields in \(received)")
            _ = (head.mediaType, ResponseRules.expectedBytes(head), RetryRules.retryAfter(head, wallTime: wallTime))
        }
    }
}
