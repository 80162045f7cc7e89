/// Names of header fields, without regard to case. However many there are, each is found in one step: a server may name
/// as many as a header holds.
struct FieldNames {
    private var names: Set<String> = []

    init(_ names: some Sequence<String>) { for name in names { insert(name) } }

    /// False: it is there already.
    @discardableResult
    mutating func insert(_ name: String) -> Bool {
        HeaderSteps.take()
        return names.insert(Self.key(name)).inserted
    }

    func contains(_ field: HeaderField) -> Bool {
        HeaderSteps.take()
        return !names.isEmpty && names.contains(Self.key(field.name))
    }

    private static func key(_ name: String) -> String {
        let isLowerCase = name.utf8.allSatisfy { !(0x41...0x5A).contains($0) }
        return isLowerCase ? name : name.lowercased()
    }
}
