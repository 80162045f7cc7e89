import Glibc
import ImgdlCore
import Synchronization

/// The file of counters by which programs with one folder learn of each other's changes, as it is open for a moment to be
/// mapped. All of it is in memory by then, also for who writes to it: whoever maps it waits for the disk no more.
final class ChangesFile {
    let descriptor: Int32
    let name: Name
    let isReadOnly: Bool

    struct Name: Equatable {
        let device: UInt64
        let number: UInt64

        fileprivate init(_ status: stat) { (device, number) = (UInt64(status.st_dev), UInt64(status.st_ino)) }

        /// The file that is there now; as long as one is mapped no other has its number.
        init?(at path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            self.init(status)
        }
    }

    /// nil: there is none of which this user can be sure. One of another kind, or that other users may write to, is
    /// replaced by who may write. It has all of its blocks: a hole that no room is left for would end the program that
    /// looks into it.
    init?(_ path: String, bytes: Int, isReadOnly: Bool, on disk: any Disk) {
        guard let end = path.lastIndex(of: "/"), Folder(path: String(path[..<end])).danger == nil else { return nil }
        if !isReadOnly, !PlainFile.isSound(path), unlink(path) != 0 { rmdir(path) }
        guard let descriptor = try? isReadOnly ? PlainFile.open(path, O_RDONLY) : PlainFile.openOrCreate(path, O_RDWR)
        else { return nil }
        var status = stat()
        let isOurs = fstat(descriptor, &status) == 0 && PlainFile.isSound(status)
        self.descriptor = descriptor
        self.isReadOnly = isReadOnly
        name = Name(status)
        // From here on `deinit` closes it.
        guard isOurs else { return nil }
        if !Self.isWhole(status, bytes) {
            guard !isReadOnly, (try? disk.reserve(descriptor, bytes, InnerPath(path))) != nil else { return nil }
        }
        guard bringIn(bytes) else { return nil }
    }

    deinit { close(descriptor) }

    /// Protection of its memory.
    var access: Int32 { isReadOnly ? PROT_READ : PROT_READ | PROT_WRITE }

    /// The unit of st_blocks, whatever the file system's blocks are.
    private static let blockBytes = 512

    private static func isWhole(_ status: stat, _ bytes: Int) -> Bool {
        Int(status.st_size) >= bytes && Int(status.st_blocks) * blockBytes >= bytes
    }

    /// Whether whoever has a descriptor left can use the file that is there. On a full disk it may be a short one.
    static func isUsable(_ path: String, bytes: Int) -> Bool {
        var status = stat()
        return PlainFile.isSound(path) && lstat(path, &status) == 0 && isWhole(status, bytes)
    }

    /// False: it cannot be mapped.
    private func bringIn(_ bytes: Int) -> Bool {
        let memory = mmap(nil, bytes, access, MAP_SHARED, descriptor, 0)
        guard let memory, memory != MAP_FAILED else { return false }
        defer { munmap(memory, bytes) }
        let counterBytes = MemoryLayout<Atomic<UInt64>>.stride
        let count = bytes / counterBytes
        let counters = memory.bindMemory(to: Atomic<UInt64>.self, capacity: count)
        // One of each page; others may be counting in it.
        for index in stride(from: 0, to: count, by: Int(getpagesize()) / counterBytes) {
            if isReadOnly {
                _ = counters[index].load(ordering: .relaxed)
            } else {
                counters[index].wrappingAdd(0, ordering: .relaxed)
            }
        }
        return true
    }
}
