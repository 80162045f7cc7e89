/// Parts one behind the other, so that no two lists of parts have the same bytes.
package struct ContextMessage: Hashable, Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func add(_ part: some Collection<UInt8>) {
        bytes.append(1)
        withUnsafeBytes(of: UInt64(part.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: part)
    }

    package mutating func add(_ part: [UInt8]?) { if let part { add(part) } else { bytes.append(0) } }

    package mutating func add(_ text: String?) { if let text { add(text.utf8) } else { bytes.append(0) } }

    package mutating func add(_ fact: Bool) { bytes.append(fact ? 3 : 2) }

    /// Behind those that there are.
    mutating func add(parts other: ContextMessage) { bytes += other.bytes }
}
