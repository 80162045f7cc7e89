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

    /// For people. Put together by hand: a thousand downloads may be cancelled at once, and an interpolation takes three
    /// times as long.
    package func message(about url: ParsedURL) -> String {
        var text = url.redacted
        text.reserveCapacity(text.utf8.count + 2 + message.utf8.count)
        text += ": "
        text += message
        return text
    }
}
