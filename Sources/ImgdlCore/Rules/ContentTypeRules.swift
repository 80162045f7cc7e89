/// Which media types a subscriber takes (features C10, B19).
package enum ContentTypeRules {
    /// `type` as `ResponseHead.mediaType` gives it; patterns such as "image/png", "image/*" and "*/*", in any case;
    /// parameters are ignored. A response that does not tell its type passes.
    package static func accepts(_ type: String, _ patterns: [String]) -> Bool {
        type.isEmpty || patterns.contains { matches(type, ResponseHead.mediaType(of: $0)) }
    }

    private static func matches(_ type: String, _ pattern: String) -> Bool {
        if pattern == type || pattern == "*/*" || pattern == "*" { return true }
        guard pattern.utf8.last == UInt8(ascii: "*") else { return false }
        let prefix = pattern.utf8.dropLast()
        return prefix.last == UInt8(ascii: "/") && type.utf8.starts(with: prefix)
    }
}
