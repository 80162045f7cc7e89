import Glibc

/// One header field as sent or received; the name keeps its case, comparisons ignore it (RFC 9110 section 5.1).
package struct HeaderField: Hashable, Sendable {
    @ExactText package var name: String
    @ExactText package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// ASCII letters without regard to case; other bytes as they are.
package func equalIgnoringCase(_ left: String, _ right: String) -> Bool {
    HeaderSteps.take()
    guard left.utf8.count == right.utf8.count else { return false }
    var (left, right) = (left, right)
    return left.withUTF8 { left in
        right.withUTF8 { right in equalIgnoringCase(UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right)) }
    }
}

package func equalIgnoringCase(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    let count = left.count
    guard count == right.count else { return false }
    HeaderSteps.take(count)
    // As most are written.
    if let left = left.baseAddress, let right = right.baseAddress, memcmp(left, right, count) == 0 { return true }
    for index in 0..<count {
        let (a, b) = (left[index], right[index])
        guard a == b || ((a ^ b) == 0x20 && (a | 0x20) >= 0x61 && (a | 0x20) <= 0x7A) else { return false }
    }
    return true
}

extension [HeaderField] {
    /// The first field of this name.
    package func first(named name: String) -> String? {
        let count = name.utf8.count
        // By index, and lengths first: each field that is looked at would be counted up and down.
        HeaderSteps.take(self.count)
        for index in indices where self[index].name.utf8.count == count {
            if equalIgnoringCase(self[index].name, name) { return self[index].value }
        }
        return nil
    }
}
