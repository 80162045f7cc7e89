import Foundation
import Glibc

/// A server on whose backlog there is no room: connecting to it lasts until `answer`.
final class FullListener {
    private let listener: Int32
    private var fillers: [Int32] = []
    private var isAnswering = false
    private let ended = DispatchSemaphore(value: 0)
    let port: UInt16

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isThere = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isThere else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        for _ in 0..<3 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            fillers.append(filler)
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(filler, $0, length) }
            }
        }
    }

    func close() {
        for filler in fillers { Glibc.close(filler) }
        fillers = []
        shutdown(listener, Int32(SHUT_RDWR))
        if isAnswering { ended.wait() }
        Glibc.close(listener)
    }

    /// Until somebody but the fillers waits for its connection. False: nobody has come for 20 seconds.
    func waitForConnecting() -> Bool {
        let end = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < end {
            if connecting > connectingFillers { return true }
            usleep(1_000)
        }
        return false
    }

    private var connectingFillers: Int {
        fillers.count { filler in
            var information = tcp_info()
            var length = socklen_t(MemoryLayout<tcp_info>.size)
            getsockopt(filler, Int32(IPPROTO_TCP), TCP_INFO, &information, &length)
            return information.tcpi_state == UInt8(TCP_SYN_SENT)
        }
    }

    /// Sockets of this machine that wait for a connection to it.
    private var connecting: Int {
        let there = ":" + String(port, radix: 16, uppercase: true).leftPadded(to: 4)
        // To its end, of which files of this kind say nothing beforehand.
        let bytes = try? FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp")).readToEnd()
        let table = String(decoding: bytes ?? Data(), as: UTF8.self)
        return table.split(separator: "\n").count { line in
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[2].hasSuffix(there) && fields[3] == "02"
        }
    }

    /// Takes connections from now on: each gets a response with this body.
    func answer(_ body: [UInt8]) {
        for filler in fillers { Glibc.close(filler) }
        fillers = []
        isAnswering = true
        let (listener, ended) = (listener, ended)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        let response = Array(head.utf8) + body
        Thread.detachNewThread {
            defer { ended.signal() }
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                var request = [UInt8](repeating: 0, count: 4_096)
                if read(connection, &request, request.count) > 0 { _ = write(connection, response, response.count) }
                shutdown(connection, Int32(SHUT_WR))
                while read(connection, &request, request.count) > 0 {}
                Glibc.close(connection)
            }
        }
    }
}

extension String {
    fileprivate func leftPadded(to length: Int) -> String {
        String(repeating: "0", count: max(0, length - count)) + self
    }
}
