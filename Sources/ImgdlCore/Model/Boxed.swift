/// A large value by reference: copies share it until one of them is changed. So it is small in what there are many of.
@propertyWrapper
package struct Boxed<Value> {
    private final class Storage {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    package init(wrappedValue: Value) { storage = Storage(wrappedValue) }

    package var wrappedValue: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { separate() }
            yield &storage.value
        }
    }

    /// Not inlined: values are changed in very many places, and separated in few of them.
    @inline(never) private mutating func separate() { storage = Storage(storage.value) }

    /// To be shared further.
    package var projectedValue: Boxed { self }

    package func isSame(as other: Boxed) -> Bool { storage === other.storage }
}

extension Boxed: @unchecked Sendable where Value: Sendable {}
