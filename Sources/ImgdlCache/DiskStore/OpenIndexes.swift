import Glibc
import ImgdlCore

/// Which indexes this process has open, and which its parent had when it forked. SQLite keeps the locks of a process in
/// tables of its own, which fork() copies and the kernel's locks do not follow: a child that opened the same file would
/// think that it has the parent's locks.
final class OpenIndexes: @unchecked Sendable {
    static let shared = OpenIndexes()

    fileprivate struct File: Hashable {
        let device: UInt64
        let number: UInt64
    }

    private let lock = Lock()
    private var files: [File: [Int]] = [:]

    /// While this lives the index is open: from before SQLite opens it, as whoever waits for it may be forked meanwhile.
    final class Claim {
        fileprivate private(set) var files: Set<File> = []
        fileprivate let generation = ProcessGeneration.current

        /// Also the file that has the name now. Asked for before and after it is opened: another one may take the name in
        /// between.
        func add(_ path: String) {
            guard let file = OpenIndexes.file(path), files.insert(file).inserted else { return }
            OpenIndexes.shared.begin(file, generation)
        }

        deinit { if generation == ProcessGeneration.current { OpenIndexes.shared.end(self) } }
    }

    func isInherited(_ path: String) -> Bool {
        guard let file = Self.file(path) else { return false }
        return lock.withLock { (files[file] ?? []).contains { $0 != ProcessGeneration.current } }
    }

    private func begin(_ file: File, _ generation: Int) {
        lock.withLock { files[file, default: []].append(generation) }
    }

    private func end(_ claim: Claim) {
        lock.withLock {
            for file in claim.files {
                guard let position = files[file]?.firstIndex(of: claim.generation) else { continue }
                files[file]?.remove(at: position)
                if files[file]?.isEmpty ?? false { files[file] = nil }
            }
        }
    }

    private static func file(_ path: String) -> File? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))
    }
}

extension Cache {
    /// Makes what there is one of, when the library is loaded (see `Process.prepare`).
    package static func prepare() { _ = OpenIndexes.shared }
}
