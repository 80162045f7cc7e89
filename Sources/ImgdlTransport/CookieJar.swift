import CCurl
import Glibc
import ImgdlCore

/// The cookies of one transport: what servers set on requests that use cookies, sent by curl's rules of domain, path
/// and secure (features O5). Requests that do not use them neither send nor store any. On the engine's thread.
final class CookieJar {
    let share: UnsafeMutableRawPointer
    /// Written at the end; nil: nowhere.
    private let file: String?

    /// Reads the file, in Netscape's format. One that is missing or empty is written at the end. One that is something
    /// else is left as it is, and the jar is in memory: no reason to download nothing, and none to overwrite it.
    init(file: String?) throws(Failure) {
        guard let share = ccurl_share_of_cookies() else { throw Failure(.outOfMemory, "no memory for cookies") }
        self.share = share
        self.file = file.flatMap { Self.mayWrite($0) ? $0 : nil }
        if let file = self.file { try load(file) }
    }

    /// No handle is attached any more: they hold the jar.
    deinit { curl_share_cleanup(share) }

    /// Writes the file anew, readable by the user alone: wholly or not at all.
    func save() {
        guard let file, let handle = try? EasyHandle() else { return }
        handle.setCookies(self)
        var text = "# Netscape HTTP Cookie File\n"
        let list = ccurl_get_cookies(handle.easy)
        defer { curl_slist_free_all(list) }
        var next = list
        while let line = next {
            text += String(cString: line.pointee.data) + "\n"
            next = line.pointee.next
        }
        Self.replace(file, with: Array(text.utf8))
    }

    private func load(_ file: String) throws(Failure) {
        let handle = try EasyHandle()
        handle.setCookies(self)
        // "-" would be standard input.
        handle.set(CURLOPT_COOKIEFILE, file.hasPrefix("-") ? "./\(file)" : file)
        handle.set(CURLOPT_COOKIELIST, "RELOAD")
    }

    /// Missing, empty, or begun as this and other programs begin theirs. A device, a pipe or somebody's letter is not.
    private static func mayWrite(_ file: String) -> Bool {
        let descriptor = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        var start = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &start, start.count)
        return count == 0
            || ["# Netscape HTTP Cookie File", "# HTTP Cookie File"].contains { start.starts(with: $0.utf8) }
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
