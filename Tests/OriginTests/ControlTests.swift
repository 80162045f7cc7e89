import Origin
import XCTest

/// What tests in other languages ask for by URL.
final class ControlTests: XCTestCase {
    private var origin: Origin!

    override func setUpWithError() throws {
        origin = try Origin()
        origin.content["a"] = Picture([1, 2, 3, 4], type: "image/gif")
    }

    override func tearDown() {
        origin.stop()
        origin = nil
    }

    private func ask(_ path: String) throws -> (status: Int?, text: String) {
        let client = try RawClient(port: origin.port)
        client.get(path)
        let response = client.readResponse()
        return (response.status, String(decoding: response.body, as: UTF8.self))
    }

    func testLogAsJSON() throws {
        let client = try RawClient(port: origin.port)
        client.get("/pictures/a?n=1", headers: "X-Q: \"\\\r\n")
        _ = client.readResponse()
        client.close()
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 })
        let expected =
            #"{"requests":[{"method":"GET","target":"/pictures/a?n=1","path":"/pictures/a","version":"HTTP/1.1","#
            + #""headers":[["Host","origin"],["X-Q","\"\\"]],"connection":1,"sequence":0,"body_bytes":0,"#
            + #""bytes_sent":4}],"#
            + #""counts":{"/pictures/a":1},"in_flight":0,"max_in_flight":1,"open_connections":0,"#
            + #""max_open_connections":1,"connections_closed_by_client":1,"abandoned":0,"#
            + #""connections":[{"number":1,"requests":1,"open":false,"closed_by_client":true,"#
            + #""held_back":false,"tls":null}],"handshakes":0}"#
        for _ in 0..<2 { XCTAssertEqual(try ask("/_log").text, expected, "asking leaves no trace") }
    }

    /// Those that are asked for, those that took long, and those that are not answered.
    func testTimes() throws {
        let held = try RawClient(port: origin.port)
        held.get("/pictures/a?hold_after=2")
        XCTAssertTrue(origin.gate("hold").waitUntilReached())
        XCTAssertEqual(try ask("/redirect?to=/pictures/a").status, 302)
        XCTAssertEqual(try ask("/pictures/a?n=1").status, 200)
        let times = try ask("/_times?target=%2Fredirect%3Fto%3D%2Fpictures%2Fa&slower_ms=100000").text
        let patterns = [
            #"/pictures/a\?hold_after=2 on connection 1: came \d+\.\d{3}, not answered, \d+ bytes"#,
            #"/redirect\?to=/pictures/a on connection 2: came \d+\.\d{3}, answered \d+\.\d{3}, 0 bytes"#,
        ]
        let lines = times.split(separator: "\n").map(String.init)
        XCTAssertEqual(lines.count, patterns.count, times)
        for (line, pattern) in zip(lines, patterns) {
            XCTAssertNotNil(try Regex(pattern).wholeMatch(in: line), line)
        }
        XCTAssertEqual(try ask("/_gate/hold/open").status, 200)
        XCTAssertEqual(held.readResponse().body, [1, 2, 3, 4])
        XCTAssertEqual(try ask("/_times?slower_ms=100000").text, "")
        XCTAssertEqual(try ask("/_times?slower_ms=0").text.split(separator: "\n").count, 3)
    }

    func testResetForgetsTheLogAndTheFailures() throws {
        XCTAssertEqual(try ask("/flaky?id=x").status, 503)
        XCTAssertEqual(try ask("/_reset").status, 200)
        XCTAssertEqual(origin.log.arrivals.count, 0)
        XCTAssertEqual(try ask("/flaky?id=x").status, 503)
        XCTAssertEqual(origin.log.requests.map(\.sequence), [1])
    }

    func testResetKeepsCountOfWhatIsInFlight() throws {
        let client = try RawClient(port: origin.port)
        client.get("/pictures/a?hold_after=2")
        XCTAssertTrue(origin.gate("hold").waitUntilReached())
        XCTAssertEqual(try ask("/_reset").status, 200)
        XCTAssertEqual(origin.log.inFlight, 1)
        XCTAssertEqual(origin.log.openConnections, 1)
        XCTAssertEqual(origin.log.maxOpenConnections, 1)
        XCTAssertEqual(try ask("/_gate/hold/open").status, 200)
        XCTAssertEqual(client.readResponse().body, [1, 2, 3, 4])
        XCTAssertEqual(origin.log.inFlight, 0)
    }

    func testGates() throws {
        XCTAssertEqual(try ask("/_gate/g").text, #"{"open":false,"waiting":0}"#)
        let client = try RawClient(port: origin.port)
        client.get("/pictures/a?hold_head=1&gate=g")
        XCTAssertEqual(try ask("/_gate/g/reached?count=1").status, 200)
        XCTAssertEqual(try ask("/_gate/g").text, #"{"open":false,"waiting":1}"#)
        XCTAssertEqual(try ask("/_gate/g/reached?count=2&deadline_ms=1").status, 504)
        XCTAssertEqual(try ask("/_gate/g/open").status, 200)
        XCTAssertEqual(client.readResponse().status, 200)
        XCTAssertEqual(try ask("/_gate/g/close").status, 200)
        XCTAssertFalse(origin.gate("g").isOpen)
        XCTAssertEqual(try ask("/_gate/g/slam").status, 404)
        XCTAssertEqual(try ask("/_nothing").status, 404)
    }

    func testWaiting() throws {
        let waiting = try RawClient(port: origin.port)
        waiting.get("/_wait?requests=2&path=/pictures/a&closed_by_client=1&open=1")
        let first = try RawClient(port: origin.port)
        let second = try RawClient(port: origin.port)
        for client in [first, second] {
            client.get("/pictures/a")
            _ = client.readResponse()
        }
        first.close()
        XCTAssertEqual(waiting.readResponse().status, 200)
        XCTAssertEqual(try ask("/_wait?in_flight=1&deadline_ms=1").status, 504)
        XCTAssertEqual(try ask("/_wait?requets=1").status, 400)
    }

    func testOneConnectionForQuestionsAndRequests() throws {
        let client = try RawClient(port: origin.port)
        client.get("/_log")
        _ = client.readResponse()
        XCTAssertEqual(origin.log.openConnections, 0)
        client.get("/pictures/a")
        _ = client.readResponse()
        XCTAssertEqual(origin.log.openConnections, 1)
        client.get("/_log")
        _ = client.readResponse()
        XCTAssertEqual(origin.log.connections.map(\.requests), [1])
    }

    func testAWaitingQuestionDoesNotHoldUpStop() throws {
        let waiting = try RawClient(port: origin.port)
        waiting.get("/_wait?requests=1")
        let other = try RawClient(port: origin.port)
        other.get("/_gate/g/reached")
        let start = Moment.now
        origin.stop()
        _ = waiting.readToEnd()
        XCTAssertLessThan(Moment.now - start, .seconds(5))
    }
}
