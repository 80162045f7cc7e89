import Dispatch
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// What a server can answer, and what becomes of it.
final class ExchangeTests: TransportTestCase {
    func testGet() throws {
        origin.route("/a") { try $0.respond(200, headers: ["Content-Type": "text/x", "X-A": "1"], text: "hello") }
        let record = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(record.text, "hello")
        XCTAssertEqual(record.head?.status, 200)
        XCTAssertEqual(record.head?.httpVersion, 11)
        XCTAssertEqual(record.head?.contentLength, 5)
        XCTAssertEqual(record.head?.isEncoded, false)
        XCTAssertEqual(record.head?.fields.first(named: "x-a"), "1")
    }

    func testNothingIsSentThatWasNotAsked() throws {
        let request = try request(
            from: start(
                origin.url("/echo?x=1"), fields: [HeaderField("X-Empty", ""), HeaderField("Accept", "image/*")]))
        let names = request.headers.map { $0.name.lowercased() }.sorted()
        XCTAssertEqual(names, ["accept", "accept-encoding", "host", "x-empty"])
    }

    func testConnectionIsUsedAgain() throws {
        origin.route("/a") { try $0.respond(text: "a") }
        for _ in 0..<5 { _ = try fetchSucceeding(origin.url("/a")) }
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testADeadKeptConnectionIsReplaced() throws {
        origin.route("/a") { exchange in
            try exchange.respond(text: "a")
            exchange.close()
        }
        for _ in 0..<3 { XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a") }
        XCTAssertEqual(origin.log.connections.count, 3)
    }

    /// So many connections of a new transport's are idle. Their numbers.
    private func keepConnections(_ count: Int) throws -> Set<Int> {
        try makeTransport()
        let arrived = DispatchSemaphore(value: 0)
        let mayAnswer = DispatchSemaphore(value: 0)
        origin.route("/kept") { exchange in
            arrived.signal()
            mayAnswer.wait()
            try exchange.respond(text: "a")
        }
        let ids = try (0..<count).map { _ in try start(origin.url("/kept")) }
        DispatchQueue.global().async {
            for _ in 0..<count { arrived.wait() }
            for _ in 0..<count { mayAnswer.signal() }
        }
        for id in ids { XCTAssertEqual(record(of: id).text, "a") }
        let kept = Set(origin.log.requests.suffix(count).map(\.connection))
        XCTAssertEqual(kept.count, count)
        return kept
    }

    /// RFC 9110 section 9.2.2. curl would send it on each of the kept connections, up to six times.
    func testARequestThatKeptConnectionsDoNotAnswerIsSentOnceMore() throws {
        let table: [(method: String, body: [UInt8]?, count: Int)] = [
            ("GET", nil, 2), ("HEAD", nil, 2), ("PUT", Array("body".utf8), 2), ("DELETE", nil, 2),
            ("POST", Array("body".utf8), 1), ("POST", nil, 1), ("PATCH", Array("body".utf8), 1), ("LOOK", nil, 1),
        ]
        for (method, body, count) in table {
            _ = try keepConnections(4)
            origin.route("/close") { $0.close() }
            let before = origin.log.requests.count
            let record = record(of: try start(origin.url("/close"), method: method, body: body))
            XCTAssertEqual(record.failure?.code, .connectionLost, method)
            let sent = origin.log.requests.suffix(from: before)
            XCTAssertEqual(sent.map(\.method), Array(repeating: method, count: count))
            XCTAssertEqual(sent.map(\.body), Array(repeating: body ?? [], count: count), method)
            XCTAssertEqual(record.failure?.message.contains("is not sent again"), count == 1, method)
        }
    }

    func testARequestThatAKeptConnectionDoesNotAnswerSucceedsOnANewOne() throws {
        let kept = try keepConnections(4)
        origin.route("/a") { exchange in
            guard !kept.contains(exchange.request.connection) else { return exchange.close() }
            try exchange.respond(text: "new")
        }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "new")
        XCTAssertEqual(origin.log.requests.filter { $0.path == "/a" }.count, 2)
    }

    func testChunkedWithTrailers() throws {
        origin.route("/a") { exchange in
            try exchange.send(status: 200, headers: ["Transfer-Encoding": "chunked"])
            try exchange.sendChunk(Array("he".utf8))
            try exchange.sendChunk(Array("llo".utf8))
            try exchange.end(trailers: ["X-Trailer": "late"])
        }
        let record = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(record.text, "hello")
        XCTAssertNil(record.head?.contentLength)
        XCTAssertNil(record.head?.fields.first(named: "X-Trailer"))
    }

    func testFaults() throws {
        origin.content["p"] = Picture(Array(repeating: 7, count: 100_000), type: "image/x")
        let table: [(String, ErrorCode)] = [
            ("short_by=10", .truncated), ("chunked=1&cut_chunked=1", .truncated), ("reset_after=5000", .connectionLost),
            ("close_after=5000", .truncated), ("length=abc", .protocolError), ("length=5%2C6", .protocolError),
            ("length=-1", .protocolError), ("length=huge", .truncated),
        ]
        for (fault, code) in table {
            let failure = try failure(of: origin.url("/pictures/p?token=secret&\(fault)".replacingToken()))
            XCTAssertEqual(failure?.code, code, "\(fault): \(failure?.message ?? "")")
            XCTAssertEqual(failure?.status, code == .protocolError ? failure?.status : 200)
            XCTAssertFalse(failure?.message.contains("secret") ?? true)
        }
    }

    func testNoAnswer() throws {
        origin.route("/close") { $0.close() }
        origin.route("/reset") { $0.reset() }
        XCTAssertEqual(
            try failure(of: origin.url("/close")),
            Failure(.connectionLost, "the server closed the connection without an answer"))
        XCTAssertEqual(try failure(of: origin.url("/reset"))?.code, .connectionLost)
        XCTAssertEqual(try failure(of: origin.url("/garbage"))?.code, .protocolError)
        origin.route("/half") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nX: y\r\n")
            exchange.close()
        }
        XCTAssertEqual(try failure(of: origin.url("/half"))?.code, .connectionLost)
    }

    func testConnectionRefused() throws {
        let url = origin.url("/")
        origin.stop()
        XCTAssertEqual(try failure(of: url)?.code, .connectFailed)
    }

    func testGzip() throws {
        origin.content["p"] = Picture(Array(repeating: 7, count: 100_000), type: "image/x")
        let record = try fetchSucceeding(origin.url("/pictures/p?gzip=1"))
        XCTAssertEqual(record.body.count, 100_000)
        XCTAssertEqual(record.head?.isEncoded, true)
        XCTAssertLessThan(record.head?.contentLength ?? .max, 10_000)
        XCTAssertEqual(try failure(of: origin.url("/pictures/p?gzip=1&short_by=10"))?.code, .truncated)
        origin.route("/not") { try $0.respond(headers: ["Content-Encoding": "gzip"], text: "this is not gzip") }
        XCTAssertEqual(try failure(of: origin.url("/not"))?.code, .contentEncoding)
        origin.route("/chunks") {
            try $0.respond(
                headers: ["Content-Encoding": "gzip", "Transfer-Encoding": "chunked"], text: "this is not gzip")
        }
        XCTAssertEqual(try failure(of: origin.url("/chunks"))?.code, .contentEncoding)
        origin.route("/unknown") { try $0.respond(headers: ["Content-Encoding": "rot13"], text: "uryyb") }
        let unknown = try fetchSucceeding(origin.url("/unknown"))
        XCTAssertEqual(unknown.head?.remainingCoding, "rot13")
        XCTAssertEqual(unknown.body, Array("uryyb".utf8), "as it was sent (RFC 9110 section 8.4)")
    }

    func testHead() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        let record = record(of: try start(origin.url("/a"), method: "HEAD"))
        XCTAssertTrue(record.isFinished)
        XCTAssertEqual(record.head?.contentLength, 5)
        XCTAssertEqual(record.body, [])
        XCTAssertEqual(origin.log.requests.first?.method, "HEAD")
    }

    func testBodies() throws {
        for method in ["POST", "PUT", "PATCH", "DELETE", "GET"] {
            let request = try request(from: start(origin.url("/echo"), method: method, body: Array("a\u{0}b".utf8)))
            XCTAssertEqual(request.method, method)
            XCTAssertEqual(request.body, Array("a\u{0}b".utf8))
            XCTAssertNil(request.headers.first { $0.name.lowercased() == "content-type" })
            XCTAssertNil(request.headers.first { $0.name.lowercased() == "expect" })
        }
        let empty = try request(from: start(origin.url("/echo"), method: "POST"))
        XCTAssertEqual(empty.headers.first { $0.name.lowercased() == "content-length" }?.value, "0")
        let bare = try request(from: start(origin.url("/echo"), method: "DELETE"))
        XCTAssertEqual(bare.method, "DELETE")
        XCTAssertNil(bare.headers.first { $0.name.lowercased() == "content-length" })
    }

    func testRefusedBeforeAnythingIsSent() throws {
        for field in [HeaderField("X", "a\r\nY: b"), HeaderField("X\n", "a"), HeaderField("", "a")] {
            let id = try start(origin.url("/echo"), fields: [field])
            XCTAssertFalse(recorder[id].hasEnded, "not from inside the call")
            XCTAssertEqual(record(of: id).failure?.code, .invalidHeader)
        }
        XCTAssertEqual(record(of: try start(origin.url("/echo"), method: "GET /x")).failure?.code, .invalidHeader)
        XCTAssertEqual(origin.log.connections.count, 0)
    }

    func testHeaderLimit() throws {
        origin.content["p"] = Picture([1, 2, 3], type: "image/x")
        let failed = record(of: try start(origin.url("/pictures/p?headers=20"), maximumHeaderBytes: 16 * 1024))
        XCTAssertEqual(failed.failure?.code, .headerLimit)
        XCTAssertNil(failed.head)
        let passed = record(of: try start(origin.url("/pictures/p?headers=10"), maximumHeaderBytes: 16 * 1024))
        XCTAssertTrue(passed.isFinished)
        origin.route("/line") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nX: ")
            for _ in 0..<300 { try exchange.send(raw: String(repeating: "y", count: 1024)) }
        }
        let line = try failure(of: origin.url("/line"))
        XCTAssertEqual(line?.code, .headerLimit)
        let message = line?.message ?? ""
        XCTAssertTrue(message.contains("the response's header") && message.contains("102399 bytes"), message)
        // More than curl takes, though less than was allowed.
        let all = record(of: try start(origin.url("/pictures/p?headers=400"), maximumHeaderBytes: 1 << 20))
        XCTAssertEqual(all.failure?.code, .headerLimit, all.failure?.message ?? "")
    }

    /// Headers pay for the time of a turn, as bodies do, and as far as their limit.
    func testHeadersPayForTheirTime() throws {
        origin.content["p"] = Picture([1, 2, 3], type: "image/x")
        let before = transport.watch.receivedBytes
        XCTAssertTrue(record(of: try start(origin.url("/pictures/p?headers=40"))).isFinished)
        XCTAssertGreaterThan(transport.watch.receivedBytes - before, 40 << 10, "40 of a kilobyte")
        let then = transport.watch.receivedBytes
        XCTAssertEqual(
            record(of: try start(origin.url("/pictures/p?headers=40"), maximumHeaderBytes: 16 << 10)).failure?.code,
            .headerLimit)
        XCTAssertLessThan(transport.watch.receivedBytes - then, 20 << 10)
        // However short they are, each takes its time.
        origin.route("/short") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\n")
            try exchange.send(raw: String(repeating: "A:\r\n", count: 900) + "Content-Length: 0\r\n\r\n")
        }
        let last = transport.watch.receivedBytes
        XCTAssertTrue(try fetchSucceeding(origin.url("/short")).isFinished)
        XCTAssertGreaterThan(transport.watch.receivedBytes - last, 900 * 36)
    }

    /// They end where the budget does, however long the server goes on.
    func testHeaderFloods() throws {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
        let many = (0..<100).map { "X-\($0): y\r\n" }.joined()
        let interim = String(repeating: "HTTP/1.1 103 x\r\nA: b\r\n\r\n", count: 100)
        let table = [
            ("trailers", chunked, many, ErrorCode.headerLimit), ("interim responses", "", interim, .headerLimit),
            ("fields", "HTTP/1.1 200 OK\r\n", many, .headerLimit),
            ("a folded field", "HTTP/1.1 200 OK\r\nA: b\r\n", " c\r\n", .headerLimit),
            ("a long trailer", chunked + "T: ", many.filter { !$0.isNewline }, .headerLimit),
        ]
        for (name, start, flood, code) in table {
            origin.route("/flood") { exchange in
                try exchange.send(raw: start)
                for _ in 0..<((64 << 20) / flood.utf8.count) { try exchange.send(raw: flood) }
            }
            let failure = try failure(of: origin.url("/flood"))
            XCTAssertEqual(failure?.code, code, "\(name): \(failure?.message ?? "")")
            XCTAssertEqual(try fetchSucceeding(origin.url("/echo")).head?.status, 200)
        }
    }

    /// None was asked for.
    func testTransferCodings() throws {
        for (coding, code) in [
            ("gzip", ErrorCode.protocolError), ("br", .protocolError), ("zstd", .protocolError),
            ("rot13", .protocolError),
            ("gzip, chunked", .protocolError),
        ] {
            origin.route("/coded") { exchange in
                try exchange.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n0\r\n\r\n")
                exchange.close()
            }
            XCTAssertEqual(try failure(of: origin.url("/coded"))?.code, code, coding)
        }
    }

    func testInterimResponsesAreSkipped() throws {
        origin.route("/a") { exchange in
            try exchange.send(raw: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try exchange.respond(text: "a")
        }
        let record = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(record.head?.status, 200)
        XCTAssertNil(record.head?.fields.first(named: "Link"))
        origin.route("/101") { exchange in
            try exchange.send(raw: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc")
            try exchange.wait("never")
        }
        XCTAssertEqual(try failure(of: origin.url("/101"))?.code, .protocolError)
    }

    func testRedirectsAreReported() throws {
        let record = try fetchSucceeding(origin.url("/redirect?to=/x&code=302"))
        XCTAssertEqual(record.head?.status, 302)
        XCTAssertEqual(record.head?.fields.first(named: "Location"), "/x")
    }

    func testAShortUnwantedBodyKeepsTheConnection() throws {
        recorder.onHead = { _, _ in .discard }
        origin.route("/a") { try $0.respond(text: "moved") }
        let record = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(record.text, "moved", "its beginning is reported")
        _ = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testALongUnwantedBodyIsNotRead() throws {
        recorder.onHead = { _, _ in .discard }
        for headers in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
            let closed = origin.log.connectionsClosedByClient
            origin.route("/a") { exchange in
                try exchange.send(raw: "HTTP/1.1 302 Found\r\n\(headers)\r\n\r\n1e8480\r\n")
                for _ in 0..<80 { try exchange.send(raw: [UInt8](repeating: 1, count: 1024)) }
                try exchange.wait("never")
            }
            let record = try fetchSucceeding(origin.url("/a"))
            XCTAssertLessThanOrEqual(record.body.count, BodyDisposition.previewBytes)
            XCTAssertTrue(origin.wait { $0.connectionsClosedByClient > closed })
        }
    }

    func testTheBeginningOfAnErrorPage() throws {
        recorder.onHead = { _, _ in .discard }
        for headers in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
            origin.route("/a") { exchange in
                try exchange.send(raw: "HTTP/1.1 404 Not Found\r\n\(headers)\r\n\r\n")
                if headers.hasPrefix("T") { try exchange.send(raw: "1e8480\r\n") }
                for _ in 0..<80 { try exchange.send(raw: [UInt8](repeating: 7, count: 1024)) }
                try exchange.wait("never")
            }
            let record = try fetchSucceeding(origin.url("/a"))
            XCTAssertEqual(record.body, [UInt8](repeating: 7, count: BodyDisposition.previewBytes))
        }
    }

    /// Its end is told, though it was not unpacked to its end.
    func testTheBeginningOfACompressedErrorPage() throws {
        recorder.onHead = { _, _ in .discard }
        let page = Deflate.gzipOfZeros(5_000_000)
        for status in ["404 Not Found", "302 Found"] {
            for isChunked in [false, true] {
                origin.route("/a") { exchange in
                    let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(page.count)"
                    try exchange.send(raw: "HTTP/1.1 \(status)\r\nContent-Encoding: gzip\r\n\(framing)\r\n\r\n")
                    if isChunked { try exchange.send(raw: String(page.count, radix: 16) + "\r\n") }
                    try exchange.send(raw: page)
                    if isChunked { try exchange.send(raw: "\r\n0\r\n\r\n") }
                }
                let record = try fetchSucceeding(origin.url("/a"))
                XCTAssertEqual(record.body, [UInt8](repeating: 0, count: BodyDisposition.previewBytes))
            }
        }
    }

    private static let tooManyCodings = Array(repeating: "gzip", count: ContentCoding.maximumLayers + 1)
        .joined(separator: ", ")

    func testACodingThatCannotBeUndoneIsNoMatterWithoutABody() throws {
        let table = [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Not Modified"), ("GET", "200 OK")]
        for (method, status) in table {
            origin.route("/a") { exchange in
                let length = status == "200 OK" && method == "GET" ? "Content-Length: 0\r\n" : ""
                try exchange.send(
                    raw: "HTTP/1.1 \(status)\r\nContent-Encoding: \(Self.tooManyCodings)\r\n\(length)\r\n")
            }
            let record = record(of: try start(origin.url("/a"), method: method))
            XCTAssertNil(record.failure, "\(method), \(status)")
            XCTAssertEqual(record.head.map { String($0.status) }, String(status.prefix(3)))
        }
    }

    func testACodingThatCannotBeUndoneIsNoMatterWhereNobodyWantsTheBody() throws {
        recorder.onHead = { _, _ in .discard }
        for (status, body) in [(302, "x"), (404, "not gzip"), (500, String(repeating: "x", count: 5_000))] {
            for coding in [Self.tooManyCodings, "gzip"] {
                origin.route("/a") { try $0.respond(status, headers: ["Content-Encoding": coding], text: body) }
                let record = try fetchSucceeding(origin.url("/a"))
                XCTAssertEqual(record.head?.status, Int32(status))
                XCTAssertEqual(record.body, [], "nothing that looks like its text")
            }
        }
        XCTAssertEqual(origin.log.connections.count, 1, "which are used again")
    }

    func testACodingThatCannotBeUndoneFailsWithTheFirstByte() throws {
        origin.route("/a") { try $0.respond(headers: ["Content-Encoding": Self.tooManyCodings], text: "x") }
        let record = try fetch(origin.url("/a"))
        XCTAssertEqual(record.failure?.code, .contentEncoding)
        XCTAssertEqual(record.head?.status, 200)
    }

    func testAPartIsAskedForUncoded() throws {
        let range = HeaderField("Range", "bytes=5-14")
        let table: [([HeaderField], String)] = [
            ([range], "identity"), ([range, HeaderField("Accept-Encoding", "gzip")], "gzip"),
            ([], ContentCoding.accepted()),
        ]
        for (fields, expected) in table {
            let request = try request(from: start(origin.url("/echo"), fields: fields))
            XCTAssertEqual(request.headers["Accept-Encoding"], expected)
        }
    }

    func testAPartOfACodedBodyComesAsItWasSent() throws {
        origin.route("/a") {
            try $0.respond(
                206, headers: ["Content-Encoding": "gzip", "Content-Range": "bytes 5-7/9"], text: "abc")
        }
        let record = record(of: try start(origin.url("/a"), fields: [HeaderField("Range", "bytes=5-7")]))
        XCTAssertNil(record.failure)
        XCTAssertEqual(record.text, "abc")
        XCTAssertEqual(record.head?.remainingCoding, "gzip")
        XCTAssertEqual(record.head?.isEncoded, false)
    }

    func testAConnectionThatAnAnswerTooLongHasSpoilt() throws {
        origin.route("/a") { try $0.respond(text: "a") }
        origin.route("/b") { exchange in
            let isUsedAgain = exchange.request.connection == 1
            if isUsedAgain { try exchange.send(raw: "what was left of /a") }
            try exchange.respond(text: "b")
        }
        for method in ["GET", "HEAD"] {
            try makeTransport()
            _ = try fetchSucceeding(origin.url("/a"))
            let record = record(of: try start(origin.url("/b"), method: method))
            XCTAssertNil(record.failure)
            XCTAssertEqual(record.text, method == "GET" ? "b" : "")
            XCTAssertEqual(record.connections, 1, "told once")
            origin.resetLog()
        }
    }

    func testASlowUploadIsHeardOf() throws {
        origin.route("/up") { try $0.respond(text: "thanks") }
        let body = [UInt8](repeating: 1, count: 8_000_000)
        let id = try start(origin.url("/up"), method: "PUT", body: body)
        let record = record(of: id)
        XCTAssertTrue(record.isFinished)
        XCTAssertGreaterThan(record.sent, 3)
        XCTAssertEqual(origin.log.requests.last?.body.count, body.count)
        XCTAssertGreaterThanOrEqual(record.times.bytesSent, Int64(body.count))
        origin.route("/a") { try $0.respond(text: "a") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).sent, 0)
    }

    /// Features B24.
    func testTimes() throws {
        origin.route("/a") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "5"])
            try exchange.send(body: Array("hello".utf8))
        }
        let first = try fetchSucceeding(origin.url("/a")).times
        XCTAssertEqual(first.address, "127.0.0.1")
        XCTAssertFalse(first.isConnectionReused)
        XCTAssertGreaterThan(first.connect, 0)
        XCTAssertGreaterThan(first.firstByte, 0)
        XCTAssertEqual(first.tls, 0)
        XCTAssertGreaterThan(first.bytesReceived, 5 + 30)
        XCTAssertGreaterThan(first.bytesSent, 30)
        let second = try fetchSucceeding(origin.url("/a")).times
        XCTAssertTrue(second.isConnectionReused)
        XCTAssertEqual(second.connect, 0)
        let cut = try fetch(origin.url("/pictures/none")).times
        XCTAssertTrue(cut.isConnectionReused)
        origin.stop()
        let refused = try fetch("http://127.0.0.1:1/").times
        XCTAssertFalse(refused.isConnectionReused)
        XCTAssertEqual(refused.bytesReceived, 0)
    }

    private func request(from id: TransferID) throws -> Request {
        XCTAssertTrue(record(of: id).isFinished)
        return try XCTUnwrap(origin.log.requests.last)
    }
}

extension String {
    /// The origin refuses keys it does not know; those with an underscore mean nothing to it.
    fileprivate func replacingToken() -> String { replacingOccurrence("token=", "_token=") }

    fileprivate func replacingOccurrence(_ old: String, _ new: String) -> String { replacing(old, with: new) }
}
