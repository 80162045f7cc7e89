/// Which responses a subscriber takes for an answer (features B19, C9, C10).
package struct Validation: Hashable, Sendable {
    /// nil: 200 to 299.
    package var statuses: [ClosedRange<Int32>]?
    /// Media types in lower case, "image/*" and "*/*" too; nil: any.
    package var contentTypes: [String]?

    package init() {}
}
