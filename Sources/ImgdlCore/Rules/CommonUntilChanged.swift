import Glibc

/// A value that many have in common until they change it. It cannot be copied, as a `Boxed` can: once it is its owner's it
/// stays so, and is changed without asking who else has it, which for a transfer's course would be some sixty times.
struct CommonUntilChanged<Value>: ~Copyable {
    /// What all begin with. It outlives them, so that none has to count it.
    struct Common: ~Copyable {
        fileprivate let place: UnsafeMutablePointer<Value>

        init(_ value: consuming Value) {
            place = resized(nil, to: 1)
            place.initialize(to: value)
        }

        deinit {
            place.deinitialize(count: 1)
            free(place)
        }
    }

    /// The address of the value; odd while that is the common one.
    private var bits: UInt

    init(_ common: borrowing Common) { bits = UInt(bitPattern: common.place) | 1 }

    deinit {
        guard !isCommon else { return }
        place.deinitialize(count: 1)
        free(place)
    }

    private var isCommon: Bool { bits & 1 != 0 }
    private var place: UnsafeMutablePointer<Value> { UnsafeMutablePointer(bitPattern: bits & ~1).unsafelyUnwrapped }

    var value: Value {
        @inline(__always) unsafeAddress { UnsafePointer(place) }
        @inline(__always) unsafeMutableAddress {
            if isCommon { separate() }
            return place
        }
    }

    /// Not inlined: values are changed in very many places, and separated in few of them.
    @inline(never) private mutating func separate() {
        let own: UnsafeMutablePointer<Value> = resized(nil, to: 1)
        own.initialize(to: place.pointee)
        bits = UInt(bitPattern: own)
    }
}
