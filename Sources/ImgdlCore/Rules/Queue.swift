import Glibc

/// First in, first out: adding, and taking what came first, take constant time however many wait. Never copied, so that
/// nothing has to look whether it is shared.
package struct Queue<Element: ~Copyable>: ~Copyable {
    /// Those from `head` to `end` are there.
    private var elements: UnsafeMutablePointer<Element>?
    private var head = 0
    private var end = 0
    private var capacity = 0

    package init() {}

    deinit {
        (elements.map { $0 + head })?.deinitialize(count: count)
        free(elements)
    }

    package var isEmpty: Bool { head == end }
    package var count: Int { end - head }

    package mutating func append(_ element: consuming Element) {
        if end == capacity { makeRoom() }
        (elements.unsafelyUnwrapped + end).initialize(to: element)
        end += 1
    }

    package mutating func popFirst() -> Element? { isEmpty ? nil : removeFirst() }

    /// There must be one. An optional of a large value is looked at in several steps.
    package mutating func removeFirst() -> Element {
        precondition(head < end)
        let first = (elements.unsafelyUnwrapped + head).move()
        head += 1
        if head == end { becomeEmpty() }
        return first
    }

    private mutating func becomeEmpty() {
        head = 0
        end = 0
        guard capacity > mostRoomKept else { return }
        free(elements)
        elements = nil
        capacity = 0
    }

    /// Not inlined: seldom called, and from many places.
    @inline(never) private mutating func makeRoom() {
        if let elements, head * 2 > end {
            elements.moveInitialize(from: elements + head, count: count)
            end -= head
            head = 0
        } else {
            capacity = max(16, 2 * capacity)
            elements = resized(elements, to: capacity)
        }
    }
}

extension Queue {
    package mutating func append(contentsOf others: some Sequence<Element>) {
        for other in others { append(other) }
    }
}
