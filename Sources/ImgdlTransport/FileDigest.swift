import CCurl
import Glibc
import ImgdlCore

/// SHA-256 of what is in a file that options name: certificates, keys, revocation lists. A file is read again when it has
/// changed. Threads: any.
package enum FileDigest {
    /// As the kernel tells one state of a file from another.
    private struct State: Hashable {
        let device, file, size, changed, changedNanoseconds, written, writtenNanoseconds: Int64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            device = Int64(truncatingIfNeeded: status.st_dev)
            file = Int64(truncatingIfNeeded: status.st_ino)
            size = Int64(status.st_size)
            changed = Int64(status.st_ctim.tv_sec)
            changedNanoseconds = Int64(status.st_ctim.tv_nsec)
            written = Int64(status.st_mtim.tv_sec)
            writtenNanoseconds = Int64(status.st_mtim.tv_nsec)
        }
    }

    /// Whether another change would show. Older kernels count times in ticks, some file systems in pairs of seconds: a file
    /// that was written a moment ago may have other bytes and the same times now.
    static func isSettled(changed: Int64, now: Int64) -> Bool { changed < now - 2 }

    private static let maximumKnown = 64

    private final class Known: @unchecked Sendable {
        let lock = Lock()
        var digests: [State: [UInt8]] = [:]
    }

    private static let known = Known()

    /// Guards what is known of all files. Made when the library is loaded, and held across fork(), as those of the process.
    package static var lock: Lock { known.lock }

    /// nil: there is no such file, or it cannot be read.
    package static func of(_ path: String) -> [UInt8]? {
        guard let state = State(path) else { return nil }
        if let digest = known.lock.withLock({ known.digests[state] }) { return digest }
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        guard ccurl_digest_file(path, &digest), State(path) == state else { return nil }
        guard isSettled(changed: state.changed, now: Int64(time(nil))) else { return digest }
        known.lock.withLock {
            if known.digests.count >= maximumKnown { known.digests = [:] }
            known.digests[state] = digest
        }
        return digest
    }
}
