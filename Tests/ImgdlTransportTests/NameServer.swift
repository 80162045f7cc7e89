import Glibc
import ImgdlCore
import XCTest

/// A name server on loopback, over UDP and TCP, that answers as the test says.
final class NameServer: @unchecked Sendable {
    enum Answer {
        /// Of the family that is asked for; there may be none.
        case addresses([String], seconds: UInt32)
        case alias(String, seconds: UInt32, [String], addressSeconds: UInt32)
        /// 2: it failed; 3: no such name.
        case code(UInt8)
        case silence
        /// Some of them, and all over TCP.
        case truncated([String], all: [String])
        /// These packets, with the query's number where there is room for it.
        case packets([[UInt8]])
    }

    private let lock = Lock()
    private let answer: @Sendable (_ name: String) -> Answer
    private let udp: Int32
    private let tcp: Int32
    /// A pipe; its end for writing is closed by `stop`.
    private var wake: [Int32] = [-1, -1]
    private var thread: ImgdlCore.Thread?
    private var asked: [String] = []
    private let isIPv6: Bool
    let port: UInt16

    /// As `dns_servers` has it.
    var address: String { isIPv6 ? "[::1]:\(port)" : "127.0.0.1:\(port)" }
    /// The names that were asked for, each as often as it was.
    var names: [String] { lock.withLock { asked } }

    func count(_ name: String) -> Int { names.count { $0 == name } }

    init(isIPv6: Bool = false, answer: @escaping @Sendable (_ name: String) -> Answer) throws {
        self.answer = answer
        self.isIPv6 = isIPv6
        (tcp, udp, port) = try Self.pair(isIPv6)
        pipe(&wake)
        listen(tcp, 16)
        thread = try ImgdlCore.Thread.start(name: "name-server") { [self] in serve() }
    }

    func stop() {
        close(wake[1])
        thread?.join()
        for descriptor in [udp, tcp, wake[0]] { close(descriptor) }
    }

    private static let typeA: UInt16 = 1
    private static let typeAAAA: UInt16 = 28

    /// Another process may have the other one of a port.
    private static func pair(_ isIPv6: Bool) throws -> (tcp: Int32, udp: Int32, port: UInt16) {
        for attempt in 1... {
            var port: UInt16 = 0
            let tcp = try bound(SocketType.stream, isIPv6, &port)
            do {
                return (tcp, try bound(SocketType.datagram, isIPv6, &port), port)
            } catch {
                close(tcp)
                if attempt == 100 { throw error }
            }
        }
        fatalError("unreachable")
    }

    private static func bound(_ type: Int32, _ isIPv6: Bool, _ port: inout UInt16) throws -> Int32 {
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, type | SocketType.closesOnExec, 0)
        var address = sockaddr_storage()
        var size = socklen_t(isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutableBytes(of: &address) { bytes in
            if isIPv6 {
                var loopback = sockaddr_in6()
                loopback.sin6_family = sa_family_t(AF_INET6)
                loopback.sin6_addr = in6addr_loopback
                loopback.sin6_port = port.bigEndian
                bytes.storeBytes(of: loopback, as: sockaddr_in6.self)
            } else {
                var loopback = sockaddr_in()
                loopback.sin_family = sa_family_t(AF_INET)
                loopback.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                loopback.sin_port = port.bigEndian
                bytes.storeBytes(of: loopback, as: sockaddr_in.self)
            }
            let pointer = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            guard bind(descriptor, pointer, size) == 0, getsockname(descriptor, pointer, &size) == 0 else {
                let reason = String(cString: strerror(errno))
                close(descriptor)
                throw Failure(.internal, "no name server: \(reason)")
            }
            port = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
        return descriptor
    }

    private func serve() {
        while true {
            var polled = [udp, tcp, wake[0]].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            poll(&polled, 3, -1)
            if polled[2].revents != 0 { return }
            if polled[0].revents != 0 { serveDatagram() }
            if polled[1].revents != 0 { serveConnection() }
        }
    }

    private func serveDatagram() {
        var query = [UInt8](repeating: 0, count: 2_048)
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
                let count = recvfrom(udp, &query, query.count, 0, peer, &size)
                guard count > 12 else { return }
                for packet in packets(Array(query[..<count]), isStream: false) {
                    _ = sendto(udp, packet, packet.count, 0, peer, size)
                }
            }
        }
    }

    private func serveConnection() {
        let connection = accept(tcp, nil, nil)
        defer { close(connection) }
        // As many as are sent on it before its end: at most one for each family.
        while true {
            var size = [UInt8](repeating: 0, count: 2)
            guard recv(connection, &size, 2, Int32(MSG_WAITALL)) == 2 else { return }
            var query = [UInt8](repeating: 0, count: Int(size[0]) << 8 | Int(size[1]))
            guard recv(connection, &query, query.count, Int32(MSG_WAITALL)) == query.count else { return }
            for packet in packets(query, isStream: true) {
                let framed = Self.bytes(UInt16(packet.count)) + packet
                _ = send(connection, framed, framed.count, Int32(MSG_NOSIGNAL))
            }
        }
    }

    private func packets(_ query: [UInt8], isStream: Bool) -> [[UInt8]] {
        var name: [String] = []
        var index = 12
        while index < query.count, query[index] != 0 {
            let end = index + 1 + Int(query[index])
            name.append(String(decoding: query[(index + 1)..<end], as: UTF8.self))
            index = end
        }
        let host = name.joined(separator: ".")
        let question = Array(query[12..<(index + 5)])
        let type = UInt16(query[index + 1]) << 8 | UInt16(query[index + 2])
        lock.withLock { asked.append(host) }
        func packet(_ code: UInt8, _ records: [[UInt8]], isTruncated: Bool = false) -> [UInt8] {
            var packet = Array(query[..<2])
            packet += [isTruncated ? 0x87 : 0x85, 0x80 | code] as [UInt8]
            for number in [1, records.count, 0, 0] { packet += Self.bytes(UInt16(number)) }
            packet += question
            for record in records { packet += record }
            return packet
        }
        switch answer(host) {
        case .addresses(let list, let seconds):
            return [packet(0, Self.records(list, type, seconds, owner: [0xC0, 12]))]
        case .alias(let target, let seconds, let list, let addressSeconds):
            var encoded: [UInt8] = []
            for label in target.split(separator: ".") { encoded += [UInt8(label.utf8.count)] + Array(label.utf8) }
            encoded.append(0)
            let alias = Self.record(encoded, 5, seconds, owner: [0xC0, 12])
            return [packet(0, [alias] + Self.records(list, type, addressSeconds, owner: encoded))]
        case .code(let code): return [packet(code, [])]
        case .silence: return []
        case .truncated(let some, let all):
            let records = Self.records(isStream ? all : some, type, 60, owner: [0xC0, 12])
            return [packet(0, records, isTruncated: !isStream)]
        case .packets(let list): return list.map { $0.count < 2 ? $0 : Array(query[..<2]) + Array($0.dropFirst(2)) }
        }
    }

    private static func records(_ list: [String], _ type: UInt16, _ seconds: UInt32, owner: [UInt8]) -> [[UInt8]] {
        list.compactMap { text in
            var address = [UInt8](repeating: 0, count: 16)
            if inet_pton(AF_INET, text, &address) == 1 {
                return type == typeA ? record(Array(address[..<4]), type, seconds, owner: owner) : nil
            }
            guard type == typeAAAA, inet_pton(AF_INET6, text, &address) == 1 else { return nil }
            return record(address, type, seconds, owner: owner)
        }
    }

    private static func record(_ data: [UInt8], _ type: UInt16, _ seconds: UInt32, owner: [UInt8]) -> [UInt8] {
        owner + bytes(type) + bytes(UInt16(1)) + bytes(seconds) + bytes(UInt16(data.count)) + data
    }

    private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
