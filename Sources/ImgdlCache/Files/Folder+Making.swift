import CStore
import Glibc
import ImgdlCore

extension Folder {
    /// Makes what is missing, for this user alone, whatever the umask. What is there keeps its rights.
    func make() throws(DiskError) {
        if path.isEmpty { throw DiskError("make a folder without a name", ENOENT) }
        var end = path.startIndex
        while end != path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            try Self.makeFolder(String(path[..<end]))
        }
        if isRootsForReading {
            let hasKey = (try? DigestKey.read(key)) != nil
            let reading = hasKey ? "" : ", or read its key, without which nothing that is stored can be used"
            throw DiskError("write to \(path), which is root's\(reading)", EACCES)
        }
        try makeBodies()
        try Self.makeInnerFolder(writers)
        try Self.removeOthers(in: writers) { UInt64($0, radix: 16) != nil }
    }

    private func makeBodies() throws(DiskError) {
        try Self.makeInnerFolder(bodies)
        try Self.removeOthers(in: bodies) { $0.utf8.count == 2 }
    }

    /// Files and links are removed that have names which folders are to have.
    private static func removeOthers(in path: InnerPath, _ isName: (String) -> Bool) throws(DiskError) {
        for name in try list(path) where isName(name) {
            let inner = path.appending(name)
            if try !isFolder(inner) { try? inner.unlink() }
        }
    }

    /// For bodies that get their last name; also where all of it has been taken away, or a link has come in its place.
    func makeShard(_ number: Int) throws(DiskError) {
        if try !Self.isFolder(bodies) { try makeBodies() }
        try Self.makeInnerFolder(shard(number))
    }

    private static func makeFolder(_ path: String) throws(DiskError) {
        if mkdir(path, 0o700) == 0 { return try setRights(AT_FDCWD, path, InnerPath(path)) }
        let number = errno
        // Such as EROFS of a folder that is there.
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { return }
        throw number == EEXIST ? .noFolder(path) : DiskError("make \(path)", number)
    }

    /// In the cache's own folder: a link is not followed, and what is no folder has no business there.
    private static func makeInnerFolder(_ path: InnerPath) throws(DiskError) {
        if try isFolder(path) { return }
        try? path.unlink()
        do throws(DiskError) {
            try makeNew(path)
        } catch {
            // Another program has made it.
            guard error.number == EEXIST else { throw error }
            if try !isFolder(path) { throw .noFolder(path.description) }
        }
    }

    /// A folder for this user alone, whatever the umask. Throws one of EEXIST where something has the name.
    static func makeNew(_ path: InnerPath) throws(DiskError) {
        try path.reach { (folder, name) throws(DiskError) in
            guard mkdirat(folder, name, 0o700) == 0 else { throw DiskError("make \(path)") }
            try setRights(folder, name, path)
        }
    }

    /// Of one that has just been made. Something else may have its name by now, whose rights are not changed.
    private static func setRights(
        _ folder: Int32, _ name: UnsafePointer<CChar>, _ path: InnerPath
    ) throws(DiskError) {
        let descriptor = store_open_folder(folder, name)
        guard descriptor >= 0 else { throw DiskError("make \(path)") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskError("make \(path)") }
        if status.st_mode & 0o777 == 0o700 { return }
        guard chmod("/proc/self/fd/\(descriptor)", 0o700) == 0 else { throw DiskError("set the rights of \(path)") }
    }

    private static func isFolder(_ path: InnerPath) throws(DiskError) -> Bool {
        try path.status().map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
    }

    /// The path itself, or where it leads to now if it is a link: that folder stays the cache's.
    static func withoutLink(_ path: String) -> String {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK, let target = realpath(path, nil) else {
            return path
        }
        defer { free(target) }
        return String(cString: target)
    }

    // MARK: Whose it is

    /// Why the folder that is there is not used: whoever may write to it could put in what is served as an answer. nil:
    /// it may be, or it is not there.
    var danger: Failure? {
        guard let status else { return nil }
        if status.st_uid != geteuid(), status.st_uid != 0 {
            return Failure(
                .unsafeDirectory,
                "\(path): belongs to the user of number \(status.st_uid): name another directory")
        }
        if status.st_mode & 0o022 != 0 {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            return Failure(
                .unsafeDirectory,
                "\(path): other users may write to it (its rights are \(mode)): "
                    + "name another directory, or take the right from them (chmod -R go-w)")
        }
        return nil
    }

    private var isRootsForReading: Bool { status.map { $0.st_uid == 0 && geteuid() != 0 } ?? false }

    /// nil: there is no folder of this name.
    private var status: stat? {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR ? status : nil
    }
}
