/// What a server answered to the last hop.
package final class Response: Sendable {
    package let url: ParsedURL
    package let head: ResponseHead
    /// The redirects that led here, in order (features I25).
    package let hops: [Hop]

    package init(url: ParsedURL, head: ResponseHead, hops: [Hop]) {
        self.url = url
        self.head = head
        self.hops = hops
    }
}

/// A redirect that was followed.
package struct Hop: Equatable, Sendable {
    package let url: ParsedURL
    package let status: Int32

    package init(url: ParsedURL, status: Int32) {
        self.url = url
        self.status = status
    }
}

/// Body bytes, Content-Encoding undone.
package struct Progress: Equatable, Sendable {
    package var received: Int64 = 0
    /// -1 while unknown.
    package var expected: Int64 = -1

    package init(received: Int64 = 0, expected: Int64 = -1) {
        self.received = received
        self.expected = expected
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
    package var progress = Progress()
    package var metrics = Metrics()
    /// Of the last response, 0 when there was none.
    package let status: Int32
    /// Of the last response: its media type in lower case, without parameters; empty when it said none.
    package var contentType = ""
    /// With a failure: the first bytes of the body that was refused (features B19).
    package var preview: [UInt8] = []

    package init(
        failure: Failure?, message: String, image: DecodedImage? = nil, body: BodySlice? = nil,
        response: Response? = nil, progress: Progress = Progress()
    ) {
        self.failure = failure
        self.message = message
        self.image = image
        self.body = body
        self.response = response
        self.progress = progress
        status = failure?.status ?? response?.head.status ?? 0
    }

    package var code: ErrorCode { failure?.code ?? .ok }
}

/// What a subscriber is told, in this order (DESIGN section 2, promise 2).
package enum DownloadEvent: Sendable {
    case started
    case response(Response, Progress)
    case header(ImageHeader, Progress)
    case progress(Progress)
    case partial(DecodedImage, Progress)
    case terminal(DownloadResult)
}
