import XCTest

/// HTTP/2 in cleartext, frame by frame, for what no ordinary client does on demand.
final class RawHTTP2Client {
    struct Frame: Equatable {
        var type: UInt8
        var flags: UInt8
        var stream: UInt32
        var payload: [UInt8]

        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let resetStream: UInt8 = 3
        static let settings: UInt8 = 4
        static let goAway: UInt8 = 7

        var endsStream: Bool { (type == Frame.data || type == Frame.headers) && flags & 1 != 0 }
        func number(at offset: Int) -> UInt32? {
            guard payload.count >= offset + 4 else { return nil }
            return payload[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
    }

    private let socket: RawClient

    init(port: Int) throws {
        socket = try RawClient(port: port)
        socket.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        send(Frame(type: Frame.settings, flags: 0, stream: 0, payload: []))
    }

    func send(_ frame: Frame) {
        let size = frame.payload.count
        socket.send(
            [UInt8(size >> 16), UInt8(size >> 8 & 255), UInt8(size & 255), frame.type, frame.flags]
                + bytes(frame.stream) + frame.payload)
    }

    /// GET without a body. The path must be shorter than 127 bytes.
    func get(_ path: String, stream: UInt32) {
        // HPACK: indexed :method GET and :scheme http; :authority and :path as literals with an indexed name.
        let fields: [UInt8] = [0x82, 0x86, 0x01, 6] + "origin".utf8 + [0x04, UInt8(path.utf8.count)] + path.utf8
        send(Frame(type: Frame.headers, flags: 0x5, stream: stream, payload: fields))
    }

    func reset(_ stream: UInt32, code: UInt32) {
        send(Frame(type: Frame.resetStream, flags: 0, stream: stream, payload: bytes(code)))
    }

    /// The next frame that is about streams or the end of the connection; nil at the end.
    func next() -> Frame? {
        while true {
            let head = socket.read(9)
            guard head.count == 9 else { return nil }
            let size = head[..<3].reduce(0) { $0 << 8 | Int($1) }
            let frame = Frame(
                type: head[3], flags: head[4], stream: head[5...].reduce(0) { $0 << 8 | UInt32($1) },
                payload: socket.read(size))
            if [Frame.data, Frame.headers, Frame.resetStream, Frame.goAway].contains(frame.type) { return frame }
        }
    }

    var ending: RawClient.Ending? { socket.ending }
    func close() { socket.close() }

    private func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 255) } }
}
