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

/// How a download ended. Handed on often, so it is small; its parts are in one place.
package struct DownloadResult: Sendable {
    @Boxed private var parts: Parts

    private struct Parts: Sendable {
        var failure: Failure?
        var message: String
        var image: DecodedImage?
        var body: BodySlice?
        var response: Response?
        var progress: Progress
        var metrics = Metrics()
        let status: Int32
        var contentType = ""
        var preview: [UInt8] = []
    }

    package init(
        failure: Failure?, message: String, image: DecodedImage? = nil, body: BodySlice? = nil,
        response: Response? = nil, progress: Progress = Progress()
    ) {
        _parts = Boxed(
            wrappedValue: Parts(
                failure: failure, message: message, image: image, body: body, response: response, progress: progress,
                status: failure?.status ?? response?.head.status ?? 0))
    }

    /// nil for success.
    package var failure: Failure? {
        get { parts.failure }
        set { parts.failure = newValue }
    }

    /// Names the URL and the cause; empty for success.
    package var message: String {
        get { parts.message }
        set { parts.message = newValue }
    }

    package var image: DecodedImage? {
        get { parts.image }
        set { parts.image = newValue }
    }

    package var body: BodySlice? {
        get { parts.body }
        set { parts.body = newValue }
    }

    package var response: Response? {
        get { parts.response }
        set { parts.response = newValue }
    }

    package var progress: Progress {
        get { parts.progress }
        set { parts.progress = newValue }
    }

    package var metrics: Metrics {
        get { parts.metrics }
        set { parts.metrics = newValue }
    }

    /// Of the last response, 0 when there was none.
    package var status: Int32 { parts.status }

    /// Of the last response: its media type in lower case, without parameters; empty when it said none.
    package var contentType: String {
        get { parts.contentType }
        set { parts.contentType = newValue }
    }

    /// With a failure: the first bytes of the body that was refused (features B19).
    package var preview: [UInt8] {
        get { parts.preview }
        set { parts.preview = newValue }
    }

    package var code: ErrorCode { parts.failure?.code ?? .ok }

    /// A callback has had them: nothing keeps pixels alive behind the caller's back.
    package mutating func forgetPictureAndBody() {
        guard parts.image != nil || parts.body != nil || parts.response != nil else { return }
        parts.image = nil
        parts.body = nil
        parts.response = nil
    }
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
