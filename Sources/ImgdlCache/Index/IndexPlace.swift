import Glibc
import ImgdlCore

/// The name of the index. SQLite takes its two files beside it, the log and the shared memory, by their names, a moment after
/// the index itself: so nobody opens an index while another one moves it, and those two are removed where they belong to
/// another index than the one that is there now. Else the log of one would be written into the other, and the memory of
/// programs that still have the other one open would be cut off, which ends them.
struct IndexPlace {
    let folder: Folder

    /// Whose the names are, by the numbers of their files; 0: there is none.
    private struct Files: Equatable {
        var index: UInt64
        var log: UInt64
        var memory: UInt64

        static let byteCount = 24

        init(at path: String) {
            (index, log, memory) = (Self.number(path), Self.number(path + "-wal"), Self.number(path + "-shm"))
        }

        /// nil: none were noted.
        init?(notedIn lock: FileLock) {
            var numbers: [UInt64] = [0, 0, 0]
            let count = numbers.withUnsafeMutableBytes { pread(lock.descriptor, $0.baseAddress, $0.count, 0) }
            guard count == Self.byteCount else { return nil }
            (index, log, memory) = (numbers[0], numbers[1], numbers[2])
        }

        func note(in lock: FileLock) {
            let numbers = [index, log, memory]
            // A note that could not be written is made by the next one that opens it.
            let count = numbers.withUnsafeBytes { pwrite(lock.descriptor, $0.baseAddress, $0.count, 0) }
            if count != Self.byteCount { ftruncate(lock.descriptor, 0) }
        }

        private static func number(_ path: String) -> UInt64 {
            var status = stat()
            return lstat(path, &status) == 0 ? UInt64(status.st_ino) : 0
        }
    }

    /// Called with a connection that has its file open, and nothing beside it yet: whoever takes away or replaces the index
    /// may do so at any moment.
    typealias Check = (Database) throws(DatabaseError) -> Void

    /// Opens what is there with `open`, which makes it where there is none. Waits so long for somebody who is moving it; nil:
    /// somebody was all the while, or the folder may not be used. Without the lock where that cannot be had, as nothing can be
    /// moved there.
    func whileInPlace<Problem: Error>(
        milliseconds: Int, _ open: (Check) throws(Problem) -> Index
    ) throws(Problem) -> Index? {
        guard folder.danger == nil else { return nil }
        switch try whileShared(milliseconds: milliseconds, open) {
        case .opened(let index): return index
        case .isBusy: return nil
        case .isForeign:
            guard let lock = try? lockForMoving(milliseconds: milliseconds) else { return nil }
            return try whileMoving(lock, open)
        }
    }

    private enum Attempt {
        case opened(Index)
        case isBusy
        /// The files beside it may be another one's.
        case isForeign
    }

    private func whileShared<Problem: Error>(
        milliseconds: Int, _ open: (Check) throws(Problem) -> Index
    ) throws(Problem) -> Attempt {
        let lock: FileLock?
        do throws(DiskError) {
            lock = try FileLock.waiting(folder.opening, .shared, milliseconds: milliseconds)
        } catch {
            return .opened(try open { _ in })
        }
        guard let lock else { return .isBusy }
        defer { withExtendedLifetime(lock) {} }
        guard let noted = Files(notedIn: lock), noted == Files(at: folder.index) else { return .isForeign }
        var isForeign = false
        do throws(Problem) {
            let index = try open { (database) throws(DatabaseError) in
                isForeign = database.hasMoved || noted != Files(at: folder.index)
                if isForeign { throw .busy(folder.index) }
            }
            return .opened(index)
        } catch {
            if isForeign { return .isForeign }
            throw error
        }
    }

    /// nil: somebody else is moving or opening it all the while.
    func lockForMoving(milliseconds: Int) throws(DiskError) -> FileLock? {
        try FileLock.waiting(folder.opening, .exclusive, milliseconds: milliseconds)
    }

    /// The same for who has the lock.
    func whileMoving<Problem: Error>(
        _ lock: FileLock, _ open: (Check) throws(Problem) -> Index
    ) throws(Problem) -> Index {
        defer { withExtendedLifetime(lock) {} }
        let noted = Files(notedIn: lock)
        removeForeign(noted)
        var attempts = 0
        while true {
            attempts += 1
            var hasMoved = false
            var opened: UInt64 = 0
            do throws(Problem) {
                let index = try open { (database) throws(DatabaseError) in
                    opened = Files(at: folder.index).index
                    hasMoved = database.hasMoved
                    if hasMoved { throw .busy(folder.index) }
                    removeForeign(noted)
                }
                var files = Files(at: folder.index)
                files.index = opened
                files.note(in: lock)
                return index
            } catch {
                // Another one has the name already.
                guard hasMoved, attempts < Self.mostAttempts else { throw error }
            }
        }
    }

    private static let mostAttempts = 10

    /// The log and the memory of another index. Without an index they are nobody's.
    private func removeForeign(_ noted: Files?) {
        let found = Files(at: folder.index)
        if found.index != 0, found.index == noted?.index { return }
        for (end, number, before) in [("-wal", found.log, noted?.log), ("-shm", found.memory, noted?.memory)] {
            if found.index == 0 || number == before { unlink(folder.index + end) }
        }
    }
}
