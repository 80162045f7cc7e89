import Glibc

/// A body and its type, as served.
package struct Picture: Sendable {
    package var bytes: [UInt8]
    package var type: String
    package init(_ bytes: [UInt8], type: String) {
        self.bytes = bytes
        self.type = type
    }
}

/// What an origin has to give: bytes under a name, and the files of one directory.
package final class Content: Sendable {
    private struct State: Sendable {
        var named: [String: Picture] = [:]
        var directory: String?
    }

    private let state = Monitor(State())

    package subscript(name: String) -> Picture? {
        get { state.read { $0.named[name] } }
        set { state.change { $0.named[name] = newValue } }
    }

    package var directory: String? {
        get { state.read(\.directory) }
        set { state.change { $0.directory = newValue } }
    }

    /// A file below the directory; nothing above it can be named.
    func file(_ name: String) -> Picture? {
        guard let directory, !name.split(separator: "/").contains(".."),
            let bytes = contents(of: directory + "/" + name)
        else { return nil }
        return Picture(bytes, type: mediaType(of: name))
    }
}

private func contents(of path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let size = Int(status.st_size)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        while count < size {
            let part = read(file, buffer.baseAddress! + count, size - count)
            if part <= 0 { break }
            count += part
        }
    }
}

private func mediaType(of name: String) -> String {
    let types = [
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
        "svg": "image/svg+xml", "html": "text/html", "txt": "text/plain", "json": "application/json",
    ]
    guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
    return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
}
