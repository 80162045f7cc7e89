import Glibc
import Synchronization

/// What each URL has at least been brought to for good, as all processes of the test see it: whatever is served from then on
/// is of that version or a later one. In a file that they map.
final class Floors: @unchecked Sendable {
    private let floors: UnsafeMutablePointer<Atomic<Int64>>

    init?(_ path: String, count: Int) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0, ftruncate(descriptor, off_t(count * 16)) == 0 else { return nil }
        defer { close(descriptor) }
        guard let memory = mmap(nil, count * 16, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            memory != MAP_FAILED
        else { return nil }
        floors = memory.bindMemory(to: Atomic<Int64>.self, capacity: count * 2)
    }

    /// Of one side of a URL; 0: nothing is known.
    func version(_ key: Int, _ side: Int) -> Int64 { floors[key * 2 + side].load(ordering: .acquiring) }

    func raise(_ key: Int, _ side: Int, to version: Int64) {
        floors[key * 2 + side].store(version, ordering: .releasing)
    }
}
