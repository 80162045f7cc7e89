import COrigin
import Glibc

/// The other side is gone, or the script has closed the connection itself: the script ends here.
package struct ConnectionEnded: Error {
    package init() {}
}

/// A TCP socket of this machine. One thread reads and writes it; any thread may shut it down.
package final class Socket: Sendable {
    package let descriptor: Int32
    private let isOpen = Monitor(true)

    package init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    /// A socket with an address of its own: whoever connects is refused until it listens.
    static func bound(to port: UInt16) throws -> Socket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(call: "socket") }
        let listener = Socket(descriptor)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        listener.set(SOL_SOCKET, SO_REUSEADDR, 1)
        guard withLoopback(port, { bind(descriptor, $0, $1) }) == 0 else { throw SystemError(call: "bind") }
        return listener
    }

    /// Calling it again changes how many connections may wait to be accepted: one more than `backlog`.
    func listen(backlog: Int32 = 1024) throws {
        guard Glibc.listen(descriptor, backlog) == 0 else { throw SystemError(call: "listen") }
    }

    /// To a port of this machine.
    static func connected(to port: UInt16) throws -> Socket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(call: "socket") }
        let socket = Socket(descriptor)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        // Holds for connecting, too: nobody waits for ever where nobody accepts.
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let connected = withLoopback(port) { connect(descriptor, $0, $1) }
        guard connected == 0 else { throw SystemError(call: "connect") }
        return socket
    }

    static func withLoopback(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    var localPort: UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// The next connection, or nil once this listener has been shut down.
    func accept() -> Socket? {
        let accepted = corigin_accept(descriptor)
        guard accepted >= 0 else { return nil }
        let socket = Socket(accepted)
        // A script decides what goes into one segment, not Nagle.
        socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        return socket
    }

    func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// 0 at the end of the stream.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count >= 0 { return count }
            if errno != EINTR { throw ConnectionEnded() }
        }
    }

    /// Sends all of it; blocks while the client does not read. `heldBack` hears true when the client has taken nothing
    /// for a tenth of a second, and false when it takes bytes again.
    package func send(_ bytes: UnsafeRawBufferPointer, heldBack: (Bool) -> Void = { _ in }) throws {
        var rest = bytes[...]
        var isHeldBack = false
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = offer(part)
            if count > 0 {
                rest = rest.dropFirst(count)
                if isHeldBack { heldBack(false) }
                isHeldBack = false
            } else if errno == EAGAIN {
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                if poll(&wait, 1, isHeldBack ? -1 : 100) == 0 {
                    isHeldBack = true
                    heldBack(true)
                }
            } else if errno != EINTR {
                throw ConnectionEnded()
            }
        }
    }

    /// Sends what there is room for; how much, or -1.
    @discardableResult
    func offer(_ bytes: UnsafeRawBufferPointer) -> Int {
        // Without MSG_NOSIGNAL a client that has left would end the whole test process.
        Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }

    /// Bytes the client's window has had no room for yet.
    var unsent: Int { Int(corigin_unsent(descriptor)) }

    /// Wakes whoever blocks on the socket.
    package func shutDown() {
        isOpen.read { if $0 { _ = shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    /// FIN; the other direction stays open.
    package func shutDownSending() {
        isOpen.read { if $0 { _ = shutdown(descriptor, Int32(SHUT_WR)) } }
    }

    package func close() {
        isOpen.change { isOpen in
            if isOpen { _ = Glibc.close(descriptor) }
            isOpen = false
        }
    }

    /// Closes with RST instead of FIN.
    func reset() {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        close()
    }
}
