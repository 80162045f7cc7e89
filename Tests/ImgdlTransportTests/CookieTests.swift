import Glibc
import ImgdlCore
import Origin
import Foundation
import XCTest

@testable import ImgdlTransport

/// Features O5, B17: one jar for each transport, for requests that use it.
final class CookieTests: TransportTestCase {
    private func sent(_ path: String, usesCookies: Bool = true, to url: String? = nil) throws -> String? {
        let id = try start(url ?? origin.url(path), usesCookies: usesCookies)
        XCTAssertTrue(record(of: id).isFinished)
        return origin.log.requests.last?.headers["Cookie"]
    }

    private func directory() throws -> String {
        var template = Array("/tmp/cookies-XXXXXX".utf8CString)
        let made = mkdtemp(&template)
        let path = String(cString: try XCTUnwrap(made))
        addTeardownBlock {
            for name in ["jar", "other"] { unlink("\(path)/\(name)") }
            rmdir(path)
        }
        return path
    }

    private func keep(_ file: String) throws {
        var configuration = TransportConfiguration(proxy: "")
        configuration.cookieFile = file
        try makeTransport(configuration)
    }

    func testOnlyForThoseWhoUseThem() throws {
        XCTAssertNil(try sent("/cookies/set?a=1", usesCookies: false))
        XCTAssertNil(try sent("/echo"), "a request without the option stores none")
        _ = try sent("/cookies/set?a=2&path=/")
        for _ in 0..<3 {
            XCTAssertNil(try sent("/echo", usesCookies: false))
            XCTAssertEqual(try sent("/echo"), "a=2")
        }
        XCTAssertNil(try sent("/cookies/set?b=1&path=/", usesCookies: false))
        XCTAssertEqual(try sent("/echo"), "a=2")
        try makeTransport()
        XCTAssertNil(try sent("/echo"), "each transport has its own")
    }

    func testTheirOwnRules() throws {
        _ = try sent("/cookies/set?deep=1&path=/deep")
        _ = try sent("/cookies/set?other=1&path=/&domain=example.org")
        XCTAssertNil(try sent("/echo"))
        origin.route("/deep/a") { try $0.respond(text: "a") }
        XCTAssertEqual(try sent("/deep/a"), "deep=1")
        XCTAssertNil(try sent("", to: "http://localhost:\(origin.port)/echo"), "another host")
        _ = try sent("/cookies/set?gone=1&path=/&max_age=0")
        XCTAssertNil(try sent("/echo"))
        // curl trusts this machine's own addresses like TLS.
        try makeTransport(resolver: ThreadedResolver(lookUp: { _ in .success(["127.0.0.1"]) }))
        let named = "http://pictures.example:\(origin.port)"
        _ = try sent("", to: named + "/cookies/set?safe=1&path=/&secure=1")
        _ = try sent("", to: named + "/cookies/set?plain=1&path=/")
        XCTAssertEqual(try sent("", to: named + "/echo"), "plain=1")
        XCTAssertNil(try sent("", to: "http://other.example:\(origin.port)/echo"))
    }

    func testKeptInAFile() throws {
        let file = try directory() + "/jar"
        try keep(file)
        _ = try sent("/cookies/set?a=1&path=/&max_age=1000")
        transport.close()
        var status = stat()
        XCTAssertEqual(stat(file, &status), 0)
        XCTAssertEqual(status.st_mode & 0o777, 0o600)
        try keep(file)
        XCTAssertEqual(try sent("/echo"), "a=1")
        XCTAssertNil(try sent("/echo", usesCookies: false))
        transport.close()
        try keep(file)
        XCTAssertEqual(try sent("/echo"), "a=1", "written again")
    }

    func testFilesThatCannotBeUsed() throws {
        let directory = try directory()
        let garbage = directory + "/other"
        let descriptor = open(garbage, O_WRONLY | O_CREAT, 0o600)
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        XCTAssertEqual(write(descriptor, bytes, bytes.count), bytes.count)
        close(descriptor)
        let pipe = directory + "/pipe"
        XCTAssertEqual(mkfifo(pipe, 0o600), 0)
        for file in [garbage, "/nonexistent/jar", directory, pipe] {
            try keep(file)
            XCTAssertNil(try sent("/echo"))
            _ = try sent("/cookies/set?a=1&path=/&max_age=1000")
            transport.close()
        }
        // None of them is a cookie file, so none becomes one.
        XCTAssertEqual([UInt8](try XCTUnwrap(FileManager.default.contents(atPath: garbage))), bytes)
        var status = stat()
        XCTAssertEqual(stat(pipe, &status), 0)
        XCTAssertEqual(status.st_mode & S_IFMT, S_IFIFO)
    }

    func testValuesWithControlCharactersAreNotStored() throws {
        origin.route("/set") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nSet-Cookie: a=x\u{1}y\r\nContent-Length: 0\r\n\r\n")
        }
        _ = try sent("/set")
        XCTAssertNil(try sent("/echo"))
        let id = try start(origin.url("/echo"), fields: [HeaderField("Cookie", "a=1\r\nX: y")], usesCookies: true)
        XCTAssertEqual(record(of: id).failure?.code, .invalidHeader)
    }
}
