import CSystem
import Synchronization

/// Memory that bodies have left, for those that come next: what comes fresh from the system costs a fault for each
/// page. One downloader's, freed with it and its last body. Threads: any.
package final class BodyMemory: @unchecked Sendable {
    struct Block {
        let bytes: UnsafeMutableRawPointer
        let capacity: Int
        /// Bytes that its body does not need, where they are counted.
        fileprivate var excess = 0

        /// With room for so many bytes at least; nil when there is no memory.
        init?(_ capacity: Int) {
            var found = 0
            guard let bytes = system_block_allocate(capacity, &found) else { return nil }
            self.bytes = bytes
            self.capacity = found
        }

        func free() { system_block_free(bytes, capacity) }
    }

    /// Smaller ones cost malloc little.
    private static let smallestKept = 1 << 10
    /// Smaller ones take no room of large ones.
    private static let smallestLarge = 16 << 10
    private static let mostKept = 64
    package static let mostKeptBytes = 2 << 20
    /// What bodies may have too much, all together; each may have half as much again besides.
    package static let mostExcess = 2 << 20

    /// Whoever finds it taken does without, rather than wait: fork() would copy a lock as it is.
    private let isTaken = Atomic<Bool>(false)
    /// The oldest first.
    private var kept: [Block] = []
    private var bytesInKept = 0
    private let excess = Atomic<Int>(0)

    package init() { kept.reserveCapacity(Self.mostKept + 1) }

    deinit { for block in kept { block.free() } }

    /// Bytes in blocks that nobody uses.
    package var keptBytes: Int {
        var bytes = 0
        ifFree { bytes = bytesInKept }
        return bytes
    }

    /// All that nobody uses is freed. Threads: any.
    func releaseKept() {
        var freed: [Block] = []
        ifFree {
            bytesInKept = 0
            freed = kept
            kept.removeAll(keepingCapacity: true)
        }
        for block in freed { block.free() }
    }

    /// With room for that many bytes. nil when there is no memory.
    func take(_ capacity: Int) -> Block? {
        if capacity >= Self.smallestKept {
            var found: Block?
            ifFree { found = takeKept(capacity) }
            if let found { return found }
        }
        return Block(capacity)
    }

    func giveBack(_ block: Block) {
        var block = block
        if block.excess > 0 {
            excess.subtract(block.excess, ordering: .relaxed)
            block.excess = 0
        }
        var isKept = false
        if block.capacity >= Self.smallestKept, block.capacity <= Self.mostKeptBytes {
            ifFree {
                keep(block)
                isKept = true
            }
        }
        if !isKept { block.free() }
    }

    private func ifFree(_ body: () -> Void) {
        guard !isTaken.exchange(true, ordering: .acquiring) else { return }
        body()
        isTaken.store(false, ordering: .releasing)
    }

    /// The last one that is large enough: it is still in the processor's cache, as one that fits better may not be. But a
    /// body may be kept for long, so that there is an end to what all have too much.
    private func takeKept(_ capacity: Int) -> Block? {
        let free = Self.mostExcess - excess.load(ordering: .relaxed)
        let room = capacity + max(capacity / 2, free)
        let most = capacity < Self.smallestLarge ? min(room, Self.smallestLarge) : room
        let index = kept.lastIndex { $0.capacity >= capacity && $0.capacity <= most }
        guard var block = index.map({ remove(at: $0) }) else { return nil }
        if block.capacity - capacity > capacity / 2 {
            block.excess = block.capacity - capacity
            excess.add(block.excess, ordering: .relaxed)
        }
        return block
    }

    private func keep(_ block: Block) {
        kept.append(block)
        bytesInKept += block.capacity
        while kept.count > Self.mostKept || bytesInKept > Self.mostKeptBytes { remove(at: 0).free() }
    }

    private func remove(at index: Int) -> Block {
        bytesInKept -= kept[index].capacity
        return kept.remove(at: index)
    }
}
