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
            for name in ["jar", "other", "pipe"] { unlink("\(path)/\(name)") }
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
        _ = try sent("/cookies/set?safe=1&path=/&secure=1")
        XCTAssertNil(try sent("/echo"), "this machine's own addresses are not TLS")
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
        let large = directory + "/jar"
        XCTAssertTrue(FileManager.default.createFile(atPath: large, contents: Data(CookieFile.bytes([]))))
        XCTAssertEqual(truncate(large, off_t(CookieFile.maximumBytes + 1)), 0)
        for (file, cause) in [
            ("/nonexistent/jar", "cannot be written: its folder: No such file"), (directory, "it is not a file"),
            (pipe, "it is not a file"), ("\(garbage)/jar", "Not a directory"), ("", "No such file"),
            (garbage, "it holds something else than cookies in Netscape's format"),
            (large, "it is larger than 16777216 bytes"),
        ] {
            XCTAssertThrowsError(try CookieJar(file: file), file) { error in
                XCTAssertEqual((error as? Failure)?.code, .invalidOperation, file)
                let message = (error as? Failure)?.message ?? ""
                XCTAssertTrue(message.contains("cookie_file “\(file)” ") && message.contains(cause), message)
            }
        }
        // None of them is a cookie file, so none becomes one, and nothing is left beside them.
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        XCTAssertEqual(names.sorted(), ["jar", "other", "pipe"])
        XCTAssertEqual([UInt8](try XCTUnwrap(FileManager.default.contents(atPath: garbage))), bytes)
        var status = stat()
        XCTAssertEqual(stat(pipe, &status), 0)
        XCTAssertEqual(status.st_mode & S_IFMT, S_IFIFO)
    }

    /// Found out before there are cookies to lose.
    func testFilesThatMayNotBeWritten() throws {
        let directory = try directory()
        let jar = directory + "/jar"
        let bytes = CookieFile.bytes([])
        XCTAssertTrue(FileManager.default.createFile(atPath: jar, contents: Data(bytes)))
        func assertUnwritable(_ file: String, _ cause: String, line: UInt = #line) throws {
            try asUserWithoutPrivileges {
                XCTAssertThrowsError(try CookieJar(file: file), line: line) { error in
                    XCTAssertEqual((error as? Failure)?.code, .invalidOperation, line: line)
                    let message = "cookie_file “\(file)” cannot be written: \(cause)"
                    XCTAssertEqual((error as? Failure)?.message, message, line: line)
                }
            }
        }
        defer { chmod(directory, 0o700) }
        // The file, and the folder, where it is made anew.
        XCTAssertEqual(chmod(jar, 0o444), 0)
        XCTAssertEqual(chmod(directory, 0o777), 0)
        try assertUnwritable(jar, "Permission denied")
        XCTAssertEqual(chmod(jar, 0o666), 0)
        XCTAssertEqual(chmod(directory, 0o555), 0)
        try assertUnwritable(jar, "its folder: Permission denied")
        try assertUnwritable(directory + "/other", "its folder: Permission denied")
        XCTAssertEqual(chmod(directory, 0o777), 0)
        try asUserWithoutPrivileges { XCTAssertNoThrow(try CookieJar(file: jar)) }
        XCTAssertEqual(FileManager.default.contents(atPath: jar).map { [UInt8]($0) }, bytes)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: directory), ["jar"])
    }

    /// The jar is what the link leads to, and the link stays.
    func testACookieFileBehindALink() throws {
        let directory = try directory()
        let (link, target) = (directory + "/link", directory + "/target")
        let line = "a.example\tFALSE\t/\tFALSE\t99999999999\ta\t1\n"
        XCTAssertTrue(FileManager.default.createFile(atPath: target, contents: Data(line.utf8)))
        XCTAssertEqual(symlink("target", link), 0)
        try CookieJar(file: link).takeFile()?()
        XCTAssertEqual(try FileManager.default.destinationOfSymbolicLink(atPath: link), "target")
        let text = try String(contentsOfFile: target, encoding: .utf8)
        XCTAssertTrue(text.hasPrefix(CookieFile.beginnings[0]) && text.contains("a.example\tFALSE\t/\tFALSE\t"), text)
        XCTAssertTrue(text.hasSuffix("\ta\t1\n"), text)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: directory).sorted(), ["link", "target"])
    }

    /// The links stay there, too; so is one whose folder is missing refused.
    func testACookieFileBehindLinksThatLeadNowhereYet() throws {
        let directory = try directory()
        let (first, second) = (directory + "/first", directory + "/second")
        XCTAssertEqual(mkdir(directory + "/folder", 0o700), 0)
        XCTAssertEqual(symlink("second", first), 0)
        XCTAssertEqual(symlink("folder/../folder/target", second), 0)
        defer { for name in ["first", "second", "folder/target"] { unlink("\(directory)/\(name)") } }
        defer { rmdir(directory + "/folder") }
        try CookieJar(file: first).takeFile()?()
        XCTAssertEqual(try FileManager.default.destinationOfSymbolicLink(atPath: first), "second")
        XCTAssertEqual(try FileManager.default.destinationOfSymbolicLink(atPath: second), "folder/../folder/target")
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: directory + "/folder"), ["target"])

        let lost = directory + "/other"
        XCTAssertEqual(symlink("missing/target", lost), 0)
        XCTAssertThrowsError(try CookieJar(file: lost))
        XCTAssertEqual(try FileManager.default.destinationOfSymbolicLink(atPath: lost), "missing/target")
    }

    /// A program that goes to another folder meanwhile has its jar where it was named.
    func testARelativeNameIsOfTheFolderOfThatMoment() throws {
        let directory = try directory()
        let before = FileManager.default.currentDirectoryPath
        defer { XCTAssertTrue(FileManager.default.changeCurrentDirectoryPath(before)) }
        XCTAssertTrue(FileManager.default.changeCurrentDirectoryPath(directory))
        let jar = try CookieJar(file: "jar")
        XCTAssertTrue(FileManager.default.changeCurrentDirectoryPath(before))
        jar.takeFile()?()
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: directory), ["jar"])
    }

    /// Names on the disk are bytes, and such as are no UTF-8 cannot be said: what is there is used by the name that was given, and
    /// nothing is written elsewhere.
    func testACookieFileWithNamesThatAreNotInUTF8() throws {
        let directory = try directory()
        let (folder, link, target) = (directory + "/k\u{E4}se", directory + "/other", "t\u{E4}")
        func latin1(_ text: String) -> [CChar] { text.unicodeScalars.map { CChar(truncatingIfNeeded: $0.value) } + [0] }
        XCTAssertEqual(mkdir(latin1(folder), 0o700), 0)
        XCTAssertEqual(symlink(latin1(target), link), 0)
        defer {
            unlink(latin1(folder + "/jar"))
            rmdir(latin1(folder))
        }
        XCTAssertThrowsError(try CookieJar(file: link)) { error in
            XCTAssertEqual((error as? Failure)?.code, .invalidOperation)
            XCTAssertEqual(
                (error as? Failure)?.message,
                "cookie_file: the link “\(link)” leads to a file whose name is not in UTF-8")
        }
        let before = FileManager.default.currentDirectoryPath
        defer { XCTAssertTrue(FileManager.default.changeCurrentDirectoryPath(before)) }
        XCTAssertEqual(chdir(latin1(folder)), 0)
        try CookieJar(file: "jar").takeFile()?()
        XCTAssertEqual(access(latin1(folder + "/jar"), R_OK), 0)
        // A file that is there already, too.
        try CookieJar(file: "jar").takeFile()?()
        XCTAssertEqual(access(latin1(directory + "/" + target), F_OK), -1)
    }

    /// Root may write everything: this thread is held to the rights of others meanwhile.
    private func asUserWithoutPrivileges(_ body: () throws -> Void) throws {
        guard geteuid() == 0 else { return try body() }
        let symbol = try XCTUnwrap(dlsym(nil, "setfsuid"))
        let setUser = unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
        _ = setUser(65_534)
        defer { _ = setUser(0) }
        try body()
    }

    /// What people and other programs put before the first cookie is no reason to lose them.
    func testAFileThatBeginsOtherwise() throws {
        let file = try directory() + "/jar"
        let text = "\u{FEFF}# exported\n\n127.0.0.1\tFALSE\t/\tFALSE\t4102444800\ta\t1\n"
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data(text.utf8)))
        for _ in 0..<2 {
            try keep(file)
            XCTAssertEqual(try sent("/echo"), "a=1")
            transport.close()
        }
    }

    /// As large as one may be, with what counts in its last line.
    func testAFileOfAnyLengthIsReadWhole() throws {
        let file = try directory() + "/jar"
        let last = Array("127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tlast\t1\n".utf8)
        let filler = Array(("# " + String(repeating: "x", count: 1_021) + "\n").utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(CookieFile.maximumBytes)
        while bytes.count + filler.count + last.count <= CookieFile.maximumBytes { bytes += filler }
        bytes += Array(repeating: 0x0A, count: CookieFile.maximumBytes - bytes.count - last.count) + last
        XCTAssertEqual(bytes.count, CookieFile.maximumBytes)
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data(bytes)))
        try keep(file)
        XCTAssertEqual(try sent("/echo"), "last=1")
        transport.close()
        let written = String(decoding: try XCTUnwrap(FileManager.default.contents(atPath: file)), as: UTF8.self)
        XCTAssertTrue(written.hasSuffix("\tlast\t1\n"), written)
        XCTAssertEqual(written.split(separator: "\n").count, 2, "what is no cookie is not kept")
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

    private func answer(_ path: String, _ head: String) {
        origin.route(path) { try $0.send(raw: "\(head)\r\nContent-Length: 0\r\n\r\n") }
    }

    func testOfWhichAnswers() throws {
        let statuses = ["200 OK", "302 Found\r\nLocation: /x", "304 Not Modified", "404 No", "500 No"]
        for (number, status) in statuses.enumerated() {
            answer("/set", "HTTP/1.1 \(status)\r\nSet-Cookie: n=\(number)")
            _ = try sent("/set")
            XCTAssertEqual(try sent("/echo"), "n=\(number)", status)
        }
        answer("/set", "HTTP/1.1 103 Early Hints\r\nSet-Cookie: n=early\r\n\r\nHTTP/1.1 200 OK")
        _ = try sent("/set")
        XCTAssertEqual(try sent("/echo"), "n=4", "an interim response sets none")
        origin.route("/set") { exchange in
            try exchange.send(
                raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nSet-Cookie: n=late\r\n\r\n")
        }
        _ = try sent("/set")
        XCTAssertEqual(try sent("/echo"), "n=4", "a trailer sets none")
    }

    /// curl answers the challenge by itself: what that set is sent with the credential.
    func testCookiesOfAChallengeGoWithItsAnswer() throws {
        origin.route("/login") { exchange in
            if exchange.request.headers["Authorization"] == nil {
                try exchange.send(
                    raw: "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\n"
                        + "Set-Cookie: n=2\r\nContent-Length: 0\r\n\r\n")
            } else {
                try exchange.respond(text: "in")
            }
        }
        _ = try sent("/cookies/set?n=1&path=/")
        origin.resetLog()
        let credential = Credential(user: "me", password: "secret")
        let record = record(of: try start(origin.url("/login"), credential: credential, usesCookies: true))
        XCTAssertEqual(record.head?.status, 200)
        XCTAssertEqual(origin.log.requests.map { $0.headers["Cookie"] }, ["n=1", "n=2"])
        XCTAssertEqual(origin.log.requests.map { $0.headers["Authorization"] != nil }, [false, true])
    }

    /// One field is all that there may be (RFC 6265bis section 5.8.1).
    func testOnesOfTheCallerComeFirst() throws {
        func cookies(_ fields: HeaderField..., usesCookies: Bool = true) throws -> [String]? {
            let id = try start(origin.url("/echo"), fields: fields, usesCookies: usesCookies)
            XCTAssertTrue(record(of: id).isFinished)
            return origin.log.requests.last?.headers.all("Cookie")
        }
        XCTAssertEqual(try cookies(HeaderField("cookie", "own=1")), ["own=1"])
        _ = try sent("/cookies/set?n=1&path=/")
        XCTAssertEqual(try cookies(HeaderField("cookie", "own=1"), HeaderField("X", "y")), ["own=1; n=1"])
        XCTAssertEqual(origin.log.requests.last?.headers["X"], "y")
        XCTAssertEqual(try cookies(HeaderField("Cookie", "")), ["n=1"])
        XCTAssertEqual(try cookies(HeaderField("Cookie", "own=1"), usesCookies: false), ["own=1"])
    }

    /// Servers that set as much as they can get no field back that they would refuse.
    func testFloods() throws {
        for round in 0..<10 {
            let fields = (0..<60).map { "Set-Cookie: \(round)n\($0)=\(String(repeating: "v", count: 1_000))\r\n" }
            origin.route("/flood") { exchange in
                try exchange.send(raw: "HTTP/1.1 200 OK\r\n\(fields.joined())Content-Length: 0\r\n\r\n")
            }
            let id = try start(origin.url("/flood"), maximumHeaderBytes: 100_000, usesCookies: true)
            XCTAssertTrue(record(of: id).isFinished)
        }
        let field = try XCTUnwrap(try sent("/echo"))
        XCTAssertEqual(field.components(separatedBy: "; ").count, 8)
        XCTAssertLessThanOrEqual("Cookie: \(field)".utf8.count, 8_190)
    }

    func testBytesThatAreNoTextComeBack() throws {
        origin.route("/set") { exchange in
            let end = Array("\r\nContent-Length: 0\r\n\r\n".utf8)
            try exchange.send(raw: Array("HTTP/1.1 200 OK\r\nSet-Cookie: n=".utf8) + [0xFF, 0x80] + end)
        }
        _ = try sent("/set")
        XCTAssertEqual(try sent("/echo"), "n=\u{FFFD}\u{FFFD}", "as the origin reads them")
    }

    /// As curl 7.88 writes it: cookies with a date, without one, and those that scripts must not see.
    func testAFileOfCurl() throws {
        let file = try directory() + "/jar"
        let text = """
            # Netscape HTTP Cookie File
            # https://curl.se/docs/http-cookies.html
            # This file was generated by libcurl! Edit at your own risk.

            127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t1
            #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t4102444800\thidden\t2
            127.0.0.1\tFALSE\t/\tFALSE\t946684800\texpired\t3
            .example.com\tTRUE\t/\tFALSE\t0\tother\t4

            """
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data(text.utf8)))
        for _ in 0..<2 {
            try keep(file)
            XCTAssertEqual(try sent("/echo"), "session=1; hidden=2")
            transport.close()
        }
        let written = String(decoding: try XCTUnwrap(FileManager.default.contents(atPath: file)), as: UTF8.self)
        XCTAssertTrue(written.contains("#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t"))
        XCTAssertTrue(written.contains(".example.com\tTRUE\t/\tFALSE\t0\tother\t4\n"))
        XCTAssertFalse(written.contains("expired"))
    }
}
