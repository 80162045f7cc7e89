/// Header fields in the order they were sent, with the names as they were spelled. Look-up ignores case.
package struct Headers: ExpressibleByDictionaryLiteral, Sequence, Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package var fields: [Field] = []

    package init() {}
    package init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of that name. Setting replaces every field of the name; nil removes them.
    package subscript(name: String) -> String? {
        get { fields.first { $0.name.equalsIgnoringCase(name) }?.value }
        set {
            fields.removeAll { $0.name.equalsIgnoringCase(name) }
            if let newValue { add(name, newValue) }
        }
    }

    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringCase(name) }.map(\.value)
    }

    package mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    package func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }

    /// True when a comma-separated list such as Connection's holds the token.
    package func lists(_ token: String, in name: String) -> Bool {
        all(name).contains { value in
            value.split(separator: ",").contains { $0.trimmed.equalsIgnoringCase(token) }
        }
    }
}

extension StringProtocol {
    package func equalsIgnoringCase(_ other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && lowercased() == other.lowercased()
    }

    package var trimmed: String {
        let isBlank = { (c: Character) in c == " " || c == "\t" }
        guard let first = firstIndex(where: { !isBlank($0) }), let last = lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[first...last])
    }
}
