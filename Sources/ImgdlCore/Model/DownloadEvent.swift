/// What a server answered to the last hop.
package struct Response: Sendable {
    package let url: ParsedURL
    package let head: ResponseHead
    /// Of few: a reference to none costs nothing.
    private let followed: [Hop]?

    package init(url: ParsedURL, head: ResponseHead, hops: [Hop]) {
        self.url = url
        self.head = head
        followed = hops.isEmpty ? nil : hops
    }

    /// The redirects that led here, in order (features I25).
    package var hops: [Hop] { followed ?? [] }
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

/// How a download ended. An object, made once: executor, callback and token are handed the same.
package final class DownloadResult: @unchecked Sendable {
    /// nil for success.
    package let failure: Failure?
    /// Names the URL and the cause; empty for success.
    package let message: String
    package let progress: Progress
    package let metrics: Metrics
    /// Of the last response, 0 when there was none.
    package let status: Int32
    /// Of the last response: its media type in lower case, without parameters; empty when it said none.
    package let contentType: String
    /// With a failure: the first bytes of the body that was refused (features B19).
    package let preview: [UInt8]
    /// Changed by the thread that delivers it, before another one may see it.
    private var content: Content

    /// Not copied: it is made up for one terminal, and moved into it.
    struct Content: ~Copyable {
        var image: Boxed<DecodedImage>?
        var body: BodySlice?
        var response: Response?
        /// Memory of picture and body, counted as long as they are held here.
        var imageCharge: MemoryCharge?
        var bodyCharge: MemoryCharge?
        /// The same, as what waits for the host to take it.
        var imageWaits: WaitingCharge?
        var bodyWaits: WaitingCharge?
    }

    init(
        failure: Failure?, message: String = "", progress: Progress = Progress(), metrics: Metrics = Metrics(),
        contentType: String = "", preview: [UInt8] = [], content: consuming Content = Content()
    ) {
        self.failure = failure
        self.message = message
        self.progress = progress
        self.metrics = metrics
        self.contentType = contentType
        self.preview = preview
        status = failure?.status ?? content.response?.head.status ?? 0
        self.content = content
    }

    package var code: ErrorCode { failure?.code ?? .ok }
    package var hasImage: Bool { content.image != nil }
    package var image: DecodedImage? { content.image?.wrappedValue }
    package var body: BodySlice? { content.body }
    package var response: Response? { content.response }

    deinit { letGoOfContent() }

    /// Nothing waits any more when its memory comes back (`Downloads.memoryCameBack`), and memory is free when its return is
    /// told: the next picture takes its place at once.
    func letGoOfContent() {
        var gone = Content()
        swap(&content, &gone)
        gone.imageWaits = nil
        gone.bodyWaits = nil
        gone.image = nil
        gone.body = nil
        gone.imageCharge = nil
        gone.bodyCharge = nil
    }

    /// The rest stays, for whoever asks for it.
    func letGoOfCharges() {
        content.imageWaits = nil
        content.bodyWaits = nil
        content.imageCharge = nil
        content.bodyCharge = nil
    }
}

/// What a subscriber is told before the terminal, in this order (DESIGN section 2, promise 2).
package enum DownloadEvent: Sendable {
    case started
    indirect case response(Response, Progress)
    indirect case header(ImageHeader, Progress)
    case progress(Progress)
    indirect case partial(DecodedImage, Progress)
    /// A step that a batch announces, which has no other kind.
    indirect case step(BatchProgress)
}
