import CStore
import Glibc
import ImgdlCore

struct KernelDisk: Disk {
    func create(_ path: InnerPath) throws(DiskError) -> Int32 {
        try PlainFile.create(path, O_WRONLY)
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ path: InnerPath) throws(DiskError) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            // Nothing written and no error would be tried for ever.
            guard count > 0 else { throw DiskError("write \(path)", count == 0 ? ENOSPC : errno) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    func reserve(_ descriptor: Int32, _ bytes: Int, _ path: InnerPath) throws(DiskError) {
        let number = posix_fallocate(descriptor, 0, off_t(bytes))
        if number != 0 { throw DiskError("reserve \(path)", number) }
    }

    /// Quotas and servers of files may say so late what they have no room for.
    func close(_ descriptor: Int32, _ path: InnerPath) throws(DiskError) {
        if Glibc.close(descriptor) != 0, errno != EINTR { throw DiskError("close \(path)") }
    }

    func synchronize(_ path: InnerPath) throws(DiskError) {
        // Some file systems cannot and need not.
        try synchronize(path) { fdatasync($0) == 0 || errno == EINVAL ? 0 : errno }
    }

    func synchronizeAll(_ folder: InnerPath) throws(DiskError) { try synchronize(folder) { store_synchronize($0) } }

    private func synchronize(_ path: InnerPath, _ call: (Int32) -> Int32) throws(DiskError) {
        let descriptor = try path.reach { (folder, name) throws(DiskError) in
            let descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard descriptor >= 0 else { throw DiskError("open \(path)") }
            return descriptor
        }
        defer { Glibc.close(descriptor) }
        let status = Thread.resting { call(descriptor) }
        if status != 0 { throw DiskError("sync \(path)", status) }
    }

    func rename(_ from: InnerPath, _ to: InnerPath) throws(DiskError) { try from.rename(to: to) }
}
