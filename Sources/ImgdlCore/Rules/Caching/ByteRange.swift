/// Range: bytes=… with one range (RFC 9110 section 14.1.2).
enum ByteRange: Equatable {
    case from(Int64)
    case closed(Int64, Int64)
    case suffix(Int64)

    /// nil: several, another unit, or no range.
    init?(_ text: String) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")),
            equalIgnoringCase(String(text[..<equals]), "bytes")
        else { return nil }
        let members = listMembers(String(text[text.utf8.index(after: equals)...]))
        guard members.count == 1, let dash = members[0].utf8.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let (first, last) = (members[0][..<dash], members[0][members[0].utf8.index(after: dash)...])
        switch (Self.number(first), Self.number(last)) {
        case (let first?, nil) where last.isEmpty: self = .from(first)
        case (let first?, let last?) where first <= last: self = .closed(first, last)
        case (nil, let length?) where first.isEmpty: self = .suffix(length)
        default: return nil
        }
    }

    /// Of a body of this length; nil: it cannot be satisfied.
    func resolved(_ length: Int64) -> Range<Int64>? {
        switch self {
        case .from(let first): first < length ? first..<length : nil
        case .closed(let first, let last): first < length ? first..<min(length - 1, last) + 1 : nil
        case .suffix(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
        }
    }

    static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }
}

/// Content-Range: bytes 0-4/10, bytes 0-4/*, or bytes */10 (RFC 9110 section 14.4).
package struct ContentRange: Equatable, Sendable {
    /// nil in an answer of 416.
    package let range: Range<Int64>?
    /// nil: the server does not know it.
    package let total: Int64?

    package init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, equalIgnoringCase(String(parts[0]), "bytes") else { return nil }
        let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        total = ByteRange.number(halves[1])
        guard total != nil || halves[1] == "*" else { return nil }
        if halves[0] == "*" {
            guard total != nil else { return nil }
            range = nil
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = ByteRange.number(ends[0]), let last = ByteRange.number(ends[1]),
            first <= last,
            last < total ?? .max
        else { return nil }
        range = first..<last + 1
    }
}
