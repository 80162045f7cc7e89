import CAres
import Glibc

/// The system calls of c-ares, whose context is an `AresQuery`: sockets are closed on exec from their first moment, and
/// no more is read than the look-up takes.
enum AresSockets {
    /// c-ares keeps the pointer.
    nonisolated(unsafe) static let functions: UnsafePointer<ares_socket_functions> = {
        let kept = UnsafeMutablePointer<ares_socket_functions>.allocate(capacity: 1)
        kept.initialize(
            to: ares_socket_functions(
                asocket: { family, type, number, context in
                    AresQuery.with(context) { $0.openSocket(family, type, number) }
                },
                aclose: { descriptor, context in AresQuery.with(context) { $0.closeSocket(descriptor) } },
                aconnect: { descriptor, address, size, _ in connect(descriptor, address, size) },
                arecvfrom: { descriptor, buffer, size, flags, address, addressSize, context in
                    while AresQuery.with(context, { $0.mayReceive() }) {
                        let count = recvfrom(descriptor, buffer, size, flags, address, addressSize)
                        // c-ares below 1.19.1 takes an empty datagram for the end of the connection.
                        if count != 0 || isStream(descriptor) { return count }
                    }
                    errno = EAGAIN
                    return -1
                },
                asendv: { descriptor, pieces, count, _ in
                    var message = msghdr()
                    message.msg_iov = UnsafeMutablePointer(mutating: pieces)
                    message.msg_iovlen = Int(count)
                    // Not writev: a server that closes would send the program SIGPIPE.
                    return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
                }))
        return UnsafePointer(kept)
    }()

    /// A numeric address, without a zone; nil for another family.
    static func text(_ address: UnsafePointer<sockaddr>?) -> String? {
        guard let address else { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let size = socklen_t(text.count)
        let pointer = UnsafeRawPointer(address)
        let isWritten: Bool
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            var number = pointer.loadUnaligned(as: sockaddr_in.self).sin_addr
            isWritten = inet_ntop(AF_INET, &number, &text, size) != nil
        case AF_INET6:
            var number = pointer.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            isWritten = inet_ntop(AF_INET6, &number, &text, size) != nil
        default: return nil
        }
        return isWritten ? String(cString: text) : nil
    }

    private static func isStream(_ descriptor: Int32) -> Bool {
        var type: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == Int32(SOCK_STREAM.rawValue)
    }
}
