import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Issue 3 "Security": nobody writes lines of their own into a request, and nothing of one that tries is sent.
final class InjectionTests: TransportTestCase {
    private static let breaks = ["\r\n", "\n", "\r", "\u{0}", "\u{7F}"]

    func testEverywhere() throws {
        for text in Self.breaks {
            let value = "a\(text)X: y"
            for field in [HeaderField("X", value), HeaderField(value, "a"), HeaderField("Cookie", "a=\(value)")] {
                let id = try start(origin.url("/echo"), fields: [field])
                XCTAssertEqual(record(of: id).failure?.code, .invalidHeader)
            }
            for method in [value, "GET\(text)"] {
                XCTAssertEqual(record(of: try start(origin.url("/echo"), method: method)).failure?.code, .invalidHeader)
            }
            for credential in [Credential(user: value, password: "p"), Credential(user: "u", password: value)] {
                let failure = record(of: try start(origin.url("/echo"), credential: credential)).failure
                XCTAssertEqual(failure?.code, .invalidHeader)
                XCTAssertFalse(failure?.message.contains("X: y") ?? true)
            }
            for url in [origin.url("/\(value)"), origin.url("/?\(value)"), "http://\(value)/"] {
                XCTAssertThrowsError(try transport.parse(url)) { XCTAssertEqual(($0 as? Failure)?.code, .invalidURL) }
                let base = try transport.parse(origin.url("/"))
                XCTAssertThrowsError(try transport.resolveReference(url, against: base))
            }
        }
        for coded in ["%0d%0a", "%0A", "%00"] {
            XCTAssertThrowsError(try transport.parse("http://me\(coded):p@127.0.0.1:\(origin.port)/"), coded)
            XCTAssertThrowsError(try transport.parse("http://me:p\(coded)@127.0.0.1:\(origin.port)/"), coded)
        }
        let delete = origin.url("/echo").replacing("http://", with: "http://me%7f:p@")
        XCTAssertEqual(try failure(of: delete)?.code, .invalidHeader)
        XCTAssertEqual(origin.log.connections.count, 0)
    }

    /// A length of the caller's own would leave a rest of its body on the connection: the next request's beginning.
    func testARequestIsFramedByTheLibraryAlone() throws {
        for (name, _) in HeaderRules.reserved {
            for spelling in [name, name.uppercased()] {
                for method in ["GET", "POST"] {
                    let fields = [HeaderField(spelling, "1")]
                    let id = try start(origin.url("/echo"), method: method, fields: fields)
                    XCTAssertEqual(record(of: id).failure?.code, .invalidHeader, spelling)
                }
            }
        }
        XCTAssertEqual(origin.log.connections.count, 0)
    }
}
