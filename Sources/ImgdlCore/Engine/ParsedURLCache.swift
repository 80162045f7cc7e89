/// URLs parsed before, by their text: a repeated URL is parsed once. Bounded: when the newer half is full it becomes
/// the older one, whose entries go unless they are asked for again.
final class ParsedURLCache: @unchecked Sendable {
    private static let half = 512
    private let lock = Lock()
    private var newer: [String: ParsedURL] = [:]
    private var older: [String: ParsedURL] = [:]
    /// How often all were forgotten.
    private var epoch = 0

    func url(_ text: String, parse: (String) throws(Failure) -> ParsedURL) throws(Failure) -> ParsedURL {
        // One of a data: URL may be as large as a picture.
        guard text.utf8.count <= 4096 else { return try parse(text) }
        let (known, before) = lock.withLock { (newer[text] ?? older[text], epoch) }
        if let known { return known }
        let url = try parse(text)
        lock.withLock {
            guard epoch == before else { return }
            if newer.count >= Self.half {
                older = newer
                newer = [:]
            }
            newer[text] = url
        }
        return url
    }

    /// What a URL means has changed, for calls that begin from now on.
    func forgetAll() {
        lock.withLock {
            epoch += 1
            newer = [:]
            older = [:]
        }
    }
}
