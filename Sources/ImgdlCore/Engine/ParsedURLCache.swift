import Glibc

/// URLs parsed before, by the bytes of their text: a repeated URL is parsed once.
final class ParsedURLCache: @unchecked Sendable {
    private static let half = 512
    private let lock = Lock()
    private var urls = RecentlyAsked<ExactText, ParsedURL>(half: half)
    /// Asked for last: many may ask for the same in a row.
    private var last: (text: String, url: ParsedURL)?
    /// How often all were forgotten.
    private var epoch = 0

    /// The one that was asked for last, if that was this one.
    func lastURL(_ text: UnsafeBufferPointer<UInt8>) -> ParsedURL? {
        lock.withLock {
            guard let last else { return nil }
            let isSame = last.text.utf8.withContiguousStorageIfAvailable { known in
                known.count == text.count && memcmp(known.baseAddress!, text.baseAddress!, known.count) == 0
            }
            return isSame == true ? last.url : nil
        }
    }

    func url(_ text: String, parse: (String) throws(Failure) -> ParsedURL) throws(Failure) -> ParsedURL {
        // One of a data: URL may be as large as a picture.
        guard text.utf8.count <= 4096 else { return try parse(text) }
        let key = ExactText(wrappedValue: text)
        let (known, before) = lock.withLock { () -> (ParsedURL?, Int) in
            let known = urls.value(key)
            if let known { last = (text, known) }
            return (known, epoch)
        }
        if let known { return known }
        let url = try parse(text)
        lock.withLock {
            guard epoch == before else { return }
            urls.insert(url, key)
            last = (text, url)
        }
        return url
    }

    /// What a URL means has changed, for calls that begin from now on.
    func forgetAll() {
        lock.withLock {
            epoch += 1
            urls.removeAll()
            last = nil
        }
    }
}
