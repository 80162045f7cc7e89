/// URLs parsed before, by their text: a repeated URL is parsed once. Bounded: when the newer half is full it becomes
/// the older one, whose entries go unless they are asked for again.
final class ParsedURLCache: @unchecked Sendable {
    private static let half = 512
    private let lock = Lock()
    private var newer: [String: ParsedURL] = [:]
    private var older: [String: ParsedURL] = [:]

    func url(_ text: String, parse: (String) throws(Failure) -> ParsedURL) throws(Failure) -> ParsedURL {
        if let known = lock.withLock({ newer[text] ?? older[text] }) { return known }
        let url = try parse(text)
        lock.withLock {
            if newer.count >= Self.half {
                older = newer
                newer = [:]
            }
            newer[text] = url
        }
        return url
    }
}
