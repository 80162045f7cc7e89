import Glibc
import ImgdlCore

/// The kernel's routes as it has them now, of the tables that every look-up goes through (local and main).
enum NetworkRoutes {
    /// As often as they changed meanwhile.
    private static let attempts = 3
    private static let sequence: UInt32 = 1

    /// nil when the kernel does not say, or says too much.
    static func read() -> RouteMessages? {
        for _ in 0..<attempts {
            let socket = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard socket >= 0 else { return nil }
            defer { close(socket) }
            var messages = RouteMessages(sequence: sequence)
            switch ask(socket, &messages) {
            case .complete: return messages
            case .interrupted: continue
            case .more, .failed: return nil
            }
        }
        return nil
    }

    private static func ask(_ socket: Int32, _ messages: inout RouteMessages) -> RouteMessages.Step {
        let request = RouteMessages.request(sequence: sequence)
        guard send(socket, request, request.count, 0) == request.count else { return .failed }
        return withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            var step = RouteMessages.Step.more
            while step == .more {
                // struct sockaddr_nl: its second number is 0 for the kernel, and others may send, too.
                var sender: (UInt32, port: UInt32, UInt32) = (0, 0, 0)
                var size = socklen_t(MemoryLayout.size(ofValue: sender))
                // The kernel tells what there is whenever it is read from: nobody waits.
                let count = withUnsafeMutableBytes(of: &sender) {
                    recvfrom(
                        socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT | MSG_TRUNC),
                        $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0, count <= buffer.count else { return .failed }
                guard sender.port == 0 else { return .failed }
                step = messages.read(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
            }
            return step
        }
    }
}
