/// What a server answered to the last hop.
package final class Response: Sendable {
    package let url: ParsedURL
    package let head: ResponseHead
    package let redirectCount: Int

    package init(url: ParsedURL, head: ResponseHead, redirectCount: Int) {
        self.url = url
        self.head = head
        self.redirectCount = redirectCount
    }
}

/// How a download ended.
package struct DownloadResult: Sendable {
    /// nil for success.
    package var failure: Failure?
    /// Names the URL and the cause; empty for success.
    package var message: String
    package var image: DecodedImage?
    package var body: BodySlice?
    package var response: Response?

    package init(
        failure: Failure?, message: String, image: DecodedImage? = nil, body: BodySlice? = nil, response: Response? = nil
    ) {
        self.failure = failure
        self.message = message
        self.image = image
        self.body = body
        self.response = response
    }

    package var code: ErrorCode { failure?.code ?? .ok }
    package var status: Int32 { failure?.status ?? response?.head.status ?? 0 }
}

/// What a subscriber is told, in this order (DESIGN section 2, promise 2).
package enum DownloadEvent: Sendable {
    case started
    case response(Response, expected: Int64)
    case header(ImageHeader)
    case progress(received: Int64, expected: Int64)
    case partial(DecodedImage)
    case terminal(DownloadResult)
}
