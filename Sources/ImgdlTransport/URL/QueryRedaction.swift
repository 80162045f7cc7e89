/// Leaves the values out of a query, so that signed URLs can be shown.
enum QueryRedaction {
    static let mark = "…"

    /// "a=1&token=x" becomes "a=…&token=…". A part without "=" may be a bare token, so it is left out whole.
    static func redacted(_ query: some StringProtocol) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false).map { part in
            if part.isEmpty { return "" }
            guard let equals = part.firstIndex(of: "=") else { return mark }
            return part[...equals] + (part.index(after: equals) == part.endIndex ? "" : mark)
        }.joined(separator: "&")
    }
}
