import Glibc

/// Files of the cache's own, and nothing else that may lie under their names: links are not followed, and nobody waits
/// at a pipe or a device.
enum PlainFile {
    /// Of one that is there. Throws one that is `isNoFile` for what is none.
    static func open(_ path: String, _ access: Int32) throws(DiskError) -> Int32 {
        try openWithStatus(InnerPath(path), access).descriptor
    }

    static func open(_ path: InnerPath, _ access: Int32) throws(DiskError) -> Int32 {
        try openWithStatus(path, access).descriptor
    }

    static func openWithStatus(
        _ path: InnerPath, _ access: Int32
    ) throws(DiskError) -> (descriptor: Int32, status: stat) {
        let descriptor = try path.open(access | O_CLOEXEC | O_NONBLOCK)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw DiskError("open \(path), which is no file", ENXIO)
        }
        return (descriptor, status)
    }

    /// A new one, which nobody else may have and this user alone may read, whatever the umask.
    static func create(_ path: String, _ access: Int32) throws(DiskError) -> Int32 {
        try create(InnerPath(path), access)
    }

    static func create(_ path: InnerPath, _ access: Int32) throws(DiskError) -> Int32 {
        try path.reach { (folder, name) throws(DiskError) in
            let descriptor = openat(folder, name, access | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { throw DiskError("create \(path)") }
            guard fchmod(descriptor, 0o600) == 0 else {
                let error = DiskError("set the rights of \(path)")
                close(descriptor)
                unlinkat(folder, name, 0)
                throw error
            }
            return descriptor
        }
    }

    /// What is there, or a new one. What is no file has no business there and is removed.
    static func openOrCreate(_ path: String, _ access: Int32) throws(DiskError) -> Int32 {
        var last = DiskError("open \(path)", ENOENT)
        for _ in 0..<4 {
            do throws(DiskError) {
                return try open(path, access)
            } catch {
                last = error
            }
            if last.isNoFile {
                if unlink(path) != 0 { rmdir(path) }
            } else if !last.isMissing {
                throw last
            }
            do throws(DiskError) {
                return try create(path, access)
            } catch {
                // Others do the same.
                guard error.number == EEXIST else { throw error }
                last = error
            }
        }
        throw last
    }

    /// From all other users, as far as it is a file and this user's.
    static func hide(_ path: String) {
        guard let descriptor = try? open(path, O_RDONLY) else { return }
        _ = fchmod(descriptor, 0o600)
        close(descriptor)
    }

    /// Whether nothing is there, or a file that no other user may write to.
    static func isSound(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT }
        return isSound(status)
    }

    /// A file of this user's, or root's, that no other user may write to.
    static func isSound(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o022 == 0
            && (status.st_uid == geteuid() || status.st_uid == 0)
    }
}
