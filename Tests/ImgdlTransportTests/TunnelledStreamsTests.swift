import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// HTTP/2 through an https proxy, which may send in one piece what is for several streams: curl reads of it what one of them
/// wants, and no socket tells of the rest.
final class TunnelledStreamsTests: TransportTestCase {
    private var secure: HTTP2Origin!
    private var proxy: ProxyOrigin!
    private var authorities = ""
    /// In which they go on: curl reads for one of them first, whichever that is.
    private let orders = [
        ["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"], ["b", "c", "a"], ["c", "a", "b"], ["c", "b", "a"],
    ]

    override func setUpWithError() throws {
        try super.setUpWithError()
        secure = try HTTP2Origin(security: .tls)
        proxy = try ProxyOrigin(tls: TLS())
        authorities = try file(of: [secure.authority, proxy.authority])
    }

    override func tearDown() {
        super.tearDown()
        proxy?.stop()
        secure?.stop()
    }

    /// Streams of one connection. Each has got its first byte, and waits behind a gate of its name.
    private func begin(
        headers: Headers = [:], _ rest: @escaping (StreamExchange) throws -> Void
    ) throws -> [String: TransferID] {
        try makeTransport(TransportConfiguration(certificateAuthorities: authorities, proxy: proxy.base))
        secure.gate("end").close()
        let names = ["a", "b", "c"]
        for name in names {
            secure.gate(name).close()
            secure.route("/\(name)") { stream in
                try stream.send(status: 200, headers: headers)
                try stream.send(body: [1])
                try stream.wait(name)
                try rest(stream)
            }
        }
        let connections = secure.log.connections.count
        let ids = try names.map { try start(secure.url("/\($0)")) }
        run(until: ids.allSatisfy { recorder[$0].body.count == 1 })
        XCTAssertEqual(secure.log.connections.count, connections + 1)
        return Dictionary(uniqueKeysWithValues: zip(names, ids))
    }

    /// In this order, each in a record of its own, which pass together.
    private func goOn(_ names: [String], more: Int = 0) {
        proxy.gather(names.count + more)
        for (number, name) in names.enumerated() {
            secure.gate(name).open()
            XCTAssertTrue(proxy.hasGathered(number + 1))
        }
    }

    func testStreamsThatEndAtOnce() throws {
        // curl does not wait for the end of the stream where it has all that was announced: some versions.
        let areWaitedFor = VersionDifference.named("broken-frames").applies
        for headers in [[:], ["Content-Length": "2"]] as [Headers] {
            for order in orders {
                let ids = try begin(headers: headers) { stream in
                    try stream.send(body: [2])
                    if headers["Content-Length"] != nil { try stream.wait("end") }
                    try stream.end()
                }
                goOn(order)
                run(until: ids.values.allSatisfy { recorder[$0].body == [1, 2] || recorder[$0].hasEnded })
                if areWaitedFor { secure.gate("end").open() }
                run(until: ids.values.allSatisfy { recorder[$0].hasEnded })
                XCTAssertTrue(ids.values.allSatisfy { recorder[$0].isFinished && recorder[$0].body == [1, 2] })
                secure.gate("end").open()
            }
        }
    }

    /// It reads no further itself.
    func testStreamsBehindOneThatIsPaused() throws {
        for order in orders {
            let ids = try begin { stream in
                if stream.request.path == "/\(order[0])" {
                    try stream.send(body: [2])
                    try stream.wait("end")
                }
                try stream.end()
            }
            let paused = try XCTUnwrap(ids[order[0]])
            transport.setPaused(paused, true)
            goOn(order)
            run(until: ids.values.allSatisfy { recorder[$0].isFinished || $0 == paused })
            XCTAssertEqual(recorder[paused].body, [1])
            transport.setPaused(paused, false)
            secure.gate("end").open()
            run(until: recorder[paused].isFinished)
            XCTAssertEqual(recorder[paused].body, [1, 2])
        }
    }

    /// Where TCP stays open curl hears of it once, for one of them.
    func testStreamsWhoseProxyEndsTLS() throws {
        let ids = try begin { try $0.end() }
        proxy.sayGoodbye()
        run(until: ids.values.allSatisfy { recorder[$0].hasEnded })
        XCTAssertEqual(ids.values.map { recorder[$0].failure?.code }, [.truncated, .truncated, .truncated])
    }

    /// Nobody is read for again and again where all are paused.
    func testStreamsThatAreAllPaused() throws {
        for order in orders {
            let ids = try begin { stream in
                try stream.send(body: [2])
                try stream.wait("end")
                try stream.send(body: [3])
                try stream.end()
            }
            for id in ids.values { transport.setPaused(id, true) }
            let received = transport.watch.receivedBytes
            goOn(order, more: 1)
            secure.gate("end").open()
            XCTAssertTrue(proxy.hasGathered(order.count + 1))
            run(until: transport.watch.receivedBytes >= received + Int64(order.count))
            for _ in 0..<50 { loop.turn(transport) }
            let works = loop.works
            for _ in 0..<50 { loop.turn(transport) }
            XCTAssertEqual(loop.works, works)
            XCTAssertTrue(ids.values.allSatisfy { recorder[$0].body == [1] })
            for id in ids.values { transport.setPaused(id, false) }
            run(until: ids.values.allSatisfy { recorder[$0].isFinished })
            XCTAssertTrue(ids.values.allSatisfy { recorder[$0].body == [1, 2, 3] })
        }
    }
}
