import Glibc
import ImgdlCore

/// A call of the kernel that failed.
struct DiskError: Error, Equatable {
    let number: Int32
    /// What was tried, with the file's name.
    let action: String
    /// In place of the system's words, which say of some numbers not enough.
    private var sentence: String?

    init(_ action: String, _ number: Int32 = errno) {
        self.action = action
        self.number = number
    }

    /// Something else is where a folder should be.
    static func noFolder(_ path: String) -> DiskError {
        var status = stat()
        let isFile = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        var error = DiskError("make \(path)", ENOTDIR)
        error.sentence = isFile ? "\(path) is a file, not a directory" : "\(path) is no directory"
        return error
    }

    /// Also where a link or a file is in place of a folder on the way.
    var isMissing: Bool { number == ENOENT || number == ENOTDIR }
    /// The process or the machine has no descriptor or memory left for it, which may soon be otherwise.
    var isExhaustion: Bool { [EMFILE, ENFILE, ENOMEM].contains(number) }
    /// A link, a pipe, a device, a folder is where a file should be.
    var isNoFile: Bool { [ELOOP, ENXIO, ENODEV, EISDIR].contains(number) }

    /// As the host is told.
    var failure: Failure {
        Failure(Self.code(number), sentence ?? "\(action): \(String(cString: strerror(number)))")
    }

    static func code(_ number: Int32) -> ErrorCode {
        switch number {
        case ENOSPC, EDQUOT: .diskFull
        case EROFS, EACCES, EPERM: .readOnly
        default: .diskFailed
        }
    }
}

/// The file system, as bodies and the counters of changes need it; tests have one that fails. Threads: any.
protocol Disk: Sendable {
    /// A new file that nobody else may have: descriptor.
    func create(_ path: InnerPath) throws(DiskError) -> Int32
    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ path: InnerPath) throws(DiskError)
    /// All of its blocks, from the first on.
    func reserve(_ descriptor: Int32, _ bytes: Int, _ path: InnerPath) throws(DiskError)
    /// The file is whole.
    func close(_ descriptor: Int32, _ path: InnerPath) throws(DiskError)
    /// The bytes of a file, or the names in a folder, are on the disk for good.
    func synchronize(_ path: InnerPath) throws(DiskError)
    /// The same of all of the file system that the folder is on, other programs' files too.
    func synchronizeAll(_ folder: InnerPath) throws(DiskError)
    func rename(_ from: InnerPath, _ to: InnerPath) throws(DiskError)
}
