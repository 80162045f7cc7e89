import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Features B17, O6: whom a request trusts, as whom it appears; and that no connection, nor any TLS session, which was
/// made under one set of options ever serves a request with another.
final class TLSOptionsTests: TransportTestCase {
    private var secure: Origin!

    private func serve(_ tls: TLS = TLS(), trusted: Bool = true) throws {
        secure?.stop()
        secure = try Origin(tls: tls)
        secure.route("/a") { try $0.respond(text: "a") }
        let file = trusted ? secure.authority?.file : nil
        try makeTransport(TransportConfiguration(certificateAuthorities: file, proxy: ""))
    }

    override func tearDown() {
        super.tearDown()
        secure?.stop()
    }

    private func fetch(_ tls: TLSOptions) throws -> TransferRecord { record(of: try start(secure.url("/a"), tls: tls)) }

    /// TLS 1.2 is the least that is spoken, and 1.3 where that is asked for.
    func testLeastVersions() throws {
        for isAtMost12 in [false, true] {
            for requiresTLS13 in [false, true] {
                try serve(TLS(isAtMost12: isAtMost12))
                var configuration = TransportConfiguration(
                    certificateAuthorities: try XCTUnwrap(secure.authority).file, proxy: "")
                configuration.requiresTLS13 = requiresTLS13
                try makeTransport(configuration)
                let record = try fetch(TLSOptions())
                let expected = isAtMost12 && requiresTLS13 ? ErrorCode.tlsFailed : nil
                XCTAssertEqual(record.failure?.code, expected, record.failure?.message ?? "")
                let namesVersions = record.failure?.message.contains("REQUIRE_TLS_1_3") == true
                XCTAssertEqual(namesVersions, expected != nil, record.failure?.message ?? "")
            }
        }
    }

    /// With a list the server's certificate must not be in it, and must be of an authority that has one.
    func testRevocationLists() throws {
        try serve()
        let authority = try XCTUnwrap(secure.authority)
        let other = try Authority(.valid)
        let noList = authority.file
        let table: [(() throws -> String, ErrorCode?)] = [
            ({ try authority.revocationList(revokesServer: false) }, nil),
            ({ try authority.revocationList(revokesServer: true) }, .tlsCertificate),
            ({ try authority.revocationList(revokesServer: false, issuer: "somebody else") }, .tlsCertificate),
            // In its name, and signed by another.
            ({ try other.revocationList(revokesServer: false) }, .tlsCertificate), ({ noList }, .tlsFailed),
        ]
        for (index, (list, code)) in table.enumerated() {
            var configuration = TransportConfiguration(certificateAuthorities: authority.file, proxy: "")
            configuration.revocationLists = try list()
            try makeTransport(configuration)
            let record = try fetch(TLSOptions())
            XCTAssertEqual(record.failure?.code, code, "\(index): \(record.failure?.message ?? "")")
            if let failure = record.failure {
                XCTAssertTrue(failure.message.contains(configuration.revocationLists!), "\(index): \(failure.message)")
            }
            // Also with an authority of the request's own.
            var own = TLSOptions()
            own.certificateAuthorities = authority.file
            XCTAssertEqual(try fetch(own).failure?.code, code, "\(index)")
        }
    }

    /// Connections go by what was in the files when the transport was made, and so does the context of what they bring.
    func testFilesThatAreRewritten() throws {
        try serve()
        let authority = try XCTUnwrap(secure.authority)
        let other = try Authority(.valid)
        let file = NSTemporaryDirectory() + "imgdl-authorities-\(UUID().uuidString)"
        defer {
            other.removeFiles()
            try? FileManager.default.removeItem(atPath: file)
        }
        func write(_ source: String) throws {
            try Data(contentsOf: URL(fileURLWithPath: source)).write(to: URL(fileURLWithPath: file))
        }
        let table: [(first: String, later: String?, code: ErrorCode?)] = [
            (authority.file, other.file, nil), (other.file, authority.file, .tlsCertificate),
            (authority.file, nil, nil),
        ]
        for (first, later, code) in table {
            try write(first)
            try makeTransport(TransportConfiguration(certificateAuthorities: file, proxy: ""))
            let trust = transport.trust
            if let later { try write(later) } else { try FileManager.default.removeItem(atPath: file) }
            let record = try fetch(TLSOptions())
            XCTAssertEqual(record.failure?.code, code, record.failure?.message ?? "")
            XCTAssertFalse(record.failure?.message.contains("/proc") ?? false, record.failure?.message ?? "")
            guard later != nil else { continue }
            try makeTransport(TransportConfiguration(certificateAuthorities: file, proxy: ""))
            XCTAssertNotEqual(transport.trust, trust)
            XCTAssertNotEqual(try fetch(TLSOptions()).failure?.code, code, "another transport reads it anew")
        }
        for revokes in [true, false] {
            var configuration = TransportConfiguration(certificateAuthorities: authority.file, proxy: "")
            configuration.revocationLists = try authority.revocationList(revokesServer: revokes)
            try makeTransport(configuration)
            _ = try authority.revocationList(revokesServer: !revokes)
            XCTAssertEqual(try fetch(TLSOptions()).failure?.code, revokes ? .tlsCertificate : nil)
            try makeTransport(configuration)
            XCTAssertEqual(try fetch(TLSOptions()).failure?.code, revokes ? nil : .tlsCertificate)
        }
    }

    func testFilesThatAreTooLong() throws {
        let file = NSTemporaryDirectory() + "imgdl-long-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data(count: FileCopy.maximumBytes + 1)))
        do throws(Failure) {
            _ = try FileCopy(file, option: "crl_file")
            XCTFail("it is copied")
        } catch {
            XCTAssertEqual(error.code, .invalidOperation)
            XCTAssertTrue(error.message.contains("crl_file “\(file)”"), error.message)
        }
        XCTAssertEqual(truncate(file, off_t(FileCopy.maximumBytes)), 0)
        XCTAssertEqual(try FileCopy(file, option: "crl_file").digest, FileDigest.of(file))
    }

    /// Two requests with the options and two without, twice over: each kind has its own connection and keeps it.
    private func assertApart(
        _ tls: TLSOptions, plainFails: ErrorCode? = nil, file: StaticString = #filePath, line: UInt = #line
    ) throws {
        for _ in 0..<2 {
            for _ in 0..<2 { XCTAssertEqual(try fetch(tls).text, "a", file: file, line: line) }
            for _ in 0..<2 {
                let plain = try fetch(TLSOptions())
                XCTAssertEqual(plain.failure?.code, plainFails, plain.failure?.message ?? "", file: file, line: line)
            }
        }
        let served = secure.log.connections.filter { $0.requests > 0 }
        XCTAssertEqual(served.map(\.requests).sorted(), plainFails == nil ? [4, 4] : [4], file: file, line: line)
        XCTAssertEqual(served.filter { $0.handshake?.isResumed == true }.count, 0, file: file, line: line)
    }

    /// The same pin several times is another set of options with the same meaning.
    private func pinned(_ pin: String, times: Int) -> TLSOptions {
        pinned(times == 0 ? nil : Array(repeating: pin, count: times).joined(separator: ";"))
    }

    private func pinned(_ pin: String?) -> TLSOptions {
        var tls = TLSOptions()
        tls.pinnedPublicKey = pin
        return tls
    }

    func testPinning() throws {
        try serve()
        try assertApart(pinned(secure.authority?.pin))
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        let failed = try fetch(pinned(other))
        XCTAssertEqual(failed.failure?.code, .tlsPin, failed.failure?.message ?? "")
        XCTAssertEqual(try fetch(pinned("\(other);\(secure.authority!.pin)")).text, "a")
        XCTAssertEqual(try fetch(pinned(other)).failure?.code, .tlsPin, "though a connection stands")
        let short = ": BASE64 is the 44 characters of a SHA-256"
        let semicolon = ": a ; stands before the first or after the last"
        for (text, cause) in [
            ("", ""), ("/etc/passwd", ""), ("sha256//", short), ("sha256//x", short), ("sha256//AAAA", short),
            ("\(other);", semicolon), (";\(other)", semicolon), ("md5//\(other)", ""), ("\(other);sha256//x", short),
        ] {
            let form = "pinned_public_key is not sha256//BASE64, or several with ; between them"
            XCTAssertEqual(TLSOptions.complaint(aboutPin: text), form + cause, text)
        }
        for text in [other, "\(other);\(secure.authority!.pin)"] {
            XCTAssertNil(TLSOptions.complaint(aboutPin: text), text)
        }
    }

    func testClientCertificate() throws {
        try serve(TLS(client: .optional))
        let client = try XCTUnwrap(secure.authority?.client)
        var tls = TLSOptions()
        tls.clientCertificate = client.certificate
        tls.clientKey = client.key
        try assertApart(tls)
        let names = Set(secure.log.connections.map { $0.handshake?.clientName ?? "-" })
        XCTAssertEqual(names, ["-", client.name])
        // Another key for the same certificate is another set of options.
        var encrypted = tls
        encrypted.clientKey = client.encryptedKey
        encrypted.clientKeyPassword = client.passphrase
        XCTAssertEqual(try fetch(encrypted).text, "a")
        XCTAssertEqual(secure.log.connections.count, 3)
        for password in [nil, "wrong"] {
            encrypted.clientKeyPassword = password
            let failed = try fetch(encrypted).failure
            XCTAssertEqual(failed?.code, .tlsFailed)
            XCTAssertTrue(
                failed?.message.hasPrefix("client_key “\(client.encryptedKey)” cannot be used: ") ?? false,
                failed?.message ?? "")
        }
    }

    /// Whom a request trusts decides alone: nothing else of its security context, and no spelling.
    func testOneTrustHasOneConnection() throws {
        try serve(TLS(client: .optional))
        let client = try XCTUnwrap(secure.authority?.client)
        var tls = TLSOptions()
        tls.clientCertificate = client.certificate
        tls.clientKey = client.key
        func take(_ id: TransferID) { XCTAssertEqual(record(of: id).text, "a") }
        let url = secure.url("/a")
        for _ in 0..<2 {
            // Files are read anew for each.
            take(try start(url, tls: tls))
            take(try start(url, fields: [HeaderField("X-Key", "1"), HeaderField("accept", "a")], tls: tls))
            take(try start(url, fields: [HeaderField("Accept", "a"), HeaderField("x-key", "1")], tls: tls))
            take(try start(url, credential: Credential(user: "u", password: "p"), tls: tls))
            take(try start(url, fields: [HeaderField("Cookie", "a=1")], tls: tls))
            take(try start(url, usesCookies: true, tls: tls))
            take(try start(url, tls: tls, partition: "another"))
        }
        XCTAssertEqual(secure.log.connections.map(\.requests).sorted(), [2, 12])
    }

    /// Also where each transfer has an easy handle of its own, and where it uses cookies: sessions are the lane's.
    func testSessionsAreResumed() throws {
        for isAtMost12 in [false, true] {
            try serve(TLS(isAtMost12: isAtMost12))
            secure.route("/last") { exchange in
                try exchange.respond(headers: ["Connection": "close"], text: "a")
            }
            for number in 0..<3 {
                let id = try start(secure.url("/last"), usesCookies: number > 0)
                XCTAssertEqual(record(of: id).text, "a")
            }
            for _ in 0..<2 {
                let other = record(of: try start(secure.url("/last"), tls: pinned(secure.authority?.pin)))
                XCTAssertEqual(other.text, "a")
            }
            let resumed = secure.log.connections.map { $0.handshake?.isResumed == true }
            XCTAssertEqual(resumed, [false, true, true, false, true], "at most TLS 1.2: \(isAtMost12)")
        }
    }

    func testAClientCertificateThatIsRefused() throws {
        for isAtMost12 in [false, true] {
            try serve(TLS(client: .required, isAtMost12: isAtMost12))
            let stranger = try XCTUnwrap(secure.authority?.stranger)
            var tls = TLSOptions()
            tls.clientCertificate = stranger.certificate
            tls.clientKey = stranger.key
            for options in [tls, TLSOptions()] {
                let failure = try fetch(options).failure
                XCTAssertTrue([.tlsFailed, .connectionLost].contains(failure?.code), "\(String(describing: failure))")
                XCTAssertEqual(failure?.code, .tlsFailed, failure?.message ?? "")
            }
        }
    }

    func testAllowInvalidCertificates() throws {
        for certificate in [Certificate.expired, .wrongHost, .selfSigned] {
            try serve(TLS(certificate), trusted: certificate != .selfSigned)
            var tls = TLSOptions()
            tls.allowsInvalidCertificates = true
            try assertApart(tls, plainFails: .tlsCertificate)
        }
    }

    func testCertificateAuthorities() throws {
        try serve(trusted: false)
        var tls = TLSOptions()
        tls.certificateAuthorities = secure.authority?.file
        try assertApart(tls, plainFails: .tlsCertificate)
    }

    func testFilesThatCannotBeUsed() throws {
        try serve()
        let own = try XCTUnwrap(secure.authority?.file)
        let client = try XCTUnwrap(secure.authority?.client)
        let folder = NSTemporaryDirectory() + "imgdl-unusable-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        XCTAssertEqual(mkfifo(folder + "/pipe", 0o600), 0)
        for name in ["empty", "hole"] { close(creat("\(folder)/\(name)", 0o600)) }
        // More than there is memory for.
        XCTAssertEqual(truncate(folder + "/hole", 64 << 30), 0)
        let files = [
            ("/nonexistent/x.pem", "No such file"), ("/tmp", "not a file"), ("/etc/hostname", "“/etc/hostname”"),
            (folder + "/empty", "“\(folder)/empty”"), (folder + "/pipe", "not a file"), ("/dev/zero", "not a file"),
            (folder + "/hole", "larger than \(FileDigest.maximumBytes) bytes"),
        ]
        for (file, cause) in files {
            for option in [\TLSOptions.certificateAuthorities, \.clientCertificate, \.clientKey] {
                var tls = TLSOptions()
                if option == \TLSOptions.clientKey { tls.clientCertificate = own }
                if option == \TLSOptions.clientCertificate { tls.clientKey = client.key }
                tls[keyPath: option] = file
                for allowsInvalidCertificates in [false, true] {
                    tls.allowsInvalidCertificates = allowsInvalidCertificates
                    let failure = try fetch(tls).failure
                    let message = failure?.message ?? "\(option) \(file)"
                    XCTAssertEqual(failure?.code, .tlsFailed, message)
                    XCTAssertTrue(message.contains(cause), message)
                    XCTAssertTrue(message.contains("“\(file)”"), message)
                    XCTAssertFalse(message.contains("blob") || message.contains("BLOB"), message)
                }
            }
        }
        for name in ["text", "key"] {
            let block = "-----BEGIN PUBLIC KEY-----\nbm8gREVSIGF0IGFsbA==\n-----END PUBLIC KEY-----\n"
            let text = name == "key" ? block : "no certificate\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
            var tls = TLSOptions()
            tls.certificateAuthorities = "\(folder)/\(name)"
            for allowsInvalidCertificates in [false, true, true] {
                tls.allowsInvalidCertificates = allowsInvalidCertificates
                let failure = try fetch(tls).failure
                XCTAssertEqual(failure?.code, .tlsFailed)
                let words = "ca_file “\(folder)/\(name)” cannot be used: it holds no certificate in PEM"
                XCTAssertEqual(failure?.message, words)
            }
        }
        var both = TLSOptions()
        both.certificateAuthorities = own
        both.allowsInvalidCertificates = true
        for _ in 0..<2 { XCTAssertEqual(try fetch(both).text, "a") }
        // What holds none is found after what holds some, too.
        both.certificateAuthorities = folder + "/empty"
        XCTAssertEqual(try fetch(both).failure?.code, .tlsFailed)
        var keyAlone = TLSOptions()
        keyAlone.clientKey = own
        XCTAssertEqual(try fetch(keyAlone).failure?.code, .tlsFailed)
        XCTAssertEqual(try fetch(TLSOptions()).text, "a")
    }

    /// Connections go by what was in a request's files when it was made, whatever is in them by then.
    func testFilesThatAreExchangedBeforeTheConnection() throws {
        try serve(TLS(client: .required), trusted: false)
        let authority = try XCTUnwrap(secure.authority)
        let (client, stranger) = (try XCTUnwrap(authority.client), try XCTUnwrap(authority.stranger))
        let other = try Authority(.valid)
        let folder = NSTemporaryDirectory() + "imgdl-exchanged-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer {
            other.removeFiles()
            try? FileManager.default.removeItem(atPath: folder)
        }
        typealias Files = (authorities: String, certificate: String, key: String)
        func write(_ files: Files) throws {
            for (source, name) in [(files.authorities, "ca"), (files.certificate, "cert"), (files.key, "key")] {
                try Data(contentsOf: URL(fileURLWithPath: source)).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
            }
        }
        let right = (authority.file, client.certificate, client.key)
        let table: [(first: Files, later: Files?, code: ErrorCode?)] = [
            (right, (other.file, client.certificate, client.key), nil),
            ((other.file, client.certificate, client.key), right, .tlsCertificate),
            (right, (authority.file, stranger.certificate, stranger.key), nil),
            ((authority.file, stranger.certificate, stranger.key), right, .tlsFailed), (right, nil, nil),
        ]
        for (index, (first, later, code)) in table.enumerated() {
            try makeTransport(TransportConfiguration(proxy: ""))
            try write(first)
            var tls = TLSOptions()
            tls.certificateAuthorities = folder + "/ca"
            tls.clientCertificate = folder + "/cert"
            tls.clientKey = folder + "/key"
            try tls.readFiles()
            if let later { try write(later) } else { try FileManager.default.removeItem(atPath: folder + "/key") }
            let record = record(of: try start(secure.url("/a"), tls: tls, isRead: true))
            XCTAssertEqual(record.failure?.code, code, "\(index): \(record.failure?.message ?? "")")
            if code == nil { XCTAssertEqual(record.text, "a", "\(index)") }
        }
        // The error says of the file what was in it then.
        try makeTransport(TransportConfiguration(proxy: ""))
        try write(right)
        try Data("no certificate".utf8).write(to: URL(fileURLWithPath: folder + "/ca"))
        var broken = TLSOptions()
        broken.certificateAuthorities = folder + "/ca"
        try broken.readFiles()
        try FileManager.default.removeItem(atPath: folder + "/ca")
        let complaint = record(of: try start(secure.url("/a"), tls: broken, isRead: true)).failure
        XCTAssertEqual(complaint?.code, .tlsFailed)
        let cause = "ca_file “\(folder)/ca” cannot be used: it holds no certificate in PEM"
        XCTAssertTrue(complaint?.message.contains(cause) ?? false, complaint?.message ?? "")
        // What was not there when the request was made is not used when it is there later.
        var tls = TLSOptions()
        tls.certificateAuthorities = folder + "/later"
        try tls.readFiles()
        try Data(contentsOf: URL(fileURLWithPath: authority.file)).write(to: URL(fileURLWithPath: folder + "/later"))
        let failure = record(of: try start(secure.url("/a"), tls: tls, isRead: true)).failure
        XCTAssertEqual(failure?.code, .tlsFailed)
        XCTAssertTrue(failure?.message.contains("ca_file “\(folder)/later”") ?? false, failure?.message ?? "")
    }

    /// Connections of sets of options that nobody uses any more do not pile up.
    func testUnusedSetsAreForgotten() throws {
        try serve()
        let pin = try XCTUnwrap(secure.authority?.pin)
        let sets = (0..<(Lanes.maximumUnused + 3)).map { pinned(pin, times: $0 + 1) }
        for tls in sets { XCTAssertEqual(try fetch(tls).text, "a") }
        XCTAssertTrue(secure.wait { $0.openConnections == Lanes.maximumUnused })
        XCTAssertEqual(try fetch(sets[0]).text, "a")
    }

    /// Also where many were in use at once, and nobody asks for anything afterwards: what was in their files would stay.
    func testSetsThatWereInUseAtOnceAreForgotten() throws {
        try serve(trusted: false)
        secure.route("/held") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "1"])
            try exchange.wait("all")
            try exchange.send(body: [1])
        }
        let own = try Data(contentsOf: URL(fileURLWithPath: try XCTUnwrap(secure.authority).file))
        let folder = NSTemporaryDirectory() + "imgdl-sets-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let before = FileDigest.bytesHeld
        let size = own.count + 1_000
        let ids = try (0..<(Lanes.maximumUnused + 5)).map { number in
            var tls = TLSOptions()
            tls.certificateAuthorities = "\(folder)/\(number)"
            let padding = Data("\(number)".utf8) + Data(repeating: UInt8(ascii: "\n"), count: size)
            try (own + padding).prefix(size).write(to: URL(fileURLWithPath: "\(folder)/\(number)"))
            return try start(secure.url("/held"), tls: tls)
        }
        run(until: ids.allSatisfy { recorder[$0].head != nil })
        let each = size + HeldContents.bytesBesides
        XCTAssertEqual(FileDigest.bytesHeld - before, ids.count * each)
        secure.gate("all").open()
        for id in ids { XCTAssertEqual(record(of: id).body, [1]) }
        XCTAssertTrue(secure.wait { $0.openConnections == Lanes.maximumUnused })
        XCTAssertEqual(FileDigest.bytesHeld - before, Lanes.maximumUnused * each)
        transport.trim(connections: true)
        XCTAssertEqual(FileDigest.bytesHeld, before)
    }

    /// Their descriptors and timers find the right handle while all run at once.
    func testManySetsAtOnce() throws {
        try serve()
        secure.route("/held") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "2"])
            try exchange.send(body: [1])
            try exchange.wait("all")
            try exchange.send(body: [2])
        }
        let pin = try XCTUnwrap(secure.authority?.pin)
        let ids = try (0..<12).map { n in
            try start(secure.url("/held"), tls: pinned(pin, times: n % 4 == 0 ? 0 : n))
        }
        run(until: ids.allSatisfy { recorder[$0].body.count == 1 })
        transport.cancel(ids[5])
        secure.gate("all").open()
        for id in ids where id != ids[5] { XCTAssertEqual(record(of: id).body, [1, 2]) }
        XCTAssertTrue(secure.wait { $0.connectionsClosedByClient >= 1 })
    }
}
