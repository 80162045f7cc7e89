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

    /// As long as others hold it.
    private struct Held { weak var contents: FileContents? }

    private final class Known: @unchecked Sendable {
        let lock = Lock()
        var digests: [State: [UInt8]] = [:]
        var contents: [[UInt8]: Held] = [:]
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

    /// Contents of the file now: the same for all that name it while it stays as it is, and others hold them. nil: there is no
    /// such file, or it cannot be read, or is larger than `maximumBytes`.
    package static func contents(of path: String) -> FileContents? {
        guard let state = State(path) else { return nil }
        if let held = known.lock.withLock({ known.digests[state].flatMap { known.contents[$0]?.contents } }) {
            return held
        }
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        var count = 0
        guard let bytes = ccurl_read_file(path, &digest, maximumBytes, &count) else { return nil }
        let read = FileContents(taking: bytes, count: count, digest: digest)
        // It may have been written to meanwhile: then this is what one state or the other has, and nobody else gets it for it.
        let isWhole = State(path) == state
        return known.lock.withLock {
            if isWhole { remember(digest, of: state) }
            if let held = known.contents[digest]?.contents { return held }
            if known.contents.count >= maximumKnown {
                known.contents = known.contents.filter { $0.value.contents != nil }
            }
            if known.contents.count < maximumKnown { known.contents[digest] = Held(contents: read) }
            return read
        }
    }
}
