import Glibc
import Origin

/// A directory that goes away with the test.
final class ScratchDirectory {
    let path: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/origin-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp") }
        path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    deinit {
        if let listing = opendir(path) {
            while let entry = readdir(listing) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                unlink(path + "/" + name)
            }
            closedir(listing)
        }
        rmdir(path)
    }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        guard let file = fopen(path + "/" + name, "w") else { throw SystemError(call: name) }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    func read(_ name: String) throws -> [UInt8] {
        guard let file = fopen(path + "/" + name, "r") else { throw SystemError(call: name) }
        defer { fclose(file) }
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = fread(&part, 1, part.count, file)
            if count == 0 { return all }
            all += part[..<count]
        }
    }
}
