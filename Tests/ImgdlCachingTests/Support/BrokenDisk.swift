import Glibc
import ImgdlCore

@testable import ImgdlCache

/// A disk that is full from some moment on.
final class BrokenDisk: Disk, @unchecked Sendable {
    private let lock = Lock()
    private var isBroken = false

    func breakDown() { lock.withLock { isBroken = true } }

    func create(_ path: InnerPath) throws(DiskError) -> Int32 { try KernelDisk().create(path) }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ path: InnerPath) throws(DiskError) {
        if lock.withLock({ isBroken }) { throw DiskError("write", ENOSPC) }
        try KernelDisk().write(descriptor, bytes, path)
    }

    func reserve(_ descriptor: Int32, _ bytes: Int, _ path: InnerPath) throws(DiskError) {
        try KernelDisk().reserve(descriptor, bytes, path)
    }

    func close(_ descriptor: Int32, _ path: InnerPath) throws(DiskError) { try KernelDisk().close(descriptor, path) }
    func synchronize(_ path: InnerPath) throws(DiskError) { try KernelDisk().synchronize(path) }
    func synchronizeAll(_ folder: InnerPath) throws(DiskError) { try KernelDisk().synchronizeAll(folder) }
    func rename(_ from: InnerPath, _ to: InnerPath) throws(DiskError) { try KernelDisk().rename(from, to) }
}
