import ImgdlCore
import OriginNginx
import XCTest

@testable import ImgdlTransport

/// Against a server in wide use, with TLS.
final class NginxTests: TransportTestCase {
    private var nginx: NginxServer!

    private func serve() throws {
        nginx?.stop()
        do {
            nginx = try NginxServer(files: ["big": Self.big, "small": [1, 2, 3]])
        } catch let problem as NginxServer.NotInstalled {
            throw XCTSkip("\(problem)")
        }
        try makeTransport(TransportConfiguration(certificateAuthorities: nginx.caFile, proxy: ""))
    }

    private static let big = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    override func tearDown() {
        super.tearDown()
        nginx?.stop()
    }

    func testManyAtOnceOverHTTP2() throws {
        try serve()
        let ids = try (0..<40).map { try start(nginx.url($0 % 2 == 0 ? "/big" : "/small")) }
        for (index, id) in ids.enumerated() {
            let record = record(of: id)
            XCTAssertEqual(record.head?.httpVersion, 20)
            XCTAssertTrue(record.isFinished)
            XCTAssertEqual(record.body, index % 2 == 0 ? Self.big : [1, 2, 3])
        }
        XCTAssertLessThanOrEqual(loop.watched.count, 1, "one connection for all")
    }

    func testCancellingHalfOfThem() throws {
        try serve()
        let ids = try (0..<20).map { _ in try start(nginx.url("/big")) }
        run(until: ids.allSatisfy { recorder[$0].head != nil })
        let running = ids.filter { !recorder[$0].hasEnded }
        for id in running.prefix(running.count / 2) { transport.cancel(id) }
        for id in running.dropFirst(running.count / 2) { XCTAssertEqual(record(of: id).body, Self.big) }
        XCTAssertEqual(try fetchSucceeding(nginx.url("/small")).body, [1, 2, 3])
    }

    func testHTTP1OverTLS() throws {
        try serve()
        let ids = try (0..<6).map { _ in try start(nginx.url("/big", .http1)) }
        for id in ids {
            XCTAssertEqual(record(of: id).body, Self.big)
            XCTAssertEqual(recorder[id].head?.httpVersion, 11)
        }
    }

    func testAnUnknownAuthority() throws {
        try serve()
        let url = nginx.url("/small")
        try makeTransport(TransportConfiguration(proxy: ""))
        let failure = try failure(of: url)
        XCTAssertEqual(failure?.code, .tlsCertificate)
        XCTAssertTrue(failure?.message.contains("issuer") ?? false, failure?.message ?? "")
    }
}
