import Glibc

/// Text that is compared by its bytes. Swift takes two texts for equal that look alike, such as “é” as one character or as
/// two, and to a server they are two users.
@propertyWrapper
package struct ExactText: Hashable, Sendable {
    package var wrappedValue: String

    package init(wrappedValue: String) { self.wrappedValue = wrappedValue }

    package static func == (left: ExactText, right: ExactText) -> Bool {
        haveSameBytes(left.wrappedValue, right.wrappedValue)
    }

    package func hash(into hasher: inout Hasher) { hashBytes(of: wrappedValue, into: &hasher) }
}

/// Likewise, or none.
@propertyWrapper
package struct ExactOptionalText: Hashable, Sendable {
    package var wrappedValue: String?

    package init(wrappedValue: String?) { self.wrappedValue = wrappedValue }

    package static func == (left: ExactOptionalText, right: ExactOptionalText) -> Bool {
        guard let left = left.wrappedValue, let right = right.wrappedValue else {
            return left.wrappedValue == nil && right.wrappedValue == nil
        }
        return haveSameBytes(left, right)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(wrappedValue == nil)
        if let wrappedValue { hashBytes(of: wrappedValue, into: &hasher) }
    }
}

func haveSameBytes(_ left: String, _ right: String) -> Bool {
    guard left.utf8.count == right.utf8.count else { return false }
    var (left, right) = (left, right)
    return left.withUTF8 { left in
        right.withUTF8 { right in
            guard let first = left.baseAddress, let second = right.baseAddress else { return true }
            return memcmp(first, second, left.count) == 0
        }
    }
}

private func hashBytes(of text: String, into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    // No text is the beginning of another then.
    hasher.combine(UInt8(0xFF))
}
