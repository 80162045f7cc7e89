import Glibc
import XCTest

/// A client that is nothing but a socket: what it sends and sees is exact. Every read has a deadline.
final class RawClient {
    struct Response {
        var head: String
        var body: [UInt8]
        var status: Int? { Int(head.split(separator: " ").dropFirst().first ?? "") }
    }

    enum Ending: Equatable { case closed, reset, deadline }

    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private(set) var ending: Ending?
    private var isOpen = true

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        XCTAssertEqual(connected, 0)
    }

    deinit { close() }

    func send(_ text: String) { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    func get(_ target: String, headers: String = "", method: String = "GET") {
        send("\(method) \(target) HTTP/1.1\r\nHost: origin\r\n\(headers)\r\n")
    }

    /// What is there after one more system call; nil when nothing more comes.
    func readSome() -> [UInt8]? {
        if !buffer.isEmpty {
            defer { buffer = [] }
            return buffer
        }
        var part = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &part, part.count, 0)
        if count > 0 { return Array(part[..<count]) }
        ending = count == 0 ? .closed : errno == ECONNRESET ? .reset : .deadline
        return nil
    }

    func readToEnd() -> [UInt8] {
        var all: [UInt8] = []
        while let part = readSome() { all += part }
        return all
    }

    func read(_ count: Int) -> [UInt8] {
        var all = buffer
        buffer = []
        while all.count < count, let part = readSome() { all += part }
        buffer = Array(all.dropFirst(count))
        return Array(all.prefix(count))
    }

    func readHead() -> String {
        var all: [UInt8] = []
        while true {
            if all.count >= 4,
                let end = (0...all.count - 4).first(where: { all[$0..<$0 + 4].elementsEqual([13, 10, 13, 10]) })
            {
                buffer = Array(all[(end + 4)...])
                return String(decoding: all[..<(end + 4)], as: UTF8.self)
            }
            guard let part = readSome() else { return String(decoding: all, as: UTF8.self) }
            all += part
        }
    }

    /// A response with Content-Length.
    func readResponse(hasBody: Bool = true) -> Response {
        let head = readHead()
        let length = header("Content-Length", in: head).flatMap { Int($0) } ?? 0
        return Response(head: head, body: hasBody ? read(length) : [])
    }

    func header(_ name: String, in head: String) -> String? {
        for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix(name.lowercased() + ": ") {
            return String(line.dropFirst(name.count + 2))
        }
        return nil
    }

    func close() {
        if isOpen { _ = Glibc.close(descriptor) }
        isOpen = false
    }

    func reset() {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        close()
    }
}
