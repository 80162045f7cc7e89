import Glibc
import ImgdlCore

/// What a handle is of.
enum HandleKind: UInt8 {
    case downloader, token, executor, decoder, image, data, hooks, continuation, batch, coder, transfer, cache

    /// As messages call it. What Swift makes of a case is not its name: the library has no reflection metadata.
    var words: String {
        switch self {
        case .downloader: "downloader"
        case .token: "token"
        case .executor: "executor"
        case .decoder: "decoder"
        case .image: "image"
        case .data: "data object"
        case .hooks: "hook table"
        case .continuation: "continuation"
        case .batch: "batch"
        case .coder: "coder"
        case .transfer: "transfer of a loader"
        case .cache: "cache"
        }
    }

    /// Its objects belong to one process: after fork the child may only let go of them.
    var isProcessBound: Bool {
        switch self {
        case .downloader, .token, .executor, .continuation, .batch, .transfer, .cache: true
        case .decoder, .image, .data, .hooks, .coder: false
        }
    }
}

/// Every handle there is. A handle is a slot and a generation, looked up and never dereferenced: stale, doubly released
/// and wrong-typed ones are found out (DESIGN section 2, promise 7). Threads: any.
final class HandleTable {
    static let shared = HandleTable()

    private struct Slot: BitwiseCopyable {
        var generation: UInt32
        var references: Int32 = 0
        /// Of the process that it was made in.
        var process: Int32 = 0
        var kind = HandleKind.data
        /// One of the references is the process's own, which nobody gives back.
        var isKept = false
        /// Held by the table.
        var object: Unmanaged<AnyObject>?

        mutating func occupy(
            _ object: Unmanaged<AnyObject>, _ kind: HandleKind, _ references: Int32, isKept: Bool
        ) {
            self.references = references
            self.isKept = isKept
            process = Int32(truncatingIfNeeded: ProcessGeneration.current)
            self.kind = kind
            self.object = object
        }

        /// The object, if that was the last reference.
        mutating func release() -> AnyObject? {
            if isKept, references == 1 { return nil }
            references -= 1
            guard references == 0 else { return nil }
            if !isUsedUp { generation += 1 }
            return object.take()?.takeRetainedValue()
        }

        /// No generation follows: the slot is left alone, since a handle of long ago would be valid again.
        var isUsedUp: Bool { generation == .max }
    }

    let lock = Lock()
    private var slots = PlainTable<Slot>()
    /// Taken from the front: a slot rests before it is used again.
    private var free: [UInt32] = []
    private var freeHead = 0
    private let firstGeneration: UInt32
    /// A slot's number has 31 bits in a handle.
    private static let mostSlots = 1 << 31

    /// `firstGeneration`: for the test of a slot's last one.
    init(firstGeneration: UInt32 = 1) { self.firstGeneration = firstGeneration }

    /// A new handle with so many references; nil when there is none left. `isKept`: one of them is the process's own, and
    /// whoever releases it too often releases nothing.
    func insert(
        _ object: consuming AnyObject, _ kind: HandleKind, references: Int32 = 1, isKept: Bool = false
    ) -> OpaquePointer? {
        let object = Unmanaged.passRetained(consume object)
        return lock.withLock {
            let index: Int
            if let reused = takeFree() {
                index = reused
            } else {
                index = slots.count
                guard index < Self.mostSlots else {
                    object.release()
                    return nil
                }
                slots.append(Slot(generation: firstGeneration))
            }
            slots[index].occupy(object, kind, references, isKept: isKept)
            return OpaquePointer(bitPattern: UInt(slots[index].generation) << 32 | UInt(index) << 1)
        }
    }

    func object(_ handle: OpaquePointer?, _ kind: HandleKind) -> AnyObject? { look(up: handle, kind).object }

    /// `isForeign`: it was made before fork() and belongs to the parent.
    func look(up handle: OpaquePointer?, _ kind: HandleKind) -> (object: AnyObject?, isForeign: Bool) {
        lock.withLock {
            guard let index = index(handle, kind) else { return (nil, false) }
            return (slots[index].object?.takeUnretainedValue(), isForeign(index))
        }
    }

    /// What `body` makes of the object, where it lies and inside the lock; nil for what is no handle of that kind. `Object`
    /// is what the kind is of.
    func read<Object: AnyObject, Result>(
        _ handle: OpaquePointer?, _ kind: HandleKind, _ body: (Object) -> Result
    ) -> Result? {
        lock.withLock {
            guard let index = index(handle, kind), let object = slots[index].object else { return nil }
            return Unmanaged<Object>.fromOpaque(object.toOpaque())._withUnsafeGuaranteedRef(body)
        }
    }

    private func isForeign(_ index: Int) -> Bool {
        slots[index].kind.isProcessBound && slots[index].process != Int32(truncatingIfNeeded: ProcessGeneration.current)
    }

    /// False for what is no handle of that kind.
    func retain(_ handle: OpaquePointer?, _ kind: HandleKind) -> Bool {
        lock.withLock {
            guard let index = index(handle, kind), slots[index].references < .max else { return false }
            slots[index].references += 1
            return true
        }
    }

    /// The object, if that was the last reference: the caller ends it, outside the lock.
    func release(_ handle: OpaquePointer?, _ kind: HandleKind) -> AnyObject? {
        let (last, isForeign): (AnyObject?, Bool) = lock.withLock {
            guard let index = index(handle, kind) else { return (nil, false) }
            let isForeign = self.isForeign(index)
            let isUsedUp = slots[index].isUsedUp
            guard let last = slots[index].release() else { return (nil, false) }
            if !isUsedUp { free.append(UInt32(index)) }
            return (last, isForeign)
        }
        if isForeign, let last {
            // Its end would touch what is the parent's: it is forgotten as it stands.
            _ = Unmanaged<AnyObject>.passRetained(last)
            return nil
        }
        return last
    }

    private func takeFree() -> Int? {
        guard free.count - freeHead > 64 else { return nil }
        let index = Int(free[freeHead])
        freeHead += 1
        if freeHead * 2 >= free.count {
            free.removeFirst(freeHead)
            freeHead = 0
        }
        return index
    }

    private func index(_ handle: OpaquePointer?, _ kind: HandleKind) -> Int? {
        let bits = UInt(bitPattern: handle)
        let index = Int(bits & 0xFFFF_FFFF) >> 1
        guard bits & 1 == 0, index < slots.count, slots[index].generation == UInt32(truncatingIfNeeded: bits >> 32),
            slots[index].kind == kind, slots[index].object != nil
        else { return nil }
        return index
    }
}
