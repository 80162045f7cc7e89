import Glibc
import ImgdlCore

/// Where what is, in a cache's directory:
///
///     key                    see `DigestKey`
///     index-1.sqlite         the index, with SQLite's two files beside it
///     lock-1                 held while bodies get their last names, or while files without an entry are looked for
///     turn-1                 see `WriterTurn`
///     opening-1              see `IndexPlace`
///     changes-1              see `SharedChanges`
///     bodies-1/3f/0…         one file for each body, in 256 folders; all names are numbers of the library's own
///     writers-1/…/0…         bodies being written: a folder for each writer, which it holds locked while it lives
///
/// The number is the version of what is stored. A library of another version has names of its own: neither can take the
/// other's for damaged.
package struct Folder: Sendable {
    let path: String
    let bodies: InnerPath

    init(path: String) {
        self.path = path
        bodies = InnerPath(path).appending("bodies-\(Self.version)")
    }

    static let version = 1

    var key: InnerPath { InnerPath(path).appending("key") }
    var index: String { "\(path)/index-\(Self.version).sqlite" }
    var lock: String { "\(path)/lock-\(Self.version)" }
    var turn: String { "\(path)/turn-\(Self.version)" }
    var opening: String { "\(path)/opening-\(Self.version)" }
    var changes: String { "\(path)/changes-\(Self.version)" }
    var writers: InnerPath { InnerPath(path).appending("writers-\(Self.version)") }

    static let shardCount = 256

    func shard(_ number: Int) -> InnerPath { bodies.appending(Self.name(ofShard: number)) }
    private static func name(ofShard number: Int) -> String { hexadecimal(UInt64(number), digits: 2) }
    /// Neighbours share one: a flush of a few syncs one folder or two.
    func shard(of id: EntryID) -> Int { Int(id.rawValue >> 6 & 0xFF) }
    func body(_ id: EntryID) -> InnerPath {
        bodies.appending(Self.name(ofShard: shard(of: id)), Self.name(of: id))
    }

    static func name(of id: EntryID) -> String { hexadecimal(UInt64(bitPattern: id.rawValue), digits: 16) }

    /// nil: no name that `name` gives.
    static func id(of name: String) -> EntryID? {
        guard name.utf8.count == 16, let number = UInt64(name, radix: 16), hexadecimal(number, digits: 16) == name
        else {
            return nil
        }
        return EntryID(rawValue: Int64(bitPattern: number))
    }

    private static let asideMark = ".aside-"

    /// What an index that is of no use is renamed to, as is each of its files.
    func aside(_ time: Int64) -> String { "\(index)\(Self.asideMark)\(time)" }

    /// Those that were.
    var asides: [String] {
        Self.names(in: path).map { "\(path)/\($0)" }.filter { $0.hasPrefix(index + Self.asideMark) }
    }

    /// What they take.
    func bytesAside() -> Int64 {
        asides.reduce(0) { bytes, file in
            var status = stat()
            return lstat(file, &status) == 0 ? bytes + Int64(status.st_blocks) * 512 : bytes
        }
    }

    /// The names in a folder; none when it is not there, or a link.
    package static func names(in path: String) -> [String] { (try? list(InnerPath(path))) ?? [] }

    /// The same. Throws when there is no descriptor or memory to look: that says nothing of what is there.
    static func list(_ path: InnerPath) throws(DiskError) -> [String] {
        do throws(DiskError) {
            return try path.reach { (folder, name) throws(DiskError) in try list(folder, name, "open \(path)") }
        } catch {
            if error.isExhaustion { throw error }
            return []
        }
    }

    /// The names in the folder `name`, which is in `folder`. `action`: what an error says.
    static func list(
        _ folder: Int32, _ name: UnsafePointer<CChar>, _ action: @autoclosure () -> String
    ) throws(DiskError) -> [String] {
        let descriptor = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw DiskError(action()) }
        guard let folder = fdopendir(descriptor) else {
            let error = DiskError(action())
            close(descriptor)
            throw error
        }
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
}

private func hexadecimal(_ number: UInt64, digits count: Int) -> String {
    String(unsafeUninitializedCapacity: count) { text in
        for index in 0..<count {
            let digit = UInt8(truncatingIfNeeded: number >> UInt64(4 * (count - 1 - index))) & 0xF
            text[index] = digit < 10 ? digit + 0x30 : digit - 10 + 0x61
        }
        return count
    }
}
