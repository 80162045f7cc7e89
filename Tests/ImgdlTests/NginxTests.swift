import CImgdl
import Origin
import OriginHTTP2
import OriginNginx
import XCTest

/// Against a server in wide use that nobody scripted.
final class NginxTests: XCTestCase {
    private var nginx: NginxServer!
    private var downloader: OpaquePointer!

    private static let names = [
        "baseline.jpg", "progressive.jpg", "oriented.jpg", "rgba.png", "adam7.png", "lossy.webp", "lossless.webp",
    ]
    private static let text = Array((0..<20_000).map { "line \($0)\n" }.joined().utf8)

    /// A line a thousand times, and the same from the gzip command.
    private static let unpacked = Array(String(repeating: "packed\n", count: 1_000).utf8)
    private static let packed: [UInt8] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc5, 0x21, 0x11, 0x00, 0x40, 0x08, 0x00,
        0x30, 0x4f, 0x4b, 0x8e, 0x7f, 0x85, 0xa1, 0xbf, 0x22, 0x01, 0x0d, 0x36, 0xb3, 0xc9, 0xea, 0xff, 0x62, 0x24,
        0x49, 0x92, 0x24, 0x49, 0x92, 0x24, 0x49, 0x92, 0x24, 0xdd, 0x2d, 0xe9, 0xe6, 0x15, 0x58, 0x58, 0x1b, 0x00,
        0x00,
    ]

    override func setUp() { continueAfterFailure = false }

    override func tearDown() { end() }

    private func end() {
        if downloader != nil { _ = imgdl_downloader_destroy(downloader) }
        downloader = nil
        nginx?.stop()
        nginx = nil
    }

    private func begin(
        certificate: Certificate = .valid, trusting: Bool = true, directives: String = "",
        _ configure: (inout imgdl_config) -> Void = { _ in }
    ) throws {
        end()
        var files = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, Pictures.bytes($0)) })
        files["text.txt"] = Self.text
        files["packed.txt"] = Self.unpacked
        files["packed.txt.gz"] = Self.packed
        do {
            nginx = try NginxServer(files: files, certificate: certificate, directives: directives)
        } catch let problem as NginxServer.NotInstalled {
            throw XCTSkip("\(problem)")
        }
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        configure(&config)
        let file = trusting ? nginx.caFile : nil
        let status = file.withCString { path in
            config.ca_file = path
            return imgdl_downloader_create(&config, &downloader)
        }
        XCTAssertEqual(status, 0)
    }

    private func start(
        _ url: String, events: Int = IMGDL_EVENT_ALL_BITS, headers: [(String, String?)] = [],
        _ configure: (inout imgdl_request) -> Void = { _ in }
    ) -> Download {
        Download().start(downloader, url, events: UInt32(events), headers: headers, configure)
    }

    private func version(_ port: NginxServer.Port) -> Int32 { port == .http2 ? 20 : 11 }

    // MARK: Pictures

    func testEachFormatOverEachProtocol() throws {
        try begin()
        for port in NginxServer.Port.allCases {
            let downloads = Self.names.map { start(nginx.url("/\($0)", port)) }
            for (name, download) in zip(Self.names, downloads) {
                assertEnds(download, "IMGDL_OK")
                XCTAssertEqual(download.record.httpVersion, version(port), "\(port)")
                XCTAssertNotNil(download.record.pixels)
                XCTAssertEqual(download.record.pixels, decodedPixels(Pictures.bytes(name)), "\(name) over \(port)")
            }
        }
    }

    func testManyDownloadsShareFewConnections() throws {
        try begin { $0.max_concurrent = 24 }
        let downloads = (0..<120).map { start(nginx.url("/\(Self.names[$0 % Self.names.count])?\($0)")) }
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(connections(downloads), 1, "HTTP/2")
        let others = (0..<60).map { start(nginx.url("/baseline.jpg?\($0)", .http1)) }
        for download in others { assertEnds(download, "IMGDL_OK") }
        XCTAssertLessThanOrEqual(connections(others), 24, "HTTP/1.1: kept alive")
    }

    private func connections(_ downloads: [Download]) -> Int {
        Set(downloads.compactMap { $0.field("X-Connection") }).count
    }

    /// nginx ends each connection after its third request: by `Connection: close`, or by GOAWAY while other streams of
    /// that connection may be on their way.
    func testAServerThatEndsConnectionsAllTheTime() throws {
        for port in NginxServer.Port.allCases {
            for atOnce: UInt32 in [8, 48] {
                try begin(directives: "keepalive_requests 3;") { $0.max_concurrent = atOnce }
                let downloads = (0..<60).map { start(nginx.url("/\(Self.names[$0 % Self.names.count])?\($0)", port)) }
                for download in downloads { download.wait() }
                let failures = downloads.filter { $0.name != "IMGDL_OK" }.map(\.record.message)
                XCTAssertEqual(failures, [], "\(atOnce) over \(port)")
                XCTAssertGreaterThanOrEqual(connections(downloads), 20)
            }
        }
    }

    func testPartialPicturesOfASlowServer() throws {
        let names = ["baseline.jpg", "progressive.jpg", "rgba.png", "adam7.png", "lossy.webp"]
        try begin()
        for port in [NginxServer.Port.plain, .http2] {
            let downloads = names.map { name in
                start(nginx.url("/slow/\(name)?rate=\(Pictures.bytes(name).count / 4)", port)) {
                    $0.partial_interval_ms = 1
                }
            }
            for (name, download) in zip(names, downloads) {
                assertEnds(download, "IMGDL_OK")
                let partials = download.kinds.filter { $0 == UInt32(IMGDL_EVENT_PARTIAL) }
                XCTAssertGreaterThanOrEqual(partials.count, 2, "\(name) over \(port)")
                XCTAssertEqual(download.record.pixels, decodedPixels(Pictures.bytes(name)), name)
            }
        }
    }

    // MARK: Bodies

    func testACompressedTextIsUnpacked() throws {
        try begin()
        for port in NginxServer.Port.allCases {
            let download = start(nginx.url("/text.txt", port)) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.field("Content-Encoding"), "gzip")
            XCTAssertEqual(download.record.body, Self.text)
            let progress = download.record.seen.last { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }
            XCTAssertEqual(progress?.received, Int64(Self.text.count))
            XCTAssertEqual(progress?.expected, Int64(Self.text.count))
        }
    }

    /// The length that is announced is that of the compressed file.
    func testAFileThatIsKeptCompressed() throws {
        try begin()
        for port in NginxServer.Port.allCases {
            let download = start(nginx.url("/packed.txt", port)) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.field("Content-Length"), "\(Self.packed.count)")
            XCTAssertEqual(download.record.body, Self.unpacked)
            XCTAssertTrue(download.record.seen.allSatisfy { [-1, Int64(Self.unpacked.count)].contains($0.expected) })
        }
    }

    func testARangeIsHandedOverAsItIs() throws {
        try begin()
        for port in NginxServer.Port.allCases {
            let download = start(nginx.url("/baseline.jpg", port), headers: [("Range", "bytes=10-29")]) {
                $0.flags = UInt32(IMGDL_REQUEST_BODY)
            }
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.record.httpStatus, 206)
            XCTAssertEqual(download.record.body, Array(Pictures.bytes("baseline.jpg")[10..<30]))
        }
        let part = start(nginx.url("/baseline.jpg"), headers: [("Range", "bytes=0-2999")])
        assertEnds(part, "IMGDL_ERROR_TRUNCATED")
    }

    // MARK: Certificates

    func testCertificatesThatAreRefused() throws {
        let cases: [(Certificate, trusting: Bool, words: [String])] = [
            (.expired, true, ["expired"]),
            (.wrongHost, true, ["127.0.0.1", "match"]),
            (.selfSigned, true, ["self-signed", "self signed"]),
            (.valid, false, ["issuer"]),
        ]
        for (certificate, trusting, words) in cases {
            try begin(certificate: certificate, trusting: trusting)
            for port in [NginxServer.Port.http1, .http2] {
                let download = start(nginx.url("/baseline.jpg", port))
                assertEnds(download, "IMGDL_ERROR_TLS_CERTIFICATE")
                let message = download.record.message
                XCTAssertTrue(words.contains { message.contains($0) }, "\(certificate): \(message)")
                XCTAssertTrue(message.contains("https://127.0.0.1:\(nginx.port(port))/baseline.jpg"), message)
                XCTAssertEqual(download.kinds, [UInt32(IMGDL_EVENT_STARTED), UInt32(IMGDL_EVENT_TERMINAL)])
            }
        }
    }

    func testOneNameOfTheHostIsEnough() throws {
        try begin()
        for host in ["127.0.0.1", "localhost"] {
            assertEnds(start("https://\(host):\(nginx.port(.http2))/baseline.jpg"), "IMGDL_OK")
        }
    }

    // MARK: The wrong port

    func testTLSToAPlainPort() throws {
        try begin()
        let download = start("https://127.0.0.1:\(nginx.port(.plain))/baseline.jpg")
        assertEnds(download, "IMGDL_ERROR_TLS_FAILED")
        XCTAssertFalse(download.kinds.contains(UInt32(IMGDL_EVENT_RESPONSE)))
    }

    func testPlainTextToATLSPort() throws {
        try begin()
        for port in [NginxServer.Port.http1, .http2] {
            let download = start("http://127.0.0.1:\(nginx.port(port))/baseline.jpg")
            assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
            XCTAssertEqual(download.record.httpStatus, 400)
            XCTAssertTrue(download.record.message.contains("400"), download.record.message)
        }
    }

    // MARK: Redirects

    func testRedirectsBetweenTheProtocols() throws {
        try begin()
        for port in NginxServer.Port.allCases {
            for target in NginxServer.Port.allCases {
                let path = "/to-\(target)/baseline.jpg"
                let download = start(nginx.url(path, port))
                let isDowngrade = port != .plain && target == .plain
                assertEnds(download, isDowngrade ? "IMGDL_ERROR_REDIRECT_REFUSED" : "IMGDL_OK")
                guard isDowngrade else {
                    XCTAssertEqual(download.record.responseURL, nginx.url("/baseline.jpg", target))
                    XCTAssertEqual(download.record.redirects, 1)
                    XCTAssertEqual(download.record.httpVersion, version(target))
                    continue
                }
                XCTAssertFalse(download.record.hasImage)
                let allowed = start(nginx.url(path, port)) { $0.flags = UInt32(IMGDL_REQUEST_ALLOW_DOWNGRADE) }
                assertEnds(allowed, "IMGDL_OK")
                XCTAssertEqual(allowed.record.responseURL, nginx.url("/baseline.jpg", target))
            }
        }
    }

    // MARK: The end of a server

    func testAServerKilledInMidTransfer() throws {
        for port in NginxServer.Port.allCases {
            try begin { $0.max_concurrent = 8 }
            let names = ["baseline.jpg", "progressive.jpg", "rgba.png", "lossy.webp"]
            let downloads = (0..<8).map { start(nginx.url("/slow/\(names[$0 % 4])?rate=4000&\($0)", port)) }
            for download in downloads { download.waitFor(IMGDL_EVENT_PROGRESS) }
            nginx.kill()
            for download in downloads {
                download.wait()
                XCTAssertTrue(
                    ["IMGDL_ERROR_TRUNCATED", "IMGDL_ERROR_CONNECTION_LOST"].contains(download.name),
                    "\(port): \(download.record.message)")
                XCTAssertFalse(download.record.hasImage)
            }
            assertEnds(start(nginx.url("/baseline.jpg", port)), "IMGDL_ERROR_CONNECT_FAILED")
        }
    }
}

extension Download {
    /// HTTP/2 has the names of fields in lower case.
    fileprivate func field(_ name: String) -> String? {
        record.responseFields.first { $0.key.lowercased() == name.lowercased() }?.value
    }
}
