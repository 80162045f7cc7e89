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

    /// While this lives the index is open.
    final class Claim {
        fileprivate let file: File
        fileprivate let generation: Int

        fileprivate init(_ file: File, _ generation: Int) {
            self.file = file
            self.generation = generation
        }

        deinit { if generation == ProcessGeneration.current { OpenIndexes.shared.end(self) } }
    }

    func isInherited(_ path: String) -> Bool {
        guard let file = file(path) else { return false }
        return lock.withLock { (files[file] ?? []).contains { $0 != ProcessGeneration.current } }
    }

    func claim(_ path: String) -> Claim? {
        guard let file = file(path) else { return nil }
        let claim = Claim(file, ProcessGeneration.current)
        lock.withLock { files[file, default: []].append(claim.generation) }
        return claim
    }

    private func end(_ claim: Claim) {
        lock.withLock {
            if let position = files[claim.file]?.firstIndex(of: claim.generation) {
                files[claim.file]?.remove(at: position)
            }
            if files[claim.file]?.isEmpty ?? false { files[claim.file] = nil }
        }
    }

    private func file(_ path: String) -> File? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return File(device: UInt64(status.st_dev), number: UInt64(status.st_ino))
    }
}

extension Cache {
    /// Makes what there is one of, when the library is loaded (see `Process.prepare`).
    package static func prepare() { _ = OpenIndexes.shared }
}
