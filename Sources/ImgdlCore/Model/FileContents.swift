import Glibc
import Synchronization

/// Certificates and keys as they were in a file that a request's options name, when the request was made. Connections
/// go by them, whatever the file has by then. Held in memory alone, as long as a request or a connection goes by them,
/// and wiped. Equal where the same bytes are in both. Threads: any.
package final class FileContents: Hashable, @unchecked Sendable {
    /// SHA-256 of the bytes.
    package let digest: [UInt8]
    package let bytes: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawPointer
    private let willEnd: (@Sendable (UnsafeRawBufferPointer, [UInt8]) -> Void)?
    /// Two bits for each kind, 0 where nobody has looked for it yet.
    private let findings = Atomic<UInt8>(0)

    /// `memory`: of malloc(), which becomes its own. `willEnd`: called with bytes and digest when nobody goes by them
    /// any more, before that memory is given back.
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

    /// The finding about one kind of part: `look` is asked by whoever wants to know it first, or by several at the
    /// same time.
    package func finding(_ kind: PEMKind, _ look: (UnsafeRawBufferPointer) -> PEMFinding) -> PEMFinding {
        let shift = 2 * kind.rawValue
        if let known = PEMFinding(rawValue: findings.load(ordering: .relaxed) >> shift & 3) { return known }
        let found = look(bytes)
        findings.bitwiseOr(found.rawValue << shift, ordering: .relaxed)
        return found
    }

    package static func == (left: FileContents, right: FileContents) -> Bool {
        left === right || left.digest == right.digest
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}

/// A kind of part of a PEM file.
package enum PEMKind: UInt8, CaseIterable, Sendable {
    case authorities, revocationLists, certificate, privateKey
}

/// The parts of one kind that a PEM file turns out to hold.
package enum PEMFinding: UInt8, Sendable {
    case something = 1
    case nothing
    case broken
}
