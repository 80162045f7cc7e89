import Glibc

/// Bytes of a body as they arrive. The engine's thread appends; decoders on other threads read slices of what is
/// already there: written bytes are never moved or changed, so no reader sees a buffer that grows (features D6, I11).
package struct Body: ~Copyable {
    private static let smallest = 16 << 10
    fileprivate static let largest = 1 << 20

    private var adopted: [BodySlice] = []
    /// Mostly the only one.
    private var first: BodySegment?
    private var others: [BodySegment] = []
    package private(set) var count = 0
    /// Helps to make one segment of a small body; it is a hint from the network and reserves 1 MiB at most.
    package var expected: Int64
    /// Not held: whoever has the body has this for longer.
    private let memory: Unmanaged<BodyMemory>?

    /// `memory`: that other bodies have left; it is to outlive this one.
    package init(expected: Int64 = -1, memory: BodyMemory? = nil) {
        self.expected = expected
        self.memory = memory.map { .passUnretained($0) }
    }

    /// Begins anew.
    package mutating func removeAll() {
        adopted = []
        first = nil
        others = []
        count = 0
    }

    /// False when there is no memory.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes
        while true {
            let taken = others.isEmpty ? first?.append(rest) ?? 0 : others[others.count - 1].append(rest)
            count += taken
            if taken == rest.count { return true }
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
            guard addSegment(for: rest.count) else { return false }
        }
    }

    private mutating func addSegment(for bytes: Int) -> Bool {
        let hint = first == nil && expected > 0 ? Int(min(expected, Int64(Self.largest))) : max(count, Self.smallest)
        let capacity = min(max(hint, min(bytes, Self.smallest)), Self.largest)
        guard first != nil else {
            first = BodySegment(capacity: capacity, memory)
            return first != nil
        }
        guard let segment = BodySegment(capacity: capacity, memory) else { return false }
        others.append(segment)
        return true
    }

    /// Takes what is in memory already for its beginning, shared; before anything is appended.
    package mutating func adopt(_ slices: [BodySlice]) {
        for slice in slices { count += slice.count }
        if adopted.isEmpty { adopted = slices } else { adopted.append(joining: slices) }
    }

    /// What came after the first `offset` bytes.
    package func slices(from offset: Int) -> [BodySlice] {
        var slices: [BodySlice] = []
        var start = 0
        func add(_ slice: BodySlice) {
            let end = start + slice.count
            if end > offset { slices.append(start < offset ? slice.part(offset - start..<slice.count) : slice) }
            start = end
        }
        for slice in adopted { add(slice) }
        if let first { add(BodySlice(first)) }
        for segment in others { add(BodySlice(segment)) }
        return slices
    }

    /// All of it in one piece: that of a small body, or a copy. nil when there is no memory.
    package mutating func contiguous() -> BodySlice? {
        if adopted.count == 1, first == nil { return adopted[0] }
        if adopted.isEmpty, let first, others.isEmpty { return BodySlice(first) }
        guard let whole = BodySegment(capacity: max(count, 1), memory) else { return nil }
        for slice in slices(from: 0) { slice.withBytes { _ = whole.append($0) } }
        adopted = []
        first = whole
        others = []
        return BodySlice(whole)
    }
}

/// Bytes that are there for good, and what holds them, as one object.
package class HeldBytes: @unchecked Sendable {
    /// Valid while the object lives.
    package final let start: UnsafeRawPointer
    package final fileprivate(set) var count: Int

    fileprivate init(start: UnsafeRawPointer, count: Int) {
        self.start = start
        self.count = count
    }
}

/// Those that are part of something larger.
private final class HeldSlice: HeldBytes, @unchecked Sendable {
    private let slice: BodySlice

    init(_ slice: BodySlice) {
        self.slice = slice
        super.init(start: slice.start, count: slice.count)
    }
}

/// Memory of fixed size that is filled once, from its start.
package final class BodySegment: HeldBytes, @unchecked Sendable {
    private let block: BodyMemory.Block
    /// Counted once, up and down, and not for each call besides.
    private let memory: Unmanaged<BodyMemory>?
    /// What it was made for: its block may have more.
    private let capacity: Int
    fileprivate var bytes: UnsafeMutableRawPointer { block.bytes }
    fileprivate var room: Int { capacity - count }
    fileprivate var memoryBytes: Int { block.capacity }

    /// nil when there is no memory.
    fileprivate init?(capacity: Int, _ memory: Unmanaged<BodyMemory>?) {
        let taken = memory.map { $0._withUnsafeGuaranteedRef { $0.take(capacity) } } ?? BodyMemory.Block(capacity)
        guard let block = taken else { return nil }
        self.block = block
        self.memory = memory?.retain()
        self.capacity = capacity
        super.init(start: block.bytes, count: 0)
    }

    deinit {
        guard let memory else { return block.free() }
        memory._withUnsafeGuaranteedRef { $0.giveBack(block) }
        memory.release()
    }

    /// All of it at once.
    fileprivate func fill(by fill: (UnsafeMutableRawBufferPointer) -> Bool) -> Bool {
        guard fill(UnsafeMutableRawBufferPointer(start: bytes, count: capacity)) else { return false }
        count = capacity
        return true
    }

    /// How many of them found room.
    fileprivate func append(_ source: UnsafeRawBufferPointer) -> Int {
        let taken = min(source.count, room)
        if taken > 0, let start = source.baseAddress { memcpy(bytes + count, start, taken) }
        count += taken
        return taken
    }
}

/// Bytes that are there for good, with the segment that holds them.
package struct BodySlice: Sendable {
    private let segment: BodySegment
    private let range: Range<Int>

    fileprivate init(segment: BodySegment, range: Range<Int>) {
        self.segment = segment
        self.range = range
    }

    /// All that it has.
    fileprivate init(_ segment: BodySegment) { self.init(segment: segment, range: 0..<segment.count) }

    /// `count` bytes that `fill` writes into new memory, in slices of at most a mebibyte; it gets each piece once, in order,
    /// and says whether it has filled it. nil when it has not, or when there is no memory.
    package static func filled(
        count: Int, by fill: (UnsafeMutableRawBufferPointer) -> Bool
    ) -> [BodySlice]? {
        var slices: [BodySlice] = []
        var rest = count
        while rest > 0 {
            guard let segment = BodySegment(capacity: min(rest, Body.largest), nil), segment.fill(by: fill)
            else { return nil }
            slices.append(BodySlice(segment))
            rest -= segment.count
        }
        return slices
    }

    package var count: Int { range.count }

    /// The memory that it keeps, perhaps with others: which, and how much.
    package var segmentID: ObjectIdentifier { ObjectIdentifier(segment) }
    package var segmentBytes: Int { segment.memoryBytes }

    /// As an object of its own. Nothing is added any more to what it is of.
    package var held: HeldBytes { range == 0..<segment.count ? segment : HeldSlice(self) }

    fileprivate func joined(with next: BodySlice) -> BodySlice? {
        guard segment === next.segment, range.upperBound == next.range.lowerBound else { return nil }
        return BodySlice(segment: segment, range: range.lowerBound..<next.range.upperBound)
    }

    /// Bytes `within` of it.
    package func part(_ within: Range<Int>) -> BodySlice {
        BodySlice(segment: segment, range: range.lowerBound + within.lowerBound..<range.lowerBound + within.upperBound)
    }

    /// Valid while the slice lives.
    package var start: UnsafeRawPointer { UnsafeRawPointer(segment.bytes + range.lowerBound) }

    package func withBytes<Result, Problem: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Problem) -> Result
    ) throws(Problem) -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: range.count))
    }
}

extension [BodySlice] {
    /// What they keep of memory, which may be more than their bytes.
    package var memoryBytes: Int {
        var bytes = 0
        for index in indices where index == 0 || self[index].segmentID != self[index - 1].segmentID {
            bytes += self[index].segmentBytes
        }
        return bytes + count * MemoryLayout<BodySlice>.stride
    }

    /// The same bytes in memory that is just large enough; themselves where there is none.
    package var compacted: [BodySlice] {
        var rest = self[...]
        return BodySlice.filled(count: reduce(0) { $0 + $1.count }) { memory in
            var room = memory
            while !room.isEmpty, let first = rest.first {
                let count = Swift.min(room.count, first.count)
                memcpy(room.baseAddress!, first.start, count)
                room = UnsafeMutableRawBufferPointer(rebasing: room[count...])
                rest = rest.dropFirst()
                if count < first.count { rest = [first.part(count..<first.count)] + rest }
            }
            return room.isEmpty
        } ?? self
    }

    /// What stands one after the other in memory, as a body that came in pieces does, becomes one slice again.
    package mutating func append(joining slices: [BodySlice]) {
        for slice in slices {
            if let joined = last?.joined(with: slice) { self[count - 1] = joined } else { append(slice) }
        }
    }
}

extension Body {
    /// Whether it consists of these bytes, however they are cut.
    package func equals(_ other: [BodySlice]) -> Bool {
        guard other.reduce(0, { $0 + $1.count }) == count else { return false }
        var rest = other[...]
        for own in slices(from: 0) {
            var own = own
            while own.count > 0 {
                guard let first = rest.first else { return false }
                let common = min(own.count, first.count)
                if memcmp(own.start, first.start, common) != 0 { return false }
                own = own.part(common..<own.count)
                rest = rest.dropFirst()
                if common < first.count { rest = [first.part(common..<first.count)] + rest }
            }
        }
        return true
    }
}
