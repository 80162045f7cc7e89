import Foundation
import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// A scripted origin, a transport on the test's thread, and what it reported.
class TransportTestCase: XCTestCase {
    var origin: Origin!
    var loop: TestLoop!
    var recorder: Recorder!
    var transport: CurlTransport!
    private var lastID: UInt64 = 0

    override func setUpWithError() throws {
        signal(SIGPIPE, SIG_IGN)
        origin = try Origin()
        try makeTransport()
    }

    override func tearDown() {
        transport?.close()
        XCTAssertEqual(loop?.watched, [])
        // XCTest keeps its cases; a test's closures may hold the transport.
        transport = nil
        recorder = nil
        loop = nil
        origin?.stop()
        origin = nil
    }

    func makeTransport(
        _ configuration: TransportConfiguration = TransportConfiguration(proxy: ""),
        resolver: any Resolver = ThreadedResolver()
    ) throws {
        try makeTransport(configuration) { _ in resolver }
    }

    func makeTransport(
        _ configuration: TransportConfiguration = TransportConfiguration(proxy: ""),
        resolver: (TestLoop) throws -> any Resolver
    ) throws {
        transport?.close()
        loop = TestLoop()
        recorder = Recorder()
        transport = try CurlTransport(
            configuration: configuration, loop: loop, events: recorder, resolver: try resolver(loop))
    }

    /// One file that holds what is trusted of all of them, until the test ends.
    func file(of authorities: [Authority?]) throws -> String {
        let file = NSTemporaryDirectory() + "authorities-\(UUID()).pem"
        try authorities.compactMap { try $0.map { try String(contentsOfFile: $0.file, encoding: .utf8) } }.joined()
            .write(toFile: file, atomically: true, encoding: .utf8)
        addTeardownBlock { unlink(file) }
        return file
    }

    @discardableResult
    func start(
        _ url: String, method: String = "GET", fields: [HeaderField] = [], body: [UInt8]? = nil,
        maximumHeaderBytes: Int = 64 * 1024, credential: Credential? = nil, allowsBasicOverHTTP: Bool = true,
        usesCookies: Bool = false, tls: TLSOptions = TLSOptions(), isRead: Bool = false, partition: String = "",
        priority: Priority = .normal
    ) throws -> TransferID {
        lastID += 1
        let id = TransferID(rawValue: lastID)
        let url = try transport.parse(url)
        // As a request is made.
        var tls = tls
        if !isRead { try tls.readFiles() }
        transport.start(
            id,
            TransportRequest(
                url: url, method: method, fields: fields, body: body, maximumHeaderBytes: maximumHeaderBytes,
                identity: RequestIdentity(
                    trust: RequestTrust(tls: tls, partition: partition), credential: credential ?? url.credential,
                    allowsBasicOverHTTP: allowsBasicOverHTTP, usesCookies: usesCookies), priority: priority))
        return id
    }

    /// Paused from the moment on in which its request goes out: nothing of its body is taken.
    func pauseWhenSent(_ paused: TransferID) {
        let transport = transport!
        recorder.onConnected = { id in if id == paused { transport.setPaused(id, true) } }
        run(until: recorder[paused].connections == 1)
        recorder.onConnected = { _ in }
    }

    func run(until isDone: @autoclosure () -> Bool, file: StaticString = #filePath, line: UInt = #line) {
        loop.run(transport, until: isDone, file: file, line: line)
    }

    /// Turns until a server has seen something that is still to be sent: nothing wakes the loop when it has.
    func turn(
        until server: HTTP2Origin, sees condition: (Log) -> Bool, file: StaticString = #filePath, line: UInt = #line
    ) {
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while loop.now < end {
            loop.turn(transport)
            if server.wait(until: .after(.milliseconds(5)), for: condition) { return }
        }
        XCTFail("the server has not seen it: \(server.log.streams)", file: file, line: line)
    }

    func record(of id: TransferID, file: StaticString = #filePath, line: UInt = #line) -> TransferRecord {
        run(until: recorder[id].hasEnded, file: file, line: line)
        return recorder[id]
    }

    func fetch(_ url: String, file: StaticString = #filePath, line: UInt = #line) throws -> TransferRecord {
        record(of: try start(url), file: file, line: line)
    }

    func fetchSucceeding(_ url: String, file: StaticString = #filePath, line: UInt = #line) throws -> TransferRecord {
        let record = try fetch(url, file: file, line: line)
        XCTAssertNil(record.failure, file: file, line: line)
        XCTAssertTrue(record.isFinished, file: file, line: line)
        return record
    }

    func failure(of url: String, file: StaticString = #filePath, line: UInt = #line) throws -> Failure? {
        let record = try fetch(url, file: file, line: line)
        XCTAssertNotNil(record.failure, file: file, line: line)
        return record.failure
    }
}
