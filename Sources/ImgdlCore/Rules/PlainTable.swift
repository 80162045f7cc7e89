import Glibc

/// An array of plain values that is never copied, so that nothing has to look whether it is shared. It grows by an
/// eighth: there may be a million of what is in it, and the system moves large ones without a copy.
///
/// Inlined: other modules would go through unspecialised code.
@frozen @usableFromInline package struct PlainTable<Element: BitwiseCopyable>: ~Copyable {
    @usableFromInline var start: UnsafeMutablePointer<Element>?
    @usableFromInline package private(set) var count = 0
    @usableFromInline var capacity = 0

    @inlinable package init() {}

    @inlinable deinit { free(start) }

    @inlinable package var isEmpty: Bool { count == 0 }

    @inlinable package subscript(_ index: Int) -> Element {
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
    @inlinable @inline(__always) package mutating func extend(to newCount: Int, with value: Element) {
        while count < newCount {
            if count == capacity { grow() }
            (start.unsafelyUnwrapped + count).initialize(to: value)
            count += 1
        }
    }

    @inlinable @inline(__always) package mutating func append(_ value: Element) { extend(to: count + 1, with: value) }

    @inlinable @inline(__always) package mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return start.unsafelyUnwrapped[count]
    }

    /// Keeps the memory.
    @inlinable package mutating func removeAll() { count = 0 }

    /// A crowd is over: gives its memory back.
    @inlinable @inline(never) package mutating func reset() {
        free(start)
        start = nil
        count = 0
        capacity = 0
    }

    /// Seldom called, and from many places.
    @inlinable @inline(never) mutating func grow() {
        capacity = grown(capacity)
        start = resized(start, to: capacity)
    }
}

/// Tables that have become empty keep room for so many, and give the rest back.
@inlinable var mostRoomKept: Int { 1024 }

/// The next capacity of a table: there may be a million in it, so an eighth more and not as many again. In steps that are
/// not too small: malloc keeps what they leave behind.
@inlinable func grown(_ capacity: Int) -> Int { capacity + max(64, capacity / 8) }

/// The same memory with room for so many, or new memory for nil; to be freed with `free`. Values in it move as bytes, as
/// those of Swift may that nobody else points to; the system moves large tables without a copy.
@inlinable func resized<Element: ~Copyable>(
    _ memory: UnsafeMutablePointer<Element>?, to capacity: Int
) -> UnsafeMutablePointer<Element> {
    guard let moved = realloc(memory, max(1, capacity) * MemoryLayout<Element>.stride) else {
        fatalError("no memory for \(capacity) elements")
    }
    return moved.assumingMemoryBound(to: Element.self)
}
