import Glibc
import ImgdlCore

/// The cookies of one transport: what servers set on requests that use cookies (features O5). Requests that do not use
/// them neither send nor store any, and what one partition was given no other sends. Threads: any, since the process may
/// exit inside of something that the engine's thread has called.
final class CookieJar: @unchecked Sendable {
    private let lock = Lock()
    private var store = CookieStore()
    private let clock: any Clock
    /// Written at the end; nil: nowhere, or it has been given to somebody who writes it.
    private var file: String?
    /// Whose cookies are in the file, which knows no partitions.
    private let partition: String

    /// Reads the file, in Netscape's format, for one partition; one that is missing is made at the end. Throws
    /// `invalidOperation`, which names the file and the cause, for what cannot be read or written, and for what holds
    /// something else: cookies would be lost at the end, or what somebody has there.
    init(file: String?, partition: String = "", clock: any Clock = MonotonicClock()) throws(Failure) {
        self.clock = clock
        self.partition = partition
        guard let file else { return }
        let contents = try Self.read(file)
        // Whoever has a link there keeps it.
        let target = try Self.target(of: file)
        self.file = target
        try Self.checkWritable(target, isThere: contents != nil)
        let now = clock.wallTime()
        for cookie in CookieFile.cookies(contents ?? []) { store.restore(cookie, to: partition, now: now) }
    }

    /// The cookies of an answer from this URL, whatever its status. False where it has none.
    func receive(_ head: ResponseHead, from url: ParsedURL, _ partition: String = "") -> Bool {
        let fields = head.values(named: "Set-Cookie", maximum: CookieStore.maximumSetCookieFields)
        guard !fields.isEmpty else { return false }
        lock.withLock {
            store.receive(fields, from: CookieRequest(url, partition: partition), now: clock.wallTime())
        }
        return true
    }

    /// The line of the Cookie field, as curl takes it; nil: there is nothing to add to the fields that are given. One
    /// Cookie field is all that a request may have: what others are given comes first in it.
    func line(for url: ParsedURL, _ partition: String = "", besides given: [HeaderField]) -> [UInt8]? {
        let values = given.filter { Self.isCookie($0) && !$0.value.isEmpty }.map(\.value)
        let own = Array(values.joined(separator: "; ").utf8)
        let request = CookieRequest(url, partition: partition)
        let value = lock.withLock { store.field(for: request, besides: own.count, now: clock.wallTime()) }
        return value.map { CookieStore.fieldName + own + $0 }
    }

    static func isCookie(_ field: HeaderField) -> Bool { equalIgnoringCase(field.name, "Cookie") }

    /// What writes the file anew with the cookies of this moment, readable by the user alone: wholly or not at all. nil: it is
    /// written nowhere, or somebody else has that to do: it is once.
    func takeFile() -> (@Sendable () -> Void)? {
        let now = clock.wallTime()
        let taken = lock.withLock { () -> (String, [Cookie])? in
            file.take().map { ($0, store.cookies(of: partition)) }
        }
        guard let (file, cookies) = taken else { return nil }
        return { Self.replace(file, with: CookieFile.bytes(cookies.filter { !$0.isExpired(now) })) }
    }

    /// The file that links lead to, from the root on, though it may not be there yet: whoever changes the process's folder later
    /// does not move it. The name as it is where a folder is missing: it cannot be written.
    private static func target(of file: String) throws(Failure) -> String {
        var name = file
        for _ in 0..<maximumLinks {
            if let found = realpath(name, nil) { return path(found) ?? file }
            let isMissing = errno == ENOENT
            let parts = name.split(separator: "/", omittingEmptySubsequences: false)
            let folderName = parts.dropLast().joined(separator: "/")
            let isInRoot = parts.count == 2 && folderName.isEmpty
            guard isMissing, let last = parts.last, !last.isEmpty,
                let folder = path(realpath(isInRoot ? "/" : parts.count == 1 ? "." : folderName, nil))
            else { return name }
            let own = folder == "/" ? "/\(last)" : "\(folder)/\(last)"
            guard let next = try link(own) else { return own }
            name = next.hasPrefix("/") ? next : "\(folder)/\(next)"
        }
        return file
    }

    /// As many as Linux follows.
    private static let maximumLinks = 40

    /// nil also for what is no UTF-8: then the name that was given leads there.
    private static func path(_ allocated: UnsafeMutablePointer<CChar>?) -> String? {
        defer { free(allocated) }
        return allocated.flatMap { String(validatingCString: $0) }
    }

    /// Where a link leads; nil: it is none. Throws `invalidOperation` where that is no UTF-8, and so no name that can be given.
    private static func link(_ name: String) throws(Failure) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard readlink(name, &bytes, bytes.count - 1) > 0 else { return nil }
        guard let target = String(validatingCString: bytes) else {
            throw Failure(
                .invalidOperation, "cookie_file: the link “\(name)” leads to a file whose name is not in UTF-8")
        }
        return target
    }

    /// nil: there is none yet.
    private static func read(_ file: String) throws(Failure) -> [UInt8]? {
        let descriptor = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT, !file.isEmpty else { throw unreadable(file) }
            return nil
        }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            errno = EINVAL
            throw unreadable(file)
        }
        var contents: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while Int(status.st_size) <= CookieFile.maximumBytes, contents.count <= CookieFile.maximumBytes {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(file) }
            contents += piece[..<count]
            guard count == 0 else { continue }
            guard CookieFile.isOne(contents) else {
                let cause = "it holds something else than cookies in Netscape's format"
                throw Failure(.invalidOperation, TrustFile.cannotBeUsed(file, "cookie_file", cause))
            }
            return contents
        }
        errno = EFBIG
        throw unreadable(file)
    }

    /// Failure with what errno says.
    private static func unreadable(_ file: String) -> Failure {
        let cause = TrustFile.cause(maximumBytes: CookieFile.maximumBytes)
        return Failure(.invalidOperation, TrustFile.cannotBeRead(file, "cookie_file", cause))
    }

    /// Whether it can be written at the end, as it is written then: under another name first.
    private static func checkWritable(_ file: String, isThere: Bool) throws(Failure) {
        if isThere {
            let descriptor = open(file, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { throw unwritable(file, "") }
            Glibc.close(descriptor)
        }
        guard let new = NewFile(besides: file) else { throw unwritable(file, "its folder: ") }
        new.remove()
    }

    /// Failure with what errno says.
    private static func unwritable(_ file: String, _ place: String) -> Failure {
        let cause = place + String(cString: strerror(errno))
        return Failure(.invalidOperation, "cookie_file “\(file)” cannot be written: \(cause)")
    }

    private static func replace(_ file: String, with bytes: [UInt8]) {
        guard let new = NewFile(besides: file) else { return }
        if !new.write(bytes) || rename(new.name, file) != 0 { new.remove() } else { new.close() }
    }
}

/// A file that takes another one's place when it is whole, in the same folder under a name that nobody else has.
/// Readable by the user alone.
private struct NewFile {
    let name: String
    private let descriptor: Int32

    /// nil: errno says why.
    init?(besides file: String) {
        var name = ""
        var descriptor: Int32 = -1
        for _ in 0..<8 where descriptor < 0 {
            name = "\(file).\(String(UInt32.random(in: 0 ... .max), radix: 16))"
            descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 || errno == EEXIST else { return nil }
        }
        guard descriptor >= 0 else { return nil }
        self.name = name
        self.descriptor = descriptor
    }

    /// False unless all of it is on the disk.
    func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return fsync(descriptor) == 0
    }

    func close() { Glibc.close(descriptor) }

    func remove() {
        close()
        unlink(name)
    }
}
