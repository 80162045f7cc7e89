/// Memory of what waits for the writing thread, or in a batch. Removals have their own: the disk may be behind with bodies,
/// and what is removed is removed all the same.
struct QueuedMemory: Equatable {
    /// Bodies and headers.
    var stores = 0
    var removals = 0

    static func += (all: inout QueuedMemory, more: QueuedMemory) {
        all.stores += more.stores
        all.removals += more.removals
    }

    static func -= (all: inout QueuedMemory, less: QueuedMemory) { all = all - less }

    static func - (all: QueuedMemory, less: QueuedMemory) -> QueuedMemory {
        QueuedMemory(stores: all.stores - less.stores, removals: all.removals - less.removals)
    }
}
