/// Which responses a subscriber takes for an answer (features B19, C9, C10).
package struct Validation: Hashable, Sendable {
    /// nil: 200 to 299.
    package var statuses: [StatusRange]?
    /// Media types in lower case, "image/*" and "*/*" too; nil: any.
    package var contentTypes: [String]?

    package init() {}
}

/// Both are in it. Not a ClosedRange, whose metadata Swift's runtime puts together and looks up at the first download.
package struct StatusRange: Hashable, Sendable {
    package let first: Int32
    package let last: Int32

    package init(first: Int32, last: Int32) {
        self.first = first
        self.last = last
    }

    func contains(_ status: Int32) -> Bool { first <= status && status <= last }
}
