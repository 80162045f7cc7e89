import CSystem
import Dispatch
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Bodies of one connection of HTTP/2: in a turn curl reads no more of them than their streams' buffers hold.
final class StreamRoomTests: FrameTestCase {
    private static let frames = 61
    private static let frameBytes = 16_384

    /// The first stream has its body last, so that curl reads for it all that comes for the other.
    private var answers: [UInt8] {
        let full = [UInt8](repeating: 7, count: Self.frameBytes)
        return frame(1, 4, 1, [0x88]) + frame(1, 4, 3, [0x88]) + repeated(frame(0, 0, 3, full), Self.frames)
            + frame(0, 1, 3, [7]) + frame(0, 1, 1, [7])
    }

    func testNoMoreIsReadInATurnThanHalfOfABuffer() throws {
        try XCTSkipUnless(CurlVersion.needsRoomInStreams, "this machine cannot: its libcurl has room for what it reads")
        let authority = try Authority(TLS(), protocols: ["h2"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let answers = answers
        let listener = try serve(authority, Signals()) { connection, stream in
            if stream == 3 { Self.send(answers, connection) }
        }
        defer { listener.stop() }
        let ids = try (1...2).map { try start("https://127.0.0.1:\(listener.port)/\($0)") }
        var reads: [UInt64] = []
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while !ids.allSatisfy({ recorder[$0].hasEnded }), loop.now < end {
            if let connection = connection(of: ids), let socket = transport.lanes.common.multi.openSockets.first {
                waitForMore(socket)
                let before = connection.readBytes ?? 0
                transport.descriptorReady(socket, readable: true, writable: false)
                if let after = connection.readBytes { reads.append(after - before) }
            }
            loop.turn(transport)
        }
        XCTAssertGreaterThan(reads.max() ?? 0, UInt64(EasyHandle.bufferBytes) / 4)
        XCTAssertLessThanOrEqual(reads.max() ?? 0, UInt64(EasyHandle.bufferBytes) / 2)
        XCTAssertEqual(recorder[ids[0]].body.count, 1)
        XCTAssertEqual(recorder[ids[1]].body.count, Self.frames * Self.frameBytes + 1)
    }

    /// Its buffer would be full long before its end, of which nothing else tells.
    func testABodyThatIsPausedWhileAllOfItComesIsWhole() throws {
        try XCTSkipUnless(CurlVersion.needsRoomInStreams, "this machine cannot: its libcurl has room for what it reads")
        let authority = try Authority(TLS(), protocols: ["h2"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let (head, full) = (frame(1, 4, 1, [0x88]), [UInt8](repeating: 7, count: Self.frameBytes))
        for frames in [3, 4, 5, 17, Self.frames] {
            let paused = DispatchSemaphore(value: 0)
            let rest = repeated(frame(0, 0, 1, full), frames) + frame(0, 1, 1, [7])
            let listener = try serve(authority, Signals()) { connection, _ in
                Self.send(head, connection)
                paused.wait()
                Self.send(rest, connection)
            }
            defer { listener.stop() }
            let id = try start("https://127.0.0.1:\(listener.port)/")
            run(until: recorder[id].head != nil)
            transport.setPaused(id, true)
            paused.signal()
            run(until: connection(of: [id])?.readBytes ?? 0 >= UInt64(rest.count))
            XCTAssertTrue(recorder[id].body.isEmpty, "nobody takes it")
            XCTAssertFalse(recorder[id].hasEnded)
            let bytes = frames * Self.frameBytes + 1
            // It is memory that is known.
            if bytes <= KeptBody.maximumBytes { run(until: recorder.held[id]?.last == bytes) }
            transport.setPaused(id, false)
            run(until: recorder[id].hasEnded)
            XCTAssertTrue(recorder[id].isFinished)
            XCTAssertEqual(recorder[id].body.count, bytes)
            XCTAssertEqual(recorder.held[id]?.last, 0)
        }
    }

    private func connection(of ids: [TransferID]) -> SecureConnections.Connection? {
        let name = ids.lazy.compactMap { self.transport.transfers[$0] }.first { $0.hasStream }?.connectionName
        return name.flatMap { transport.lanes.common.multi.secureConnections[$0] }
    }

    /// Until more than a turn's has come, or no more comes.
    private func waitForMore(_ socket: Int32) {
        for _ in 0..<20 where system_unread(socket) <= EasyHandle.bufferBytes { usleep(1_000) }
    }
}
