/// First in, first out: adding, and taking what came first, take constant time however many wait.
package struct Queue<Element> {
    /// nil: taken.
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    package var isEmpty: Bool { head == elements.count }
    package var count: Int { elements.count - head }

    package mutating func append(_ element: consuming Element) { elements.append(element) }

    package mutating func append(contentsOf others: some Sequence<Element>) {
        for other in others { elements.append(other) }
    }

    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let first = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.capacity <= 1024)
            head = 0
        } else if head >= 64, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }
}
