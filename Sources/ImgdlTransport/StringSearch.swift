/// Search in short texts, byte by byte. The standard library's own brings its regular expressions along: a tenth of what is
/// shipped, which is built without them.
extension StringProtocol {
    /// Whether it is anywhere; an empty text is nowhere.
    func contains(_ text: String) -> Bool { firstRange(of: text) != nil }

    /// Nil for none. An empty text is nowhere.
    func firstRange(of text: String) -> Range<Index>? { firstRange(of: text.utf8, from: startIndex) }

    /// Every place of `text`, from the beginning on, has `replacement` instead.
    func replacing(_ text: String, with replacement: String) -> String {
        var result = ""
        var rest = startIndex
        while let range = firstRange(of: text.utf8, from: rest) {
            result += self[rest..<range.lowerBound]
            result += replacement
            rest = range.upperBound
        }
        return result + self[rest...]
    }

    private func firstRange(of bytes: String.UTF8View, from start: Index) -> Range<Index>? {
        guard let first = bytes.first else { return nil }
        var position = start
        while let found = utf8[position...].firstIndex(of: first) {
            if utf8[found...].starts(with: bytes) { return found..<utf8.index(found, offsetBy: bytes.count) }
            position = utf8.index(after: found)
        }
        return nil
    }
}
