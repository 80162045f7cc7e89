/// Status line and header fields of one response, as received (repeated fields too).
package struct ResponseHead: Sendable {
    package var status: Int32
    /// 10, 11, 20 or 30.
    package var httpVersion: Int32
    package var fields: [HeaderField]
    /// From Content-Length, when it is there and valid; counts the encoded body (RFC 9110 section 8.6).
    package var contentLength: Int64?
    /// A Content-Encoding other than identity is being undone: decoded bytes cannot be compared with `contentLength`.
    package var isEncoded: Bool

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], contentLength: Int64?, isEncoded: Bool
    ) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.contentLength = contentLength
        self.isEncoded = isEncoded
    }
}
