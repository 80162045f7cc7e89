/// A value that many have in common until they change it. It cannot be copied, as a `Boxed` can: once it is its owner's it
/// stays so, and is changed without asking who else has it, which for a transfer's course would be some sixty times.
struct CommonUntilChanged<Value>: ~Copyable {
    final class Storage {
        fileprivate var value: Value
        fileprivate let isCommon: Bool

        fileprivate init(_ value: Value, isCommon: Bool) {
            self.value = value
            self.isCommon = isCommon
        }

        /// For all that begin with it.
        convenience init(common value: Value) { self.init(value, isCommon: true) }
    }

    private var storage: Storage

    init(_ common: Storage) { storage = common }

    var value: Value {
        @inline(__always) _read { yield storage.value }
        @inline(__always) _modify {
            if storage.isCommon { separate() }
            yield &storage.value
        }
    }

    /// Not inlined: values are changed in very many places, and separated in few of them.
    @inline(never) private mutating func separate() { storage = Storage(storage.value, isCommon: false) }
}
