import Origin
import XCTest

/// Servers that speak HTTP/2 in raw frames.
class FrameTestCase: TransportTestCase {
    func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags, 0, 0, 0, stream]
            + payload
    }

    func repeated(_ frame: [UInt8], _ count: Int) -> [UInt8] { (0..<count).flatMap { _ in frame } }

    func answer(_ stream: UInt8) -> [UInt8] { frame(1, 5, stream, [0x88]) }

    /// HTTP/2 in raw frames: `body` is called for each request.
    func serve(
        _ authority: Authority, _ signals: Signals,
        _ body: @escaping @Sendable (_ connection: Connection, _ stream: UInt8) -> Void
    ) throws -> Listener {
        let listener = try Listener(journal: Journal(), signals: signals)
        let settings = frame(4, 0, 0)
        try listener.start { connection in
            guard (try? connection.secure(by: authority)) != nil else { return }
            Self.send(settings, connection)
            Self.readFrames(connection) { type, stream in if type == 1 { body(connection, stream) } }
        }
        return listener
    }

    static func send(_ bytes: [UInt8], _ connection: Connection) {
        try? bytes.withUnsafeBytes { try connection.send($0) }
    }

    static func receive(_ connection: Connection) -> [UInt8]? {
        var part = [UInt8](repeating: 0, count: 4096)
        guard let count = try? part.withUnsafeMutableBytes({ try connection.receive(into: $0) }), count > 0 else {
            return nil
        }
        return Array(part[..<count])
    }

    /// Until the connection ends.
    static func readFrames(_ connection: Connection, _ body: (_ type: UInt8, _ stream: UInt8) -> Void) {
        var bytes: [UInt8] = []
        var at = 24  // behind the preface
        while let more = receive(connection) {
            bytes += more
            while at + 9 <= bytes.count {
                body(bytes[at + 3], bytes[at + 8])
                at += 9 + Int(bytes[at]) << 16 + Int(bytes[at + 1]) << 8 + Int(bytes[at + 2])
            }
        }
    }
}
