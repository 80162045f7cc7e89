import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class ResponseHeadParserTests: XCTestCase {
    private func parse(_ lines: [String], maximumBytes: Int = 10_000) -> (
        ResponseHeadParser.Step, Result<ResponseHead, Failure>
    ) {
        var parser = ResponseHeadParser(maximumBytes: maximumBytes)
        var step = ResponseHeadParser.Step.more
        for line in lines {
            step = Array((line + "\r\n").utf8).withUnsafeBytes { parser.receive($0) }
            if case .failed = step { break }
        }
        return (step, Result { () throws(Failure) in try parser.takeHead() })
    }

    func testStatusLines() throws {
        for (line, status, version) in [
            ("HTTP/1.1 200 OK", Int32(200), Int32(11)), ("HTTP/1.0 404 Not Found", 404, 10), ("HTTP/2 204 ", 204, 20),
            ("HTTP/1.1 299", 299, 11), ("HTTP/3 200", 200, 30),
        ] {
            let (step, head) = parse([line, ""])
            XCTAssertEqual(step, .complete)
            XCTAssertEqual(try head.get().status, status)
            XCTAssertEqual(try head.get().httpVersion, version)
        }
    }

    /// However curl reads them.
    func testLinesThatAreNoStatusLine() {
        for line in [
            "HTTP/1.1 2000 OK", "HTTP/1.1 4294967496 OK", "HTTP/1.1 20 OK", "HTTP/1.1 099 OK", "HTTP/1.1 -20 OK",
            "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1\t200\tOK", "HTTP/1.1 2x0", "http/1.1 200 OK", "ICY 200 OK", "A: b", " a",
        ] {
            let (step, _) = parse([line, ""])
            guard case .failed(let failure) = step else { return XCTFail("\(line): \(step)") }
            XCTAssertEqual(failure.code, .protocolError, line)
            XCTAssertTrue(failure.message.contains("status line"), failure.message)
        }
    }

    func testACarriageReturnWithinALine() {
        for line in ["A: b\rC: d", "A\r: b", "A: b\r", " c\rd"] {
            let (step, _) = parse(["HTTP/1.1 200 OK", "X: y", line, ""])
            guard case .failed(let failure) = step else { return XCTFail("\(line.debugDescription): \(step)") }
            XCTAssertEqual(failure.code, .protocolError)
            XCTAssertTrue(failure.message.contains("carriage return"), failure.message)
        }
        guard case .failed = parse(["HTTP/1.1 200 O\rK", ""]).0 else { return XCTFail("the status line") }
    }

    func testTwoLocations() throws {
        let head = ["HTTP/1.1 302 x", "Location: /a", "X: y"]
        XCTAssertEqual(try parse(head + ["location: /a", ""]).1.get().first(named: "Location"), "/a")
        for other in ["location: /b", "Location:", "LOCATION: /A"] {
            let (_, result) = parse(head + [other, ""])
            guard case .failure(let failure) = result else { return XCTFail(other) }
            XCTAssertEqual(failure.code, .protocolError)
            XCTAssertTrue(failure.message.contains("Location"), failure.message)
        }
        // There it leads nowhere.
        XCTAssertNoThrow(try parse(["HTTP/1.1 200 OK", "Location: /a", "Location: /b", ""]).1.get())
    }

    func testFieldsAreKeptAsReceived() throws {
        let (_, head) = parse(["HTTP/1.1 200 OK", "A:1", "a: 2 ", "B:", "C: x", "\ty", "D: é", ""])
        XCTAssertEqual(
            try head.get().fields,
            [
                HeaderField("A", "1"), HeaderField("a", "2"), HeaderField("B", ""), HeaderField("C", "x y"),
                HeaderField("D", "é"),
            ])
    }

    func testBytesThatAreNotUTF8AreLatin1() throws {
        var parser = ResponseHeadParser(maximumBytes: 100)
        for line in [Array("HTTP/1.1 200 OK\r\n".utf8), Array("A: ".utf8) + [0xE9, 0x0D, 0x0A], [0x0D, 0x0A]] {
            _ = line.withUnsafeBytes { parser.receive($0) }
        }
        XCTAssertEqual(try parser.takeHead().fields, [HeaderField("A", "é")])
    }

    func testFieldsOfAnyLengthAndNumber() throws {
        let long = String(repeating: "é", count: 3_000)
        let lines = (0..<200).map { "X-\($0): \($0 % 7 == 0 ? long : "v\($0)")" } + ["X-7: again"]
        let head = try parse(["HTTP/1.1 200 OK"] + lines + [" and on", ""], maximumBytes: 1_000_000).1.get()
        XCTAssertEqual(head.fields.map { "\($0.name): \($0.value)" }, lines.dropLast() + ["X-7: again and on"])
        XCTAssertEqual(head.first(named: "x-7"), long, "the first of them, in any case")
        XCTAssertEqual(head.first(named: "X-199"), "v199")
        XCTAssertNil(head.first(named: "X-200"))
        XCTAssertNil(head.first(named: "X"))
    }

    func testHeadsAreEqualHoweverTheyWereMade() throws {
        let received = try parse(["HTTP/1.1 200 OK", "Content-Type: Image/PNG; q=1", "A: 1", "A: 2", ""]).1.get()
        let fields = [HeaderField("Content-Type", "Image/PNG; q=1"), HeaderField("A", "1"), HeaderField("A", "2")]
        var made = ResponseHead(status: 200, httpVersion: 11, fields: fields, contentLength: nil, isEncoded: false)
        XCTAssertEqual(received, made)
        XCTAssertEqual(received.mediaType, "image/png")
        XCTAssertEqual(received.mediaType, made.mediaType)
        for name in ["content-type", "A", "B", ""] {
            XCTAssertEqual(received.first(named: name), made.first(named: name))
        }
        made.fields.removeLast()
        XCTAssertNotEqual(received, made)
        var changed = received
        changed.fields.append(HeaderField("B", "3"))
        XCTAssertEqual(changed.first(named: "B"), "3")
        XCTAssertNil(received.first(named: "B"), "a copy is its own")
    }

    func testACopyOfWhatWasReceivedIsItsOwn() throws {
        let received = try parse(["HTTP/1.1 200 OK", "Content-Type: image/png", "Content-Length: 7", ""]).1.get()
        var changed = received
        changed.status = 206
        changed.contentLength = 3
        changed.outcome = .resumed
        XCTAssertEqual(changed.first(named: "Content-Length"), "7", "as it was sent")
        XCTAssertEqual(changed.mediaType, "image/png")
        XCTAssertEqual(received.status, 200)
        XCTAssertEqual(received.contentLength, 7)
        XCTAssertEqual(received.outcome, .network)
        XCTAssertEqual(received.fields, changed.fields)
    }

    func testContentLengthsThatDifferAreBothNamed() {
        for fields in [["Content-Length: 5", "Content-Length: 75"], ["Content-Length: 5, 75"]] {
            XCTAssertThrowsError(try parse(["HTTP/1.1 200 OK"] + fields + [""]).1.get()) { error in
                XCTAssertEqual(
                    (error as? Failure)?.message,
                    "the response has two Content-Lengths that differ: “5” and “75”")
            }
        }
    }

    func testContentLength() {
        let table: [([String], Int64?, Bool)] = [
            ([], nil, true), (["Content-Length: 5"], 5, true), (["content-length: 0"], 0, true),
            (["Content-Length: 5", "Content-Length: 5"], 5, true), (["Content-Length: 5, 5"], 5, true),
            (["Content-Length: 5", "Content-Length: 6"], nil, false), (["Content-Length: 5, 6"], nil, false),
            (["Content-Length: +5"], nil, false), (["Content-Length: -5"], nil, false),
            (["Content-Length: 0x5"], nil, false),
            (["Content-Length: 5 5"], nil, false), (["Content-Length:"], nil, false),
            (["Content-Length: 5,"], nil, false),
            (["Content-Length: 9223372036854775807"], .max, true),
            (["Content-Length: 9223372036854775808"], nil, false),
            (["Content-Length: 5", "Transfer-Encoding: chunked"], nil, true),
            (["Content-Length: 5", "Transfer-Encoding: identity, chunked"], nil, true),
            (["Content-Length: 5", "Transfer-Encoding:"], nil, false),
            (["Transfer-Encoding: ,", "Content-Length: 5"], nil, false),
            (["Content-Length: 5", "Transfer-Encoding: identity"], nil, false),
            (["Content-Length: 5", "Transfer-Encoding: identity, identity"], nil, false),
            (["Content-Length: 5", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"], nil, false),
            (["Transfer-Encoding: identity"], nil, true), (["Transfer-Encoding:"], nil, true),
        ]
        for (fields, length, isValid) in table {
            let (_, head) = parse(["HTTP/1.1 200 OK"] + fields + [""])
            switch head {
            case .success(let head):
                XCTAssertTrue(isValid, "\(fields)")
                XCTAssertEqual(head.contentLength, length, "\(fields)")
            case .failure(let failure):
                XCTAssertFalse(isValid, "\(fields)")
                XCTAssertEqual(failure.code, .protocolError)
            }
        }
    }

    func testEncodings() throws {
        for (value, isEncoded) in [("gzip", true), ("identity", false), ("Identity, ", false), ("identity, br", true)] {
            XCTAssertEqual(
                try parse(["HTTP/1.1 200 OK", "Content-Encoding: \(value)", ""]).1.get().isEncoded, isEncoded)
        }
        let unknown = try parse(["HTTP/1.1 200 OK", "Content-Encoding: gzip, Rot13", ""]).1.get()
        XCTAssertEqual(unknown.remainingCoding, "Rot13")
        XCTAssertFalse(unknown.isEncoded, "nothing of it is undone")
    }

    /// Each counts, wherever it stands.
    func testBudget() {
        let start = ["HTTP/1.1 200 OK"]
        let fields = (0..<HeaderBudget.maximumFields).map { "X-\($0): y" }
        let value = String(repeating: "y", count: HeaderBudget.maximumFieldBytes - 100)
        let longest = String(repeating: "y", count: HeaderBudget.maximumFieldBytes - 5)
        func interim(_ count: Int) -> [String] { (0..<count).flatMap { _ in ["HTTP/1.1 103 x", ""] } }
        let table: [(String, [String], Bool)] = [
            ("as many fields as allowed", start + fields + [""], true),
            ("one more", start + fields + ["X: y", ""], false),
            ("as many with trailers", start + fields.dropLast() + ["", "T: t"], true),
            ("one more as a trailer", start + fields + ["", "T: t"], false),
            ("as many in two heads", ["HTTP/1.1 103 x"] + fields + [""] + start + [""], true),
            ("one more in interim heads", ["HTTP/1.1 103 x"] + fields + ["X: y", ""] + start + [""], false),
            ("as many responses as allowed", interim(HeaderBudget.maximumResponses - 1) + start + [""], true),
            ("interim heads of nothing", interim(HeaderBudget.maximumResponses + 1), false),
            ("the longest line", start + ["X: \(longest)", ""], true),
            ("a byte more", start + ["X: y\(longest)", ""], false),
            ("a long field", start + ["X: \(value)", ""], true),
            ("a longer one", start + ["X: \(value)", " " + String(repeating: "z", count: 200), ""], false),
            ("many folded lines", start + ["X: y"] + Array(repeating: " z", count: 30_000) + [""], false),
            ("many folded lines of a trailer", start + ["", "X: y"] + Array(repeating: " z", count: 30_000), false),
        ]
        for (name, lines, isTaken) in table {
            switch parse(lines, maximumBytes: 256 << 10).0 {
            case .failed(let failure):
                XCTAssertFalse(isTaken, "\(name): \(failure.message)")
                XCTAssertEqual(failure.code, .headerLimit, name)
                let part = name.contains("trailer") ? "trailers" : name.contains("interim") ? "interim" : "header"
                XCTAssertTrue(failure.message.hasPrefix("the response's \(part)"), "\(name): \(failure.message)")
                if name == "a longer one" || name == "many folded lines" {
                    XCTAssertTrue(failure.message.contains("the field “X”"), "\(name): \(failure.message)")
                }
            default: XCTAssertTrue(isTaken, name)
            }
        }
    }

    func testTheNameOfALongFieldIsShortAndPrintable() {
        let name = "X-\u{1b}[31m" + String(repeating: "y", count: 200)
        let line = "\(name): \(String(repeating: "z", count: HeaderBudget.maximumFieldBytes))"
        guard case .failed(let failure) = parse(["HTTP/1.1 200 OK", line], maximumBytes: 256 << 10).0 else {
            return XCTFail("taken")
        }
        XCTAssertTrue(failure.message.contains("“X-\\x1b[31my"), failure.message)
        XCTAssertLessThan(failure.message.utf8.count, 200)
    }

    /// Bytes, and not the characters that they would be in ISO 8859-1.
    func testALocationThatIsNotUTF8() throws {
        for (bytes, expected) in [
            ([UInt8]("/caf".utf8) + [0xE9, 0xE2, 0x80, 0xAE] + "?a b".utf8, "/caf%E9%E2%80%AE?a b"),
            (Array("/café".utf8), "/café"), (Array("/caf%e9".utf8), "/caf%e9"),
        ] {
            var parser = ResponseHeadParser(maximumBytes: 10_000)
            for line in [Array("HTTP/1.1 302 x\r\n".utf8), Array("LOCATION: ".utf8) + bytes + [13, 10], [13, 10]] {
                _ = line.withUnsafeBytes { parser.receive($0) }
            }
            XCTAssertEqual(try parser.takeHead().first(named: "Location"), expected)
        }
    }

    /// Nothing precedes what it would continue.
    func testAFoldedLineBehindTheStatusLine() {
        for line in [" X: y", "\ty", "  "] {
            guard case .failed(let failure) = parse(["HTTP/1.1 200 OK", line, ""]).0 else {
                XCTFail("taken: \(line)")
                continue
            }
            XCTAssertEqual(failure.code, .protocolError)
            XCTAssertTrue(failure.message.contains("begins with a space"), failure.message)
        }
    }

    func testInterimHeadsCountForTheLimitOnly() throws {
        let lines = ["HTTP/1.1 103 Early Hints", "A: 1", "", "HTTP/1.1 200 OK", "B: 2", ""]
        XCTAssertEqual(try parse(lines).1.get().fields, [HeaderField("B", "2")])
        let size = lines.reduce(0) { $0 + $1.utf8.count + 2 }
        XCTAssertEqual(parse(lines, maximumBytes: size).0, .complete)
        guard case .failed(let failure) = parse(lines, maximumBytes: size - 1).0 else { return XCTFail("no limit") }
        XCTAssertEqual(failure.code, .headerLimit)
    }
}
