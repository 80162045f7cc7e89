import CCurl
import Glibc
import ImgdlCore

/// SHA-256 of what is in a file that options name: certificates, keys, revocation lists. A file is read again when it
/// has changed. Threads: any.
package enum FileDigest {
    /// As the kernel tells one state of a file from another.
    private struct State: Hashable {
        let device, file, size, changed, changedNanoseconds, written, writtenNanoseconds: Int64

        /// nil: errno says why; EINVAL for what is no file.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            guard status.st_mode & S_IFMT == S_IFREG else {
                errno = EINVAL
                return nil
            }
            device = Int64(truncatingIfNeeded: status.st_dev)
            file = Int64(truncatingIfNeeded: status.st_ino)
            size = Int64(status.st_size)
            changed = Int64(status.st_ctim.tv_sec)
            changedNanoseconds = Int64(status.st_ctim.tv_nsec)
            written = Int64(status.st_mtim.tv_sec)
            writtenNanoseconds = Int64(status.st_mtim.tv_nsec)
        }
    }

    /// Whether another change would show. Older kernels count times in ticks, some file systems in pairs of seconds: a
    /// file that was written a moment ago may have other bytes and the same times now.
    static func isSettled(changed: Int64, now: Int64) -> Bool { changed < now - 2 }

    private static let maximumKnown = 1_024

    private final class Known: @unchecked Sendable {
        let lock = Lock()
        var digests: [State: [UInt8]] = [:]
        var held = HeldContents()
        var pairs: [ClientPair.Mark: ccurl_pair_finding] = [:]
    }

    private static let known = Known()

    /// Guards what is known of all files. Made when the library is loaded, and held across fork(), as those of the
    /// process.
    package static var lock: Lock { known.lock }

    /// In the child of a fork, inside the lock: what only the parent's threads would let go of takes no room here.
    package static func becomeChild() { known.held = HeldContents() }

    /// nil: there is no such file, or it cannot be read.
    package static func of(_ path: String) -> [UInt8]? {
        guard let state = State(path) else { return nil }
        if let digest = known.lock.withLock({ known.digests[state] }) { return digest }
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        guard ccurl_digest_file(path, &digest), State(path) == state else { return nil }
        known.lock.withLock { remember(digest, of: state) }
        return digest
    }

    /// Inside the lock.
    private static func remember(_ digest: [UInt8], of state: State) {
        guard isSettled(changed: state.changed, now: Int64(time(nil))) else { return }
        if known.digests.count >= maximumKnown { known.digests = [:] }
        known.digests[state] = digest
    }

    // MARK: With what is in it

    /// Size of a file that a request may name: all authorities of a system, and some more.
    static let maximumBytes = 4 << 20

    /// Bytes of all contents that somebody holds, with what each takes besides.
    static var bytesHeld: Int { known.lock.withLock { known.held.bytes } }

    /// Reason why there are no contents of a file.
    package enum Refusal: Error, Equatable {
        /// With the cause, in words.
        case unreadable(String)
        /// The process holds as much of other files as it may.
        case outOfMemory
    }

    /// Contents of the file now: the same for all that name it while it stays as it is, and others hold them.
    package static func contents(of path: String) throws(Refusal) -> FileContents {
        guard let state = State(path) else { throw .unreadable(TrustFile.cause(maximumBytes: maximumBytes)) }
        if let held = known.lock.withLock({ known.digests[state].flatMap { known.held.contents(of: $0) } }) {
            return held
        }
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        var count = 0
        guard let bytes = ccurl_read_file(path, &digest, maximumBytes, &count) else {
            throw .unreadable(TrustFile.cause(maximumBytes: maximumBytes))
        }
        let read = FileContents(taking: bytes, count: count, digest: digest) { bytes, digest in
            known.lock.withLock { known.held.forget(bytes, digest) }
        }
        // It may have been written to meanwhile: then this is what one state or the other has, and nobody else gets it
        // for it.
        let isWhole = State(path) == state
        let held = known.lock.withLock {
            if isWhole { remember(digest, of: state) }
            return known.held.hold(read)
        }
        // Its end takes the lock.
        withExtendedLifetime(read) {}
        guard let held else { throw .outOfMemory }
        return held
    }

    // MARK: With what two of them are together

    /// Finding about a pair: `look` is asked by whoever wants to know it first, or by several at the same time.
    static func finding(of pair: ClientPair.Mark, _ look: () -> ccurl_pair_finding) -> ccurl_pair_finding {
        if let found = known.lock.withLock({ known.pairs[pair] }) { return found }
        let found = look()
        // For want of memory nothing was found.
        guard found != CCURL_PAIR_UNKNOWN else { return found }
        known.lock.withLock {
            if known.pairs.count >= maximumKnown { known.pairs = [:] }
            known.pairs[pair] = found
        }
        return found
    }
}
