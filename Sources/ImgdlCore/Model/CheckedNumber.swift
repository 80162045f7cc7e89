/// A whole number from outside: of a server, a file, the cache's index or a caller. None of its operators can trap: a
/// result that 64 bits cannot hold is nil, and so is all that is computed with it. It becomes a plain number only within
/// bounds, which whoever takes it names: so that what is done with it afterwards has room, too.
package struct CheckedNumber: Comparable, Hashable, Sendable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    fileprivate let value: Int64

    package init(_ value: Int64) { self.value = value }

    package init(_ value: Int) { self.value = Int64(value) }

    /// nil: above what 64 bits with a sign hold.
    package init?(_ value: UInt64) {
        guard let value = Int64(exactly: value) else { return nil }
        self.value = value
    }

    package init(integerLiteral value: Int64) { self.value = value }

    /// 1*DIGIT, as header fields have it: no sign, no space. nil for anything else, and for what is too large.
    package init?(digits text: some StringProtocol) { self.init(digits: text.utf8) }

    package init?(digits: some Collection<UInt8>) {
        guard !digits.isEmpty else { return nil }
        var number: Self? = 0
        for byte in digits {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = number * 10 + Self(Int64(byte) - 0x30)
        }
        guard let number else { return nil }
        self = number
    }

    /// The number in so many bytes, one to eight, at an offset of a buffer, the highest first. nil: they are not all there.
    package init?(bigEndian bytes: UnsafeRawBufferPointer, at offset: Self?, count: Int) {
        self.init(bytes, at: offset, count: count, isLowestFirst: false)
    }

    /// Likewise, the lowest first.
    package init?(littleEndian bytes: UnsafeRawBufferPointer, at offset: Self?, count: Int) {
        self.init(bytes, at: offset, count: count, isLowestFirst: true)
    }

    private init?(_ bytes: UnsafeRawBufferPointer, at offset: Self?, count: Int, isLowestFirst: Bool) {
        guard (1...8).contains(count), let start = offset?.count(upTo: bytes.count - count) else { return nil }
        var number: UInt64 = 0
        for index in 0..<count {
            number = number << 8 | UInt64(bytes[start + (isLowestFirst ? count - 1 - index : index)])
        }
        self.init(number)
    }

    package var description: String { String(value) }

    package static func < (left: Self, right: Self) -> Bool { left.value < right.value }

    /// nil: outside of the bounds.
    package func within(_ bounds: ClosedRange<Int64>) -> Int64? { bounds.contains(value) ? value : nil }
    package func within(_ bounds: Range<Int64>) -> Int64? { bounds.contains(value) ? value : nil }

    /// A length of something: 0 and above.
    package var length: Int64? { within(0...Int64.max) }

    /// 0 and above, as collections count, and no more than that.
    package func count(upTo most: Int) -> Int? { value >= 0 && value <= most ? Int(truncatingIfNeeded: value) : nil }

    /// The number where 32 bits without a sign hold it, as files store lengths.
    package var count32: Int? { count(upTo: Int(UInt32.max)) }

    /// The next multiple, or itself. nil: 64 bits do not hold that, or there is none.
    package func roundedUp(to step: Int64) -> Self? {
        guard step > 0 else { return nil }
        let beyond = value % step
        return self + Self(beyond > 0 ? step - beyond : -beyond)
    }

    /// The nearest number within the bounds.
    package func clamped(to bounds: ClosedRange<Int64>) -> Int64 {
        min(max(value, bounds.lowerBound), bounds.upperBound)
    }
}

/// On optional ones, so that what came of one goes into the next.
extension CheckedNumber? {
    package static func + (left: Self, right: Self) -> Self {
        combined(left, right) { $0.addingReportingOverflow($1) }
    }

    package static func - (left: Self, right: Self) -> Self {
        combined(left, right) { $0.subtractingReportingOverflow($1) }
    }

    package static func * (left: Self, right: Self) -> Self {
        combined(left, right) { $0.multipliedReportingOverflow(by: $1) }
    }

    private static func combined(
        _ left: Self, _ right: Self, _ operation: (Int64, Int64) -> (partialValue: Int64, overflow: Bool)
    ) -> Self {
        guard let left = left?.value, let right = right?.value else { return nil }
        let (value, overflow) = operation(left, right)
        return overflow ? nil : CheckedNumber(value)
    }
}
