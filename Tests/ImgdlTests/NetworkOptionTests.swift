import CImgdl
import Foundation
import Origin
import XCTest

/// Features B17, C7, C8, K11, O5, O6: passwords, certificates, cookies, proxies and private addresses through the C
/// API.
final class NetworkOptionTests: DownloaderTestCase {
    func testT08_PasswordsBasicAndDigest() {
        replaceDownloader { $0.flags = UInt32(IMGDL_CONFIG_BASIC_OVER_HTTP) }
        for scheme in ["basic", "digest", "any"] {
            let url = origin.url("/auth/\(scheme)?user=me&password=x&picture=rgba.png")
            assertEnds(
                start(url) {
                    $0.user = self.text("me"); $0.password = self.text("x")
                }, "IMGDL_OK")
            assertEnds(start(url.replacingOccurrences(of: "://", with: "://me:x@")), "IMGDL_OK")
            for download in [
                start(url) {
                    $0.user = self.text("me"); $0.password = self.text("wrong")
                }, start(url),
            ] {
                assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
                XCTAssertEqual(download.record.httpStatus, 401)
                XCTAssertFalse(download.record.message.contains("wrong"))
            }
        }
        replaceDownloader {
            $0.user = self.text("me"); $0.password = self.text("x")
        }
        assertEnds(start(origin.url("/auth/digest?user=me&password=x&picture=rgba.png")), "IMGDL_OK")
    }

    /// Basic over http needs a flag of the request or of the downloader.
    func testBasicOverHTTP() {
        let url = origin.url("/auth/basic?user=me&password=x&picture=rgba.png")
        for flag in [0, UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP)] {
            let download = start(url) {
                $0.user = self.text("me")
                $0.password = self.text("x")
                $0.flags = flag
            }
            assertEnds(download, flag == 0 ? "IMGDL_ERROR_INVALID_STATUS" : "IMGDL_OK")
            XCTAssertEqual(flag == 0, download.record.message.contains("Basic"), download.record.message)
            XCTAssertEqual(flag == 0, download.record.message.contains("BASIC_OVER_HTTP"), download.record.message)
        }
        // Whom nobody gave a password to does not hear of the flag.
        let nobody = start(url)
        assertEnds(nobody, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertFalse(nobody.record.message.contains("BASIC"), nobody.record.message)
        assertEnds(
            start(origin.url("/auth/any?user=me&password=x&picture=rgba.png")) {
                $0.user = self.text("me")
                $0.password = self.text("x")
            }, "IMGDL_OK")
        let sent = origin.log.requests.map { $0.headers["Authorization"].map { $0.prefix { $0 != " " } } }
        XCTAssertEqual(sent, [nil, nil, "Basic", nil, nil, "Digest"])
    }

    func testAPasswordStaysWithItsOrigin() throws {
        let other = try Origin()
        defer { other.stop() }
        let target = other.url("/auth/basic?user=me&password=x")
            .addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
        let download = start(origin.url("/redirect?to=\(target)")) {
            $0.user = self.text("me")
            $0.password = self.text("x")
            $0.flags = UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP)
        }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 401)
        XCTAssertEqual(other.log.requests.map { $0.headers["Authorization"] }, [nil])
    }

    /// What was dropped on the way to another origin stays dropped, also back at the first.
    func testASecretDoesNotComeBackWithARedirect() throws {
        let other = try Origin()
        defer { other.stop() }
        let own = ["Authorization", "Cookie"]
        origin.route("/first") { try $0.respond(302, headers: ["Location": other.url("/between")]) }
        other.route("/between") { [origin] in try $0.respond(302, headers: ["Location": origin!.url("/last")]) }
        origin.route("/last") { try $0.respond(302, headers: ["Location": "/very-last"]) }
        origin.route("/very-last") { try $0.respond(text: "reached") }
        origin.route("/near") { try $0.respond(302, headers: ["Location": "/very-last"]) }
        for (path, count) in [("/near", 2), ("/first", 1)] {
            let before = origin.log.requests.count
            let download = start(origin.url(path), headers: own.map { ($0, "secret") }) {
                $0.flags = UInt32(IMGDL_REQUEST_BODY)
            }
            assertEnds(download, "IMGDL_OK")
            for name in own {
                let sent = origin.log.requests.dropFirst(before).map { $0.headers[name] }
                XCTAssertEqual(sent.filter { $0 == "secret" }.count, count, "\(path) \(name): \(sent)")
            }
        }
        XCTAssertEqual(other.log.requests.map { $0.headers["Cookie"] }, [nil])
        // Credentials, which a challenge asks for: of the request, and of a hook.
        origin.route("/last") { try $0.respond(401, headers: ["WWW-Authenticate": "Basic realm=x"], text: "who?") }
        let download = start(origin.url("/first")) {
            $0.user = self.text("me")
            $0.password = self.text("x")
            $0.flags = UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP)
        }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 401)
        let last = origin.log.requests.filter { $0.path == "/last" }
        XCTAssertEqual(last.compactMap { $0.headers["Authorization"] }, [])
    }

    /// As sites do that want to know whether a client keeps cookies.
    func testARedirectToItselfThatSetsACookie() {
        origin.route("/door") { exchange in
            if exchange.request.headers["Cookie"] == "seen=1" {
                try exchange.respond(200, headers: ["Content-Type": "image/png"], body: Pictures.bytes("rgba.png"))
            } else {
                try exchange.respond(302, headers: ["Location": "/door", "Set-Cookie": "seen=1; Path=/"])
            }
        }
        assertEnds(start(origin.url("/door")), "IMGDL_ERROR_TOO_MANY_REDIRECTS")
        XCTAssertEqual(origin.log.count("/door"), 1)
        let download = start(origin.url("/door")) { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.redirects, 1)
        XCTAssertEqual(origin.log.count("/door"), 3)
        // One that is never content ends at the limit.
        origin.route("/maze") { exchange in
            let seen = exchange.request.headers["Cookie"] ?? ""
            let cookie = "maze=\(seen.utf8.count); Path=/maze"
            try exchange.respond(302, headers: ["Location": "/maze", "Set-Cookie": cookie])
        }
        assertEnds(
            start(origin.url("/maze")) { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) }, "IMGDL_ERROR_TOO_MANY_REDIRECTS")
        XCTAssertEqual(origin.log.count("/maze"), 11)
    }

    func testTLSOptionsOfARequest() throws {
        let secure = try Origin(tls: TLS(client: .required))
        defer { secure.stop() }
        secure.content["a"] = Picture(Pictures.bytes("rgba.png"), type: "image/png")
        let url = secure.url("/pictures/a")
        let authority = try XCTUnwrap(secure.authority)
        let client = try XCTUnwrap(secure.authority?.client)
        let whole: (inout imgdl_request) -> Void = { [unowned self] request in
            request.ca_file = text(authority.file)
            request.client_certificate = text(client.certificate)
            request.client_key = text(client.encryptedKey)
            request.client_key_password = text(client.passphrase)
            request.pinned_public_key = text(authority.pin)
        }
        assertEnds(start(url, whole), "IMGDL_OK")
        assertEnds(
            start(url) {
                whole(&$0); $0.ca_file = nil
            }, "IMGDL_ERROR_TLS_CERTIFICATE")
        let nobody = start(url) {
            whole(&$0)
            $0.client_certificate = nil
            $0.client_key = nil
            $0.client_key_password = nil
        }
        assertEnds(nobody, "IMGDL_ERROR_TLS_FAILED")
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        assertEnds(
            start(url) {
                whole(&$0); $0.pinned_public_key = self.text(other)
            }, "IMGDL_ERROR_TLS_PIN")
        let careless = start(url) {
            whole(&$0)
            $0.ca_file = nil
            $0.flags = UInt32(IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES)
        }
        assertEnds(careless, "IMGDL_OK")
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("own-\(getpid())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // In the words that a configuration's is refused with.
        for (name, content, cause) in [
            ("missing", nil, "cannot be read: No such file"), ("empty", "", "it holds no certificate in PEM"),
            ("garbage", "\u{1} no PEM", "it holds no certificate in PEM"),
        ] {
            let path = "\(folder)/\(name).pem"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            if let content { try content.write(toFile: path, atomically: true, encoding: .utf8) }
            let download = start(url) {
                whole(&$0)
                $0.ca_file = self.text(path)
            }
            assertEnds(download, "IMGDL_ERROR_TLS_FAILED")
            let message = download.record.message
            XCTAssertTrue(message.contains("ca_file “\(path)”") && message.contains(cause), message)
        }
        assertEnds(start(url, whole), "IMGDL_OK")
    }

    /// Whoever is asked first must not choose to whom the caller shows it: by a redirect, or where a hook goes elsewhere.
    func testAClientCertificateStaysWithItsOrigin() throws {
        let secure = try Origin(tls: TLS(client: .required))
        defer { secure.stop() }
        secure.content["a"] = Picture(Pictures.bytes("rgba.png"), type: "image/png")
        secure.route("/first") { try $0.respond(302, headers: ["Location": "/pictures/a"]) }
        origin.route("/first") { try $0.respond(302, headers: ["Location": secure.url("/pictures/a")]) }
        let authority = try XCTUnwrap(secure.authority)
        let shows: (inout imgdl_request) -> Void = { [unowned self] request in
            request.ca_file = text(authority.file)
            request.client_certificate = text(authority.client.certificate)
            request.client_key = text(authority.client.key)
        }
        assertEnds(start(secure.url("/first"), shows), "IMGDL_OK")
        assertEnds(start(origin.url("/first"), shows), "IMGDL_ERROR_TLS_FAILED")
        let hooks = TestHooks()
        defer { hooks.release() }
        for (asked, isAnswered) in [(secure.url("/first?a"), true), (origin.url("/first?a"), false)] {
            hooks.modifyRequest = { _, next in
                let status = withOutgoing(url: secure.url("/pictures/a")) { imgdl_continue_with_request(next, $0) }
                XCTAssertEqual(status, 0)
            }
            let download = start(asked) {
                shows(&$0)
                $0.hooks = hooks.handle
            }
            assertEnds(download, isAnswered ? "IMGDL_OK" : "IMGDL_ERROR_TLS_FAILED")
        }
    }

    /// Files that differ, each as large as one may be: together more than the process holds (128 MiB).
    func testRequestsThatFailedHoldNoFiles() throws {
        replaceDownloader { $0.failure_ttl_ms = 600_000 }
        origin.content["page"] = Picture(Array("<html>".utf8), type: "image/png")
        let authority = try Authority(TLS(client: .optional), protocols: [])
        let certificate = try Data(contentsOf: URL(fileURLWithPath: authority.file))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("large-\(getpid())").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        let size = 4 << 20
        for number in 0..<36 {
            let padding = Data("\(number)".utf8) + Data(repeating: UInt8(ascii: "#"), count: size)
            try (certificate + padding).prefix(size).write(to: URL(fileURLWithPath: file))
            let download = start(origin.url("/pictures/page")) { $0.ca_file = self.text(file) }
            assertEnds(download, "IMGDL_ERROR_BAD_IMAGE_DATA")
        }
    }

    /// They are found out before anything is asked: whoever looks for a wrong path sees it, whether or not a server is there.
    func testFilesThatCannotBeUsedAreToldBeforeAServerIsAsked() throws {
        let authority = try Authority(TLS(client: .optional), protocols: [])
        let client = authority.client
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("early-\(getpid())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer {
            authority.removeFiles()
            try? FileManager.default.removeItem(atPath: folder)
        }
        let letter = "\(folder)/letter"
        try "no PEM\n".write(toFile: letter, atomically: true, encoding: .utf8)
        let broken = "\(folder)/broken"
        try "-----BEGIN CERTIFICATE-----\nbm8gREVSIGF0IGFsbA==\n-----END CERTIFICATE-----\n"
            .write(toFile: broken, atomically: true, encoding: .utf8)
        let large = "\(folder)/large"
        try FileManager.default.copyItem(atPath: authority.file, toPath: large)
        XCTAssertEqual(truncate(large, 4 << 20 + 1), 0)

        let missing = "\(folder)/missing"

        typealias Case = (certificate: String?, key: String?, authorities: String?, message: String)
        let cases: [Case] = [
            (nil, nil, letter, "ca_file “\(letter)” cannot be used: it holds no certificate in PEM"),
            (nil, nil, broken, "ca_file “\(broken)” cannot be used: a certificate in it is broken"),
            (nil, nil, missing, "ca_file “\(missing)” cannot be read: No such file or directory"),
            (nil, nil, folder, "ca_file “\(folder)” cannot be read: it is not a file"),
            (nil, nil, large, "ca_file “\(large)” cannot be read: it is larger than 4194304 bytes"),
            (letter, nil, nil, "client_certificate “\(letter)” cannot be used: it holds no certificate in PEM"),
            (
                client.certificate, letter, authority.file,
                "client_key “\(letter)” cannot be used: it holds no key in PEM"
            ),
            (client.certificate, missing, nil, "client_key “\(missing)” cannot be read: No such file or directory"),
            (
                broken, client.key, nil,
                "client_certificate “\(broken)” cannot be used: a certificate in it is broken"
            ),
            (
                client.certificate, client.encryptedKey, nil,
                "client_key “\(client.encryptedKey)” cannot be used: its key is encrypted, and there is no "
                    + "client_key_password"
            ),
            (
                client.certificate, authority.stranger.key, authority.file,
                "client_key “\(authority.stranger.key)” cannot be used: its key is not that of client_certificate "
                    + "“\(client.certificate)”"
            ),
        ]
        let served = picture("rgba.png")
        for url in [served, "https://127.0.0.1:1/a.png", "https://nothing.invalid/a.png"] {
            for each in cases {
                let download = start(url) {
                    $0.ca_file = self.text(each.authorities)
                    $0.client_certificate = self.text(each.certificate)
                    $0.client_key = self.text(each.key)
                }
                assertEnds(download, "IMGDL_ERROR_TLS_FAILED")
                XCTAssertTrue(download.record.message.hasSuffix(each.message), download.record.message)
            }
        }
        XCTAssertEqual(origin.log.requests.count, 0)
        // One that can be used changes nothing.
        let good = start(served) {
            $0.ca_file = self.text(authority.file)
            $0.client_certificate = self.text(client.certificate)
            $0.client_key = self.text(client.encryptedKey)
            $0.client_key_password = self.text(client.passphrase)
        }
        assertEnds(good, "IMGDL_OK")
    }

    func testCookies() {
        let cookies: (inout imgdl_request) -> Void = { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) }
        assertEnds(start(origin.url("/cookies/set?a=1&path=/&picture=rgba.png"), cookies), "IMGDL_OK")
        assertEnds(start(picture("rgba.png"), cookies), "IMGDL_OK")
        assertEnds(start(picture("rgba.png")), "IMGDL_OK")
        XCTAssertEqual(origin.log.requests.map { $0.headers["Cookie"] }, [nil, "a=1", nil])
    }

    /// Each hop of a redirect gets what is for its own host, with what the hop before has set.
    func testCookiesOfEachHop() {
        let elsewhere = "http://localhost:\(origin.port)"
        let hops = [
            ("/first", "/second", "first=1; Path=/"),
            ("/second", "\(elsewhere)/third", "second=1; Path=/"),
            ("/third", "\(elsewhere)/pictures/rgba.png", "third=1; Path=/"),
        ]
        for (path, target, cookie) in hops {
            origin.route(path) { try $0.respond(302, headers: ["Location": target, "Set-Cookie": cookie]) }
        }
        let cookies: (inout imgdl_request) -> Void = { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) }
        assertEnds(start(origin.url("/first"), headers: [("Cookie", "own=1")], cookies), "IMGDL_OK")
        XCTAssertEqual(
            origin.log.requests.map { $0.headers.all("Cookie") }, [["own=1"], ["own=1; first=1"], [], ["third=1"]])
    }

    func testPrivateAddresses() {
        replaceDownloader { config in
            config.flags = UInt32(IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES)
            config.proxy = self.text("")
        }
        for host in ["127.0.0.1", "localhost", "0x7f000001", "[::ffff:127.0.0.1]"] {
            let download = start("http://\(host):\(origin.port)/pictures/rgba.png?k=secret")
            assertEnds(download, "IMGDL_ERROR_ADDRESS_REFUSED")
            XCTAssertFalse(download.record.message.contains("secret"), download.record.message)
        }
        XCTAssertEqual(origin.log.connections.count, 0)
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        config.flags = UInt32(IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES)
        config.proxy = text("http://127.0.0.1:1")
        var other: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_create(&config, &other), Int32(IMGDL_ERROR_INVALID_OPERATION))
    }

    func testAProxy() throws {
        let proxy = try ProxyOrigin(user: "me", password: "x")
        defer { proxy.stop() }
        let url = "http://pictures.example:\(origin.port)/pictures/rgba.png"
        let failed = "IMGDL_ERROR_PROXY_FAILED"
        for (login, name) in [("me:x@", "IMGDL_OK"), ("me:hidden@", failed), ("", failed)] {
            replaceDownloader { $0.proxy = self.text("http://\(login)127.0.0.1:\(proxy.port)") }
            let download = start(url)
            assertEnds(download, name)
            XCTAssertFalse(download.record.message.contains("hidden"))
        }
    }
}
