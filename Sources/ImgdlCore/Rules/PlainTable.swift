import Glibc

/// An array of plain values that is never copied, so that nothing has to look whether it is shared. It grows by a
/// quarter: there may be a million of what is in it, and the system moves large ones without a copy.
struct PlainTable<Element: BitwiseCopyable>: ~Copyable {
    private var start: UnsafeMutablePointer<Element>?
    private(set) var count = 0
    private var capacity = 0

    init() {}

    deinit { free(start) }

    subscript(_ index: Int) -> Element {
        @inline(__always) unsafeAddress {
            precondition(index >= 0 && index < count)
            return UnsafePointer(start.unsafelyUnwrapped + index)
        }
        @inline(__always) unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return start.unsafelyUnwrapped + index
        }
    }

    /// Has at least so many, the new ones of this value.
    @inline(__always) mutating func extend(to newCount: Int, with value: Element) {
        if newCount > count { add(newCount - count, value) }
    }

    private mutating func add(_ added: Int, _ value: Element) {
        if count + added > capacity {
            let larger = max(count + added, capacity + max(16, capacity / 4))
            guard let moved = realloc(start, larger * MemoryLayout<Element>.stride) else {
                fatalError("no memory for \(larger) elements")
            }
            start = moved.assumingMemoryBound(to: Element.self)
            capacity = larger
        }
        (start.unsafelyUnwrapped + count).initialize(repeating: value, count: added)
        count += added
    }
}
