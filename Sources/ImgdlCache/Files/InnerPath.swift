import CStore
import Glibc
import ImgdlCore

/// A file or folder below the cache's own. That one may be a link, or lie behind one; below it no link is followed, whenever
/// it came: each folder on the way is opened from the one before it, and what is done is done there.
struct InnerPath: Sendable, CustomStringConvertible {
    private let root: String
    /// Names of the folders on the way, and its own; none: the cache's folder itself.
    private let names: [String]

    /// The cache's folder itself.
    init(_ root: String) { self.init(root, []) }

    private init(_ root: String, _ names: [String]) {
        self.root = root
        self.names = names
    }

    func appending(_ more: String...) -> InnerPath { InnerPath(root, names + more) }

    /// In the same folder, with so much more behind its name.
    func beside(_ end: String) -> InnerPath { InnerPath(root, names.dropLast() + [name + end]) }

    var name: String { names.last ?? root }
    var description: String { names.reduce(root) { "\($0)/\($1)" } }

    /// Calls `body` with the folder that it is in, and its name there, where `body` must follow no link. Throws an error that is
    /// `isMissing` where something else is in place of a folder on the way.
    func reach<Result>(
        _ body: (Int32, UnsafePointer<CChar>) throws(DiskError) -> Result
    ) throws(DiskError) -> Result {
        var folder = AT_FDCWD
        defer { if folder >= 0 { close(folder) } }
        var name = names.isEmpty ? root : "\(root)/\(names[0])"
        for inner in names.dropFirst() {
            let next = store_open_folder(folder, name)
            guard next >= 0 else { throw DiskError("open \(self)") }
            if folder >= 0 { close(folder) }
            folder = next
            name = inner
        }
        // The library's function knows no typed errors.
        return try name.withCString { (name) -> Swift.Result<Result, DiskError> in
            do throws(DiskError) { return .success(try body(folder, name)) } catch { return .failure(error) }
        }.get()
    }

    /// Opens it as a file, and no link.
    func open(_ access: Int32) throws(DiskError) -> Int32 {
        if let descriptor = openInOneCall(access) { return descriptor }
        return try reach { (folder, name) throws(DiskError) in
            let descriptor = openat(folder, name, access | O_NOFOLLOW)
            guard descriptor >= 0 else { throw DiskError("open \(self)") }
            return descriptor
        }
    }

    /// A file two folders below the cache's own, as a body is, which each hit opens: the second folder needs no descriptor
    /// of its own. The first is opened by itself, since what is ahead of it may be a link. nil: it has failed, or the system
    /// does not know that call or forbids it, and the other way says why.
    private func openInOneCall(_ access: Int32) -> Int32? {
        guard names.count == 3 else { return nil }
        let folder = store_open_folder(AT_FDCWD, "\(root)/\(names[0])")
        guard folder >= 0 else { return nil }
        defer { close(folder) }
        let descriptor = store_open_inside(folder, "\(names[1])/\(names[2])", access)
        return descriptor < 0 ? nil : descriptor
    }

    /// Calls `body` with the folder itself.
    func enter<Result>(_ body: (Int32) throws(DiskError) -> Result) throws(DiskError) -> Result {
        try reach { (folder, name) throws(DiskError) in
            let descriptor = store_open_folder(folder, name)
            guard descriptor >= 0 else { throw DiskError("open \(self)") }
            defer { close(descriptor) }
            return try body(descriptor)
        }
    }

    /// nil: it is not there. Throws where that cannot be found out.
    func status() throws(DiskError) -> stat? {
        do throws(DiskError) {
            return try reach { (folder, name) throws(DiskError) in
                var status = stat()
                guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
                    throw DiskError("look at \(self)")
                }
                return status
            }
        } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    func unlink() throws(DiskError) {
        try reach { (folder, name) throws(DiskError) in
            guard unlinkat(folder, name, 0) == 0 else { throw DiskError("remove \(self)") }
        }
    }

    /// Gives it a second name. False: it has not got it, as where something has that.
    func link(as other: InnerPath) throws(DiskError) -> Bool {
        try reach { (folder, name) throws(DiskError) in
            try other.reach { (otherFolder, otherName) throws(DiskError) in
                linkat(folder, name, otherFolder, otherName, 0) == 0
            }
        }
    }

    func rename(to other: InnerPath) throws(DiskError) {
        try reach { (folder, name) throws(DiskError) in
            try other.reach { (otherFolder, otherName) throws(DiskError) in
                guard renameat(folder, name, otherFolder, otherName) == 0 else { throw DiskError("rename \(self)") }
            }
        }
    }
}
