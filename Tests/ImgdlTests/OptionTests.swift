import CImgdl
import Foundation
import Origin
import XCTest

/// Every option out of range is refused before anything is asked, with a code of its own, and nothing is lost: the
/// downloader goes on.
final class OptionTests: DownloaderTestCase {
    func testRequestOptionsOutOfRange() {
        let cases: [(String, Int, (inout imgdl_request) -> Void)] = [
            ("flags", IMGDL_ERROR_UNSUPPORTED_OPTION, { $0.flags = 1 << 12 }),
            ("reserved", IMGDL_ERROR_UNSUPPORTED_OPTION, { $0.reserved = 1 }),
            ("scale_factor", IMGDL_ERROR_INVALID_ARGUMENT, { $0.scale_factor = -1 }),
            ("scale_factor", IMGDL_ERROR_INVALID_ARGUMENT, { $0.scale_factor = .nan }),
            ("hooks", IMGDL_ERROR_INVALID_HANDLE, { $0.hooks = OpaquePointer(bitPattern: 0x10) }),
            ("accepted_status_count", IMGDL_ERROR_INVALID_ARGUMENT, { $0.accepted_status_count = -1 }),
            ("accepted_type_count", IMGDL_ERROR_INVALID_ARGUMENT, { $0.accepted_type_count = 5000 }),
        ]
        for (name, code, configure) in cases { assertRefused(name, code) { configure(&$0) } }
    }

    func testAcceptedStatusesThatAreNoRange() {
        for (first, last) in [(99, 200), (200, 1000), (300, 299)] as [(Int32, Int32)] {
            var range = imgdl_status_range(first: first, last: last)
            withUnsafePointer(to: &range) { range in
                assertRefused("accepted_statuses", IMGDL_ERROR_INVALID_ARGUMENT) {
                    $0.accepted_statuses = range
                    $0.accepted_status_count = 1
                }
            }
        }
    }

    func testAcceptedTypesThatAreNone() {
        for type in ["image", "image/png/x", "/", "image/", "ima ge/png", ""] {
            type.withCString { text in
                var list: [UnsafePointer<CChar>?] = [text]
                list.withUnsafeMutableBufferPointer { list in
                    assertRefused("accepted_types: \(type)", IMGDL_ERROR_INVALID_ARGUMENT) {
                        $0.accepted_types = UnsafePointer(list.baseAddress)
                        $0.accepted_type_count = 1
                    }
                }
            }
        }
    }

    func testCredentialsThatCannotBeSent() {
        assertRefused("a colon", IMGDL_ERROR_INVALID_HEADER, text: "some:one") { $0.user = $1 }
        assertRefused("a line break", IMGDL_ERROR_INVALID_HEADER, text: "x\r\nHost: evil") { $0.password = $1 }
        assertRefused("not UTF-8", IMGDL_ERROR_INVALID_ARGUMENT, text: "\u{FF}", latin1: true) { $0.user = $1 }
    }

    func testTLSOptionsThatSayNothing() {
        assertRefused("a key alone", IMGDL_ERROR_INVALID_ARGUMENT, text: "/key.pem") { $0.client_key = $1 }
        assertLastError("client_key without client_certificate")
        assertRefused("a password alone", IMGDL_ERROR_INVALID_ARGUMENT, text: "x") { $0.client_key_password = $1 }
        assertLastError("client_key_password without client_certificate")
        let digits = String(repeating: "A", count: 43)
        for pin in [
            "md5//abc", "sha256//short", "", "sha256//\(digits)=;x", "sha256//\(digits)A", "sha256//%\(digits)",
        ] {
            assertRefused("pin \(pin)", IMGDL_ERROR_INVALID_ARGUMENT, text: pin) { $0.pinned_public_key = $1 }
            assertLastError("pinned_public_key is not sha256//BASE64")
        }
        assertConfigRefused("pin", IMGDL_ERROR_INVALID_ARGUMENT) { $0.pinned_public_key = text("sha256//AAAA") }
        assertLastError("44 characters")
    }

    func testConfigOptionsOutOfRange() {
        let cases: [(String, Int, (inout imgdl_config) -> Void)] = [
            ("flags", IMGDL_ERROR_UNSUPPORTED_OPTION, { $0.flags = 1 << 6 }),
            ("max_per_host", IMGDL_ERROR_INVALID_ARGUMENT, { $0.max_per_host = 10_001 }),
            ("progress_interval", IMGDL_ERROR_INVALID_ARGUMENT, { $0.progress_interval = 1.5 }),
            ("progress_interval", IMGDL_ERROR_INVALID_ARGUMENT, { $0.progress_interval = .nan }),
            ("hooks", IMGDL_ERROR_INVALID_HANDLE, { $0.hooks = OpaquePointer(bitPattern: 0x10) }),
        ]
        for (name, code, configure) in cases { assertConfigRefused(name, code) { configure(&$0) } }
        for text in [
            "", "2001:db8::", "2001:db8::/95", "2001:db8::/096", "192.0.2.0/32", "2001:db8::/64,", "fe80::1%lo/64",
        ] {
            text.withCString { prefixes in
                assertConfigRefused("nat64_prefixes", IMGDL_ERROR_INVALID_ARGUMENT) { $0.nat64_prefixes = prefixes }
            }
        }
        String(repeating: "2001:db8::/64,", count: 8).appending("2001:db8::/64").withCString { prefixes in
            assertConfigRefused("nat64_prefixes", IMGDL_ERROR_INVALID_ARGUMENT) { $0.nat64_prefixes = prefixes }
        }
        // Not silently without effect.
        "2001:db8::/64".withCString { prefixes in
            assertConfigRefused("nat64_prefixes", IMGDL_ERROR_INVALID_ARGUMENT) { $0.nat64_prefixes = prefixes }
            XCTAssertTrue(String(cString: imgdl_last_error()).contains("DENY_PRIVATE_ADDRESSES"))
        }
        for text in ["", "dns.example", "192.0.2.1:0", "192.0.2.1,"] {
            text.withCString { servers in
                assertConfigRefused("dns_servers", IMGDL_ERROR_INVALID_ARGUMENT) { $0.dns_servers = servers }
            }
        }
        "http://proxy\r\nX: y".withCString { proxy in
            assertConfigRefused("proxy", IMGDL_ERROR_INVALID_HEADER) { $0.proxy = proxy }
        }
    }

    /// Found out when the downloader is made, and named with the cause.
    func testTrustFilesThatAreNone() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trust-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let block = "-----BEGIN %@-----\nbm8gREVSIGF0IGFsbA==\n-----END %@-----\n"
        let contents = [
            "empty": ("", "in PEM"), "garbage": ("\u{1}\u{2} no PEM\n", "in PEM"),
            "key": (block.replacingOccurrences(of: "%@", with: "PUBLIC KEY"), "in PEM"),
            "certificate": (block.replacingOccurrences(of: "%@", with: "CERTIFICATE"), "broken"),
            "list": (block.replacingOccurrences(of: "%@", with: "X509 CRL"), "broken"),
        ]
        for (name, (text, cause)) in contents {
            let path = folder.appendingPathComponent("\(name).pem").path
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            let names = name == "list" ? ["crl_file"] : name == "certificate" ? ["ca_file"] : ["ca_file", "crl_file"]
            for option in names { assertTrustFile(option, path, cause) }
        }
        for option in ["ca_file", "crl_file"] {
            assertTrustFile(option, folder.appendingPathComponent("nothing.pem").path, "No such file")
            assertTrustFile(option, folder.path, "not a file")
            assertTrustFile(option, "/dev/null", "not a file")
            let pipe = folder.appendingPathComponent("pipe-\(option)").path
            XCTAssertEqual(mkfifo(pipe, 0o600), 0)
            assertTrustFile(option, pipe, "not a file")
            // More than there is memory for.
            let hole = folder.appendingPathComponent("hole-\(option)").path
            close(creat(hole, 0o600))
            XCTAssertEqual(truncate(hole, 64 << 30), 0)
            assertTrustFile(option, hole, "larger than")
        }
        let authority = try Authority(.valid)
        assertTrustFile("crl_file", authority.file, "no revocation list")
        assertTrustFile("ca_file", try authority.revocationList(revokesServer: false), "no certificate")
    }

    /// Likewise what each request reads anew.
    func testCertificatesAndKeysThatAreNone() throws {
        let authority = try Authority(TLS(client: .optional), protocols: [])
        let client = authority.client
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("clients-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer {
            authority.removeFiles()
            try? FileManager.default.removeItem(at: folder)
        }
        let large = folder.appendingPathComponent("large.pem").path
        try FileManager.default.copyItem(atPath: client.certificate, toPath: large)
        XCTAssertEqual(truncate(large, 4 << 20 + 1), 0)
        let pipe = folder.appendingPathComponent("pipe").path
        XCTAssertEqual(mkfifo(pipe, 0o600), 0)
        let letter = folder.appendingPathComponent("letter").path
        try "no PEM\n".write(toFile: letter, atomically: true, encoding: .utf8)
        for (file, cause) in [
            (large, "cannot be read: it is larger than 4194304 bytes"), (pipe, "cannot be read: it is not a file"),
            (folder.path, "cannot be read: it is not a file"), ("/nowhere/x.pem", "cannot be read: No such file"),
            (letter, "in PEM"),
        ] {
            assertClientFile("client_certificate", certificate: file, key: client.key, cause)
            assertClientFile("client_key", certificate: client.certificate, key: file, cause)
        }
        assertClientFile("client_certificate", certificate: client.key, key: client.key, "no certificate in PEM")
        assertClientFile("client_key", certificate: client.certificate, key: client.certificate, "no key in PEM")
        assertClientFile("client_certificate", certificate: client.certificate, key: nil, "there is no client_key")
        let (broken, both) = (folder.appendingPathComponent("broken").path, folder.appendingPathComponent("both").path)
        let block = "-----BEGIN %@-----\nbm8gREVSIGF0IGFsbA==\n-----END %@-----\n"
        try ["CERTIFICATE", "PRIVATE KEY"].map { block.replacingOccurrences(of: "%@", with: $0) }.joined()
            .write(toFile: broken, atomically: true, encoding: .utf8)
        try [client.certificate, authority.stranger.key].map { try String(contentsOfFile: $0, encoding: .utf8) }
            .joined().write(toFile: both, atomically: true, encoding: .utf8)
        typealias Case = (option: String, certificate: String, key: String?, password: String?, cause: String)
        let locked = client.encryptedKey
        let cases: [Case] = [
            ("client_certificate", broken, client.key, nil, "cannot be used: a certificate in it is broken"),
            ("client_key", client.certificate, broken, nil, "cannot be used: the key in it is broken"),
            ("client_key", client.certificate, locked, nil, "is encrypted, and there is no client_key_password"),
            ("client_key", client.certificate, locked, "wrong", "client_key_password is not the password of its key"),
            ("client_key", client.certificate, locked, "", "client_key_password is not the password of its key"),
            (
                "client_key", client.certificate, authority.stranger.key, nil,
                "its key is not that of client_certificate “\(client.certificate)”"
            ), ("client_certificate", both, nil, nil, "its key is not that of its certificate"),
        ]
        for each in cases {
            assertClientFile(
                each.option, certificate: each.certificate, key: each.key, password: each.password, each.cause)
        }
        for (key, password) in [(client.key, nil), (client.key, "of no use"), (locked, client.passphrase)] {
            replaceDownloader {
                $0.client_certificate = self.text(client.certificate)
                $0.client_key = self.text(key)
                $0.client_key_password = self.text(password)
            }
            assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        }
    }

    /// What is no file, or can never become one.
    func testCookieFilesThatAreNone() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("jars-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let pipe = folder.appendingPathComponent("pipe").path
        XCTAssertEqual(mkfifo(pipe, 0o600), 0)
        for (file, cause) in [
            (folder.path, "it is not a file"), (pipe, "it is not a file"), ("/dev/null", "it is not a file"),
            ("\(pipe)/jar", "Not a directory"), ("\(folder.path)/none/jar", "its folder"), ("", "No such file"),
        ] {
            file.withCString { text in
                assertConfigRefused("cookie_file \(file)", IMGDL_ERROR_INVALID_OPERATION) { $0.cookie_file = text }
            }
            assertLastError("cookie_file “\(file)”", cause)
        }
        let jar = folder.appendingPathComponent("jar").path
        jar.withCString { text in replaceDownloader { $0.cookie_file = text } }
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        replaceDownloader { _ in }
        XCTAssertTrue(FileManager.default.fileExists(atPath: jar), "it is made at the end")
    }

    private func assertClientFile(
        _ option: String, certificate: String, key: String?, password: String? = nil, _ cause: String,
        line: UInt = #line
    ) {
        assertConfigRefused(option, IMGDL_ERROR_INVALID_OPERATION, line: line) {
            $0.client_certificate = text(certificate)
            $0.client_key = text(key)
            $0.client_key_password = text(password)
        }
        let file = option == "client_key" ? key ?? "" : certificate
        assertLastError("\(option) “\(file)”", cause, line: line)
    }

    private func assertTrustFile(_ option: String, _ path: String, _ cause: String, line: UInt = #line) {
        path.withCString { file in
            assertConfigRefused("\(option) \(path)", IMGDL_ERROR_INVALID_OPERATION) {
                if option == "ca_file" { $0.ca_file = file } else { $0.crl_file = file }
            }
        }
        assertLastError("\(option) “\(path)”", cause, line: line)
    }

    private func assertLastError(_ parts: String..., line: UInt = #line) {
        let message = String(cString: imgdl_last_error())
        for part in parts { XCTAssertTrue(message.contains(part), "\(message): \(part)", line: line) }
    }

    /// A program compiled against the header of 1.0 brings the smaller structs.
    func testStructsOfVersion1AreTaken() {
        var config = imgdl_config()
        imgdl_config_init(&config, 56)
        XCTAssertEqual(config.struct_size, 56)
        var other: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_create(&config, &other), 0)
        _ = imgdl_downloader_destroy(other)
        let download = start(picture("baseline.jpg")) {
            $0.struct_size = 120
            // What is behind the old end is not the caller's: it is not read.
            $0.retry_count = 77
            $0.reserved = 99
        }
        assertEnds(download, "IMGDL_OK")
    }

    // MARK: -

    private func assertRefused(
        _ name: String, _ code: Int, _ file: StaticString = #filePath, _ line: UInt = #line,
        _ configure: (inout imgdl_request) -> Void
    ) {
        let download = start(picture("baseline.jpg"), configure)
        XCTAssertEqual(download.status, Int32(code), name, file: file, line: line)
        XCTAssertEqual(download.record.destructors, 1, name, file: file, line: line)
        XCTAssertFalse(String(cString: imgdl_last_error()).isEmpty, name, file: file, line: line)
    }

    private func assertRefused(
        _ name: String, _ code: Int, text: String, latin1: Bool = false, _ file: StaticString = #filePath,
        _ line: UInt = #line, _ set: (inout imgdl_request, UnsafePointer<CChar>) -> Void
    ) {
        let bytes = (latin1 ? text.unicodeScalars.map { UInt8($0.value) } : Array(text.utf8)) + [0]
        bytes.withUnsafeBytes { bytes in
            let text = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            assertRefused(name, code, file, line) { set(&$0, text) }
        }
    }

    private func assertConfigRefused(
        _ name: String, _ code: Int, file: StaticString = #filePath, line: UInt = #line,
        _ configure: (inout imgdl_config) -> Void
    ) {
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        configure(&config)
        var other: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_create(&config, &other), Int32(code), name, file: file, line: line)
        XCTAssertNil(other, name, file: file, line: line)
    }
}
