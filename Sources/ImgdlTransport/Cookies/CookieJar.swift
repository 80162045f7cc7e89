import Glibc
import ImgdlCore

/// The cookies of one transport: what servers set on requests that use cookies (features O5). Requests that do not use
/// them neither send nor store any, and what one partition was given no other sends. On the engine's thread.
final class CookieJar {
    private var store = CookieStore()
    private let clock: any Clock
    /// Written at the end; nil: nowhere.
    private let file: String?
    /// Whose cookies are in the file, which knows no partitions.
    private let partition: String

    /// Reads the file, in Netscape's format, for one partition. One that is missing or empty is written at the end. One
    /// that holds something else is left as it is, and the jar is in memory: no reason to download nothing, and none to
    /// overwrite it. Throws `invalidOperation`, which names the file and the cause, for what cannot be read, and for
    /// what is no file or can never become one.
    init(file: String?, partition: String = "", clock: any Clock = MonotonicClock()) throws(Failure) {
        self.clock = clock
        self.partition = partition
        guard let file, let contents = try Self.read(file) else {
            self.file = nil
            return
        }
        self.file = file
        let now = clock.wallTime()
        for cookie in CookieFile.cookies(contents) { store.restore(cookie, to: partition, now: now) }
    }

    /// The cookies of an answer from this URL, whatever its status. False where it has none.
    func receive(_ head: ResponseHead, from url: ParsedURL, _ partition: String = "") -> Bool {
        let fields = head.values(named: "Set-Cookie", maximum: CookieStore.maximumSetCookieFields)
        guard !fields.isEmpty else { return false }
        store.receive(fields, from: CookieRequest(url, partition: partition), now: clock.wallTime())
        return true
    }

    /// The line of the Cookie field, as curl takes it; nil: there is nothing to add to the fields that are given. One
    /// Cookie field is all that a request may have: what others are given comes first in it.
    func line(for url: ParsedURL, _ partition: String = "", besides given: [HeaderField]) -> [UInt8]? {
        let values = given.filter { Self.isCookie($0) && !$0.value.isEmpty }.map(\.value)
        let own = Array(values.joined(separator: "; ").utf8)
        let request = CookieRequest(url, partition: partition)
        let value = store.field(for: request, besides: own.count, now: clock.wallTime())
        return value.map { CookieStore.fieldName + own + $0 }
    }

    static func isCookie(_ field: HeaderField) -> Bool { equalIgnoringCase(field.name, "Cookie") }

    /// Writes the file anew, readable by the user alone: wholly or not at all.
    func save() {
        guard let file else { return }
        let now = clock.wallTime()
        Self.replace(file, with: CookieFile.bytes(store.cookies(of: partition).filter { !$0.isExpired(now) }))
    }

    /// Missing, empty, or begun as this and other programs begin theirs. Somebody's letter is not: nil.
    private static func read(_ file: String) throws(Failure) -> [UInt8]? {
        let descriptor = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT, !file.isEmpty else { throw unreadable(file) }
            try checkFolder(of: file)
            return []
        }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            errno = EINVAL
            throw unreadable(file)
        }
        var contents: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while contents.count < CookieFile.maximumBytes {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(file) }
            guard count > 0 else { break }
            contents += piece[..<count]
            // What is no such file is not read to its end.
            guard CookieFile.isOne(contents) else { return nil }
        }
        return contents
    }

    /// Failure with what errno says.
    private static func unreadable(_ file: String) -> Failure {
        let cause = TrustFile.cause(maximumBytes: CookieFile.maximumBytes)
        return Failure(.invalidOperation, TrustFile.cannotBeRead(file, "cookie_file", cause))
    }

    /// The folder has to be there: nobody makes it when the jar is written.
    private static func checkFolder(of file: String) throws(Failure) {
        let end = file.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = end.map { $0 == file.startIndex ? "/" : String(file[..<$0]) } ?? "."
        var status = stat()
        guard stat(folder, &status) == 0 else {
            let cause = "its folder: \(String(cString: strerror(errno)))"
            throw Failure(.invalidOperation, "cookie_file “\(file)” cannot be written: \(cause)")
        }
    }

    private static func replace(_ file: String, with bytes: [UInt8]) {
        let temporary = "\(file).\(getpid()).new"
        // Left by a process of this number that did not come to the end.
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        let isWhole = rest.isEmpty && fsync(descriptor) == 0
        Glibc.close(descriptor)
        if !isWhole || rename(temporary, file) != 0 { unlink(temporary) }
    }
}
