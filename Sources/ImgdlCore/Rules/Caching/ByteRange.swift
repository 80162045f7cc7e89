/// Range: bytes=… with one range (RFC 9110 section 14.1.2).
enum ByteRange: Equatable {
    case from(CheckedNumber)
    /// Both among them.
    case closed(CheckedNumber, CheckedNumber)
    case suffix(CheckedNumber)

    /// nil: several, another unit, or no range.
    init?(_ text: String) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")),
            equalIgnoringCase(String(text[..<equals]), "bytes")
        else { return nil }
        let members = listMembers(String(text[text.utf8.index(after: equals)...]))
        guard members.count == 1, let dash = members[0].utf8.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let (first, last) = (members[0][..<dash], members[0][members[0].utf8.index(after: dash)...])
        switch (CheckedNumber(digits: first), CheckedNumber(digits: last)) {
        case (let first?, nil) where last.isEmpty: self = .from(first)
        case (let first?, let last?) where first <= last: self = .closed(first, last)
        case (nil, let length?) where first.isEmpty: self = .suffix(length)
        default: return nil
        }
    }

    /// Of a body of this length; nil: it cannot be satisfied.
    func resolved(_ length: Int64) -> Range<Int64>? {
        let whole = 0..<max(0, length)
        switch self {
        case .from(let first): return first.within(whole).map { $0..<length }
        case .closed(let first, let last):
            return first.within(whole).map { $0..<(last.within(whole).map { $0 + 1 } ?? length) }
        case .suffix(let count):
            guard count > 0, !whole.isEmpty else { return nil }
            return (count.within(whole).map { length - $0 } ?? 0)..<length
        }
    }

    /// The same of a part of a body: positions within the part, which is `held` of the body and reaches to its end or not.
    /// nil: it is not wholly within (RFC 9111 section 3.3).
    func resolved(within held: Range<Int64>, reachesEnd: Bool) -> Range<Int64>? {
        guard held.lowerBound >= 0, !held.isEmpty else { return nil }
        let length = held.upperBound - held.lowerBound
        switch self {
        case .closed(let first, let last):
            guard let first = first.within(held),
                let end = last.within(held).map({ $0 + 1 }) ?? (reachesEnd ? held.upperBound : nil)
            else { return nil }
            return first - held.lowerBound..<end - held.lowerBound
        case .from(let first):
            guard reachesEnd, let first = first.within(held) else { return nil }
            return first - held.lowerBound..<length
        case .suffix(let count):
            guard reachesEnd, let count = count.within(1...length) else { return nil }
            return length - count..<length
        }
    }
}

/// Content-Range: bytes 0-4/10, bytes 0-4/*, or bytes */10 (RFC 9110 section 14.4), of a body that can be
/// (`StoredResponse.greatestLength`).
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
        let possible = 0...StoredResponse.greatestLength
        total = CheckedNumber(digits: halves[1])?.within(possible)
        guard total != nil || halves[1] == "*" else { return nil }
        if halves[0] == "*" {
            guard total != nil else { return nil }
            range = nil
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = CheckedNumber(digits: ends[0])?.within(possible),
            let end = (CheckedNumber(digits: ends[1]) + 1)?.within(possible), first < end, end <= total ?? end
        else { return nil }
        range = first..<end
    }
}
