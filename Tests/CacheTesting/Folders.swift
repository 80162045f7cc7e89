import Glibc

/// The names in a folder; none when it is not there.
package func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// With all that is in it; links are not followed.
package func removeFolder(_ path: String) {
    for name in names(in: path) {
        let inner = "\(path)/\(name)"
        var status = stat()
        if lstat(inner, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { removeFolder(inner) } else { unlink(inner) }
    }
    rmdir(path)
}
