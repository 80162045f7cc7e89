import Glibc
import ImgdlCore

/// A regular file (features L1, X5: file: URLs). Whoever names a folder, a pipe or a device is refused, before it is
/// opened: that alone can have effects, or wait.
final class FileSource: LocalSource, @unchecked Sendable {
    private let url: ParsedURL
    private var descriptor: Int32 = -1
    private var left = 0

    init(_ url: ParsedURL) { self.url = url }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    func open() throws(Failure) -> ResponseHead {
        guard let path = FileURL.path(of: url) else { return head(404, length: 0) }
        var about = stat()
        guard Thread.resting({ stat(path, &about) }) == 0 else { return try refusal(errno) }
        guard isRegular(about) else { return head(403, length: 0) }
        descriptor = Thread.resting { Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
        guard descriptor >= 0, fstat(descriptor, &about) == 0 else { return try refusal(errno) }
        // It may be another one by now.
        guard isRegular(about) else { return head(403, length: 0) }
        left = Int(about.st_size)
        return head(200, length: left)
    }

    func read() throws(Failure) -> [UInt8]? {
        guard descriptor >= 0, left > 0 else { return nil }
        let descriptor = descriptor
        let wanted = min(left, Self.pieceLength)
        var problem: Int32 = 0
        let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
            let start = buffer.baseAddress
            var got = -1
            repeat { got = Thread.resting { Glibc.read(descriptor, start, wanted) } } while got < 0 && errno == EINTR
            if got < 0 { problem = errno }
            count = max(0, got)
        }
        if problem != 0 {
            throw Failure(.connectionLost, "the file cannot be read: \(String(cString: strerror(problem)))")
        }
        // It has become shorter: what was announced does not come.
        guard !piece.isEmpty else { return nil }
        left -= piece.count
        return piece
    }

    private func isRegular(_ about: stat) -> Bool { about.st_mode & S_IFMT == S_IFREG }

    private func refusal(_ problem: Int32) throws(Failure) -> ResponseHead {
        switch problem {
        case ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP: return head(404, length: 0)
        case EACCES, EPERM, ENXIO: return head(403, length: 0)
        case EMFILE, ENFILE, ENOMEM:
            throw Failure(.outOfMemory, "the file cannot be opened: \(String(cString: strerror(problem)))")
        default: throw Failure(.connectFailed, "the file cannot be opened: \(String(cString: strerror(problem)))")
        }
    }
}
