import Origin
import XCTest

/// Every fault that a URL can name, as a client meets it.
final class FaultTests: XCTestCase {
    private var origin: Origin!
    private let picture = (0..<3000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    override func setUpWithError() throws {
        origin = try Origin()
        origin.content["a.jpg"] = Picture(picture, type: "image/jpeg")
    }

    override func tearDown() {
        origin.stop()
        origin = nil
    }

    private func get(_ query: String, headers: String = "", method: String = "GET") throws -> RawClient {
        let client = try RawClient(port: origin.port)
        client.get("/pictures/a.jpg" + (query.isEmpty ? "" : "?" + query), headers: headers, method: method)
        return client
    }

    /// Undoes the chunked coding; complete when the last chunk is there.
    private func chunks(_ bytes: [UInt8]) -> (sizes: [Int], body: [UInt8], isComplete: Bool) {
        var sizes: [Int] = []
        var body: [UInt8] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: 10) {
            let size = Int(String(decoding: rest[rest.startIndex..<end - 1], as: UTF8.self), radix: 16) ?? -1
            rest = rest[(end + 1)...]
            if size <= 0 { return (sizes, body, size == 0 && rest.elementsEqual([13, 10])) }
            sizes.append(size)
            body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        return (sizes, body, false)
    }

    // MARK: Without faults

    func testPicture() throws {
        let client = try get("")
        let response = client.readResponse()
        XCTAssertEqual(response.status, 200)
        XCTAssertEqual(response.body, picture)
        XCTAssertEqual(client.header("Content-Type", in: response.head), "image/jpeg")
        client.get("/pictures/a.jpg", method: "HEAD")
        XCTAssertEqual(client.header("Content-Length", in: client.readHead()), "3000")
        for method in ["POST", "PUT", "DELETE"] {
            client.get("/pictures/a.jpg?n=\(method)&_any=1", method: method)
            XCTAssertEqual(client.readResponse().body, picture)
        }
        client.get("/pictures/none")
        XCTAssertEqual(client.readResponse().status, 404)
    }

    func testMisspeltFaultIsRefused() throws {
        for query in ["reset_afer=3", "chunked=yes", "range=sometimes", "first_byte=late", "header=bad", "gzip_bomb=0"]
        {
            XCTAssertEqual(try get(query).readResponse().status, 400, query)
        }
    }

    // MARK: Head

    func testHeadFaults() throws {
        let client = try get(
            "status=503&type=text/html&header=Retry-After:%207&header=X-A:b&etag=v1&headers=3&keepalive=0")
        let response = client.readResponse()
        XCTAssertEqual(response.status, 503)
        XCTAssertEqual(client.header("Content-Type", in: response.head), "text/html")
        XCTAssertEqual(client.header("Retry-After", in: response.head), "7")
        XCTAssertEqual(client.header("X-A", in: response.head), "b")
        XCTAssertEqual(client.header("ETag", in: response.head), "\"v1\"")
        XCTAssertEqual(client.header("Connection", in: response.head), "close")
        let filler = response.head.components("\r\n").filter { $0.hasPrefix("X-Filler") }
        XCTAssertEqual(filler.map { $0.utf8.count + 2 }, [1024, 1024, 1024])
        XCTAssertEqual(client.readToEnd(), [])
        XCTAssertEqual(client.ending, .closed)
        XCTAssertEqual(try get("empty=1").readResponse().body, [])
    }

    func testFirstByteNever() throws {
        let client = try get("first_byte=never")
        XCTAssertTrue(origin.wait { $0.inFlight == 1 })
        client.close()
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 && $0.inFlight == 0 })
    }

    func testDelayAndHeldHead() throws {
        let start = Moment.now
        XCTAssertEqual(try get("delay_ms=30").readResponse().body, picture)
        XCTAssertGreaterThanOrEqual(Moment.now - start, .milliseconds(30))
        let client = try get("hold_head=1&gate=head")
        XCTAssertTrue(origin.gate("head").waitUntilReached())
        origin.gate("head").open()
        XCTAssertEqual(client.readResponse().body, picture)
    }

    // MARK: Length

    func testLengths() throws {
        func lengthAndBody(_ query: String) throws -> (String?, Int) {
            let client = try get(query)
            let head = client.readHead()
            let body = client.readToEnd()
            XCTAssertEqual(client.ending, .closed)
            return (client.header("Content-Length", in: head), body.count)
        }
        XCTAssert(try lengthAndBody("length=lie") == ("1500", 3000))
        XCTAssert(try lengthAndBody("length=none") == (nil, 3000))
        XCTAssert(try lengthAndBody("length=huge") == ("1125899906842624", 3000))
        XCTAssert(try lengthAndBody("length=-5") == ("-5", 3000))
        XCTAssert(try lengthAndBody("short_by=10") == ("3000", 2990))
        XCTAssert(try lengthAndBody("close_after=100") == ("3000", 100))
        XCTAssert(try lengthAndBody("close_after=0") == ("3000", 0))
    }

    func testReset() throws {
        for count in [0, 1, 2999] {
            let client = try get("reset_after=\(count)")
            _ = client.readHead()
            XCTAssertEqual(client.readToEnd(), Array(picture.prefix(count)))
            XCTAssertEqual(client.ending, .reset)
        }
    }

    func testChunked() throws {
        let client = try get("chunked=1&chunk=1000&keepalive=0")
        XCTAssertNil(client.header("Content-Length", in: client.readHead()))
        let whole = chunks(client.readToEnd())
        XCTAssertEqual(whole.sizes, [1000, 1000, 1000])
        XCTAssertEqual(whole.body, picture)
        XCTAssertTrue(whole.isComplete)
        let cut = try get("cut_chunked=1")
        _ = cut.readHead()
        let part = chunks(cut.readToEnd())
        XCTAssertEqual(part.body, picture)
        XCTAssertFalse(part.isComplete)
        XCTAssertEqual(cut.ending, .closed)
    }

    // MARK: Time

    func testStall() throws {
        let client = try get("stall_after=5")
        _ = client.readHead()
        XCTAssertEqual(client.read(5), Array(picture.prefix(5)))
        XCTAssertEqual(origin.log.inFlight, 1)
        client.close()
        XCTAssertTrue(origin.wait { $0.openConnections == 0 && $0.arrivals[0].isAbandoned })
    }

    func testHold() throws {
        let client = try get("hold_after=5&gate=five")
        _ = client.readHead()
        XCTAssertEqual(client.read(5), Array(picture.prefix(5)))
        XCTAssertTrue(origin.gate("five").waitUntilReached())
        origin.gate("five").open()
        XCTAssertEqual(client.read(2995), Array(picture.dropFirst(5)))
    }

    func testHoldThenReset() throws {
        let client = try get("hold_after=5&gate=g&reset_after=9")
        _ = client.readHead()
        XCTAssertEqual(client.read(5).count, 5)
        origin.gate("g").open()
        XCTAssertEqual(client.readToEnd().count, 4)
        XCTAssertEqual(client.ending, .reset)
    }

    func testThrottling() throws {
        func time(_ query: String) throws -> Duration {
            let start = Moment.now
            XCTAssertEqual(try get(query).readResponse().body, picture, query)
            return .now - start
        }
        XCTAssertGreaterThanOrEqual(try time("chunk=1000&pause_ms=20"), .milliseconds(40))
        XCTAssertGreaterThanOrEqual(try time("rate=30000"), .milliseconds(80))
        _ = try time("drip_ms=0")
        XCTAssertGreaterThanOrEqual(try time("drip_ms=0&chunk=1500&pause_ms=10"), .milliseconds(10))
    }

    // MARK: Coding

    func testContentCodings() throws {
        for coding in ["gzip", "deflate"] {
            let client = try get("\(coding)=1")
            let response = client.readResponse()
            XCTAssertEqual(client.header("Content-Encoding", in: response.head), coding)
            XCTAssertNotEqual(response.body, picture)
            let scratch = try ScratchDirectory()
            XCTAssertEqual(
                try curl("--compressed", "-o", scratch.path + "/out", origin.url("/pictures/a.jpg?\(coding)=1"))
                    .exitCode, 0)
            XCTAssertEqual(try scratch.read("out"), picture)
        }
        let bomb = try curl(
            "--compressed", "-o", "/dev/null", "-w", "%{size_download}",
            origin.url("/pictures/a.jpg?gzip_bomb=50000000"))
        XCTAssertEqual(bomb.exitCode, 0)
        XCTAssertLessThan(try XCTUnwrap(Int(bomb.output)), 100_000)
    }

    // MARK: Ranges and validators

    func testRanges() throws {
        func range(_ asked: String, _ query: String = "", more: String = "") throws -> (Int?, String?, [UInt8]) {
            let client = try get(query, headers: "Range: \(asked)\r\n\(more)")
            let response = client.readResponse()
            return (response.status, client.header("Content-Range", in: response.head), response.body)
        }
        func equal(_ a: (Int?, String?, [UInt8]), _ b: (Int?, String?, [UInt8]), line: UInt = #line) {
            XCTAssert(a == b, "\(a.0 ?? 0) \(a.1 ?? "-") \(a.2.count)", line: line)
        }
        equal(try range("bytes=0-9"), (206, "bytes 0-9/3000", Array(picture[..<10])))
        equal(try range("bytes=2990-"), (206, "bytes 2990-2999/3000", Array(picture[2990...])))
        equal(try range("bytes=2990-9999"), (206, "bytes 2990-2999/3000", Array(picture[2990...])))
        equal(try range("bytes=-5"), (206, "bytes 2995-2999/3000", Array(picture[2995...])))
        equal(try range("bytes=3000-"), (416, "bytes */3000", []))
        equal(try range("bytes=0-1,4-5"), (200, nil, picture))
        equal(try range("bytes=0-9", "range=ignore"), (200, nil, picture))
        equal(try range("bytes=0-9", "range=wrong"), (206, "bytes 1-10/3001", Array(picture[..<10])))
        equal(try range("bytes=0-9", "range=416"), (416, "bytes */3000", []))
        equal(
            try range("bytes=5-6", "etag=v", more: "If-Range: \"v\"\r\n"),
            (206, "bytes 5-6/3000", Array(picture[5...6])))
        equal(try range("bytes=5-6", "etag=v", more: "If-Range: \"old\"\r\n"), (200, nil, picture))
    }

    func testNotModified() throws {
        let client = try get("etag=v", headers: "If-None-Match: \"x\", \"v\"\r\n")
        XCTAssertEqual(client.readHead().prefix(12), "HTTP/1.1 304")
        client.get("/pictures/a.jpg?etag=v", headers: "If-None-Match: \"old\"\r\n")
        XCTAssertEqual(client.readResponse().body, picture)
    }

    // MARK: Other paths

    func testOtherPaths() throws {
        let client = try RawClient(port: origin.port)
        func ask(_ target: String) -> (status: Int?, location: String?, body: String) {
            client.get(target)
            let response = client.readResponse()
            return (
                response.status, client.header("Location", in: response.head),
                String(decoding: response.body, as: UTF8.self)
            )
        }
        XCTAssertEqual(ask("/status/418").status, 418)
        XCTAssertEqual(ask("/status/99").status, 400)
        XCTAssert(ask("/redirect?to=/x%3Fa%3D1&code=307") == (307, "/x?a=1", ""))
        XCTAssertEqual(ask("/redirect/2?to=/x%3Fa%3D1").location, "/redirect/1?code=302&to=/x%3Fa%3D1")
        XCTAssertEqual(ask("/redirect/1?code=302&to=/x%3Fa%3D1").location, "/x?a=1")
        XCTAssertEqual(ask("/redirect-loop").location, "/redirect-loop")
        XCTAssertEqual((0..<3).map { _ in ask("/flaky?id=1&fail=2&status=500").status }, [500, 500, 200])
        XCTAssertEqual(ask("/flaky?id=2&fail=0&picture=a.jpg").status, 200)
        XCTAssertEqual((0..<2).map { _ in ask("/flaky?id=3&retry_after=1").status }, [503, 200])
        XCTAssertTrue(
            ask("/echo?%22").body.hasPrefix(
                #"{"method":"GET","target":"/echo?%22","path":"/echo","version":"HTTP/1.1","headers":[["Host","origin"]]"#
            ))
        client.get("/garbage")
        XCTAssertFalse(String(decoding: client.readToEnd(), as: UTF8.self).hasPrefix("HTTP"))
    }

    // MARK: The whole origin

    func testSegmentsAndLatency() throws {
        origin.segmentSize = 1
        origin.latency = .milliseconds(20)
        let start = Moment.now
        XCTAssertEqual(try get("").readResponse().body, picture)
        XCTAssertGreaterThanOrEqual(Moment.now - start, .milliseconds(20))
        let other = try Origin(segmentSize: 7, latency: .milliseconds(1))
        XCTAssertEqual(other.segmentSize, 7)
        XCTAssertEqual(other.latency, .milliseconds(1))
        other.stop()
    }
}

extension String {
    func components(_ separator: String) -> [String] {
        split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
