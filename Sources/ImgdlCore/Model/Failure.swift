/// Why something failed, in a number for programs and a sentence for people.
///
/// The sentence names the cause (a status, curl's own words, the limit that was hit, the codec's own words) but not
/// the URL: whoever reports the failure of a download puts the redacted URL in front (`DESIGN` section 2, promise 8).
package struct Failure: Error, Equatable, Sendable {
    package var code: ErrorCode
    package var message: String
    /// The HTTP status of the response that failed, 0 when there was none.
    package var status: Int32

    package init(_ code: ErrorCode, _ message: String, status: Int32 = 0) {
        self.code = code
        self.message = message
        self.status = status
    }

    /// exit() has begun: of whatever would begin something, or wait.
    package static var processExits: Failure {
        Failure(.shutDown, "the process exits: nothing is begun any more, and nothing comes that is waited for")
    }

    /// The most bytes of the URL, and of what is said about it, that are shown to people.
    static let maximumShownBytes = 1_900
    /// The same of each of two URLs.
    static let maximumShownBytesOfTwo = 900

    /// For people, with the values of the URL's query or with dots for them. What a server said in it is escaped, and what
    /// is too long is cut off.
    /// `target`: where a redirect led before it failed.
    package func message(
        about url: ParsedURL, redirectedTo target: ParsedURL? = nil, showsWholeURL: Bool = false
    ) -> String {
        var message = PrintableText.shortened(PrintableText.escaped(message), to: Self.maximumShownBytes)
        if let target, target != url {
            let shown = [url, target].map { url in
                PrintableText.shortened(url.shown(withQuery: showsWholeURL), to: Self.maximumShownBytesOfTwo)
            }
            return "\(shown[0]), redirected to \(shown[1]): \(message)"
        }
        var shown = url.shown(withQuery: showsWholeURL)
        guard shown.utf8.count <= Self.maximumShownBytes else {
            return "\(PrintableText.shortened(shown, to: Self.maximumShownBytes)): \(message)"
        }
        return message.withUTF8 { message in shown.withUTF8 { Self.joined($0, message) } }
    }

    /// Put together by hand: a thousand downloads may be cancelled at once, and an interpolation takes several times as
    /// long.
    private static func joined(_ url: UnsafeBufferPointer<UInt8>, _ message: UnsafeBufferPointer<UInt8>) -> String {
        String(unsafeUninitializedCapacity: url.count + 2 + message.count) { text in
            _ = text.initialize(fromContentsOf: url)
            text[url.count] = UInt8(ascii: ":")
            text[url.count + 1] = UInt8(ascii: " ")
            _ = text[(url.count + 2)...].initialize(fromContentsOf: message)
            return url.count + 2 + message.count
        }
    }
}
