import Glibc

/// Certificates and keys as they were in a file that a request's options name, when the request was made. Connections go by
/// them, whatever the file has by then. Held in memory alone, as long as a request or a connection goes by them, and wiped.
/// Equal where the same bytes are in both. Threads: any.
package final class FileContents: Hashable, @unchecked Sendable {
    /// SHA-256 of the bytes.
    package let digest: [UInt8]
    package let bytes: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawPointer
    private let willEnd: (@Sendable (UnsafeRawBufferPointer, [UInt8]) -> Void)?

    /// `memory`: of malloc(), which becomes its own. `willEnd`: called with bytes and digest when nobody goes by them any
    /// more, before that memory is given back.
    package init(
        taking memory: UnsafeMutableRawPointer, count: Int, digest: [UInt8],
        willEnd: (@Sendable (UnsafeRawBufferPointer, [UInt8]) -> Void)? = nil
    ) {
        self.memory = memory
        self.digest = digest
        self.willEnd = willEnd
        bytes = UnsafeRawBufferPointer(start: memory, count: count)
    }

    deinit {
        explicit_bzero(memory, bytes.count)
        willEnd?(bytes, digest)
        free(memory)
    }

    package static func == (left: FileContents, right: FileContents) -> Bool {
        left === right || left.digest == right.digest
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}
