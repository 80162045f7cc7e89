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

    /// What of a URL must not show in a sentence of somebody else's: its query, with the question mark, since a query may be
    /// as short as a digit, which any sentence has.
    static func secrets(_ url: String) -> [String] {
        guard let mark = url.firstIndex(of: "?"), url.index(after: mark) < url.endIndex else { return [] }
        return [String(url[mark...])]
    }
}
