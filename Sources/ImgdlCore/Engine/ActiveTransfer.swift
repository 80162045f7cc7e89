/// What the engine holds of a transfer that has left the queue: its bytes, its decoders, and what they gave.
final class ActiveTransfer {
    let request: TransferRequest
    /// What this attempt's first hop is sent, when a hook has changed it.
    var outgoing: OutgoingRequest?
    /// That led to the hop that runs; nil for the first.
    var redirect: Redirect?
    /// What a hook gave for a challenge, and of where.
    var authentication: (origin: ParsedURL, credential: Credential)?
    /// Of the hop that runs.
    var url: ParsedURL
    var hops: [Hop] = []
    var response: Response?
    var expected: Int64 = -1
    private(set) var received: Int64 = 0
    private(set) var body: Body?
    /// The first bytes of a body that is not kept.
    private(set) var preview: [UInt8] = []
    /// Which attempt this is: reports of an earlier one's decoders are void.
    private(set) var attempt = 0
    /// In the order of the rules' variants.
    var variants: [ActiveVariant] = []
    private var wholeBody: BodySlice?

    init(_ request: TransferRequest) {
        self.request = request
        url = request.url
    }

    var progress: Progress { Progress(received: received, expected: expected) }

    /// Another attempt begins with nothing of the last one but a credential that was asked for.
    func reset() {
        outgoing = nil
        startHop(request.url, redirect: nil)
        hops = []
        response = nil
        expected = -1
        received = 0
        body = nil
        wholeBody = nil
        variants = []
        attempt += 1
    }

    func startHop(_ url: ParsedURL, redirect: Redirect?) {
        self.url = url
        self.redirect = redirect
        preview = []
    }

    /// False when there is no memory.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if body == nil { body = Body(expected: expected) }
        received += Int64(bytes.count)
        return body?.append(bytes) ?? false
    }

    func appendPreview(_ bytes: UnsafeRawBufferPointer) {
        preview += bytes.prefix(BodyDisposition.previewBytes - preview.count)
    }

    /// The first bytes of what came, kept or not.
    func firstBytes() -> [UInt8] {
        guard preview.isEmpty else { return preview }
        var bytes: [UInt8] = []
        for slice in body?.slices(from: 0) ?? [] where bytes.count < BodyDisposition.previewBytes {
            slice.withBytes { bytes += $0.prefix(BodyDisposition.previewBytes - bytes.count) }
        }
        return bytes
    }

    /// A hook's bytes in place of those that came. False when there is no memory.
    func replaceBody(_ bytes: [UInt8]) -> Bool {
        wholeBody = nil
        let replacement = Body(expected: Int64(bytes.count))
        body = replacement
        return bytes.withUnsafeBytes { replacement.append($0) }
    }

    /// What the decoder has not had yet.
    func takeNewBytes(for session: DecodeSession) -> [BodySlice] {
        guard let body else { return [] }
        defer { session.position = body.count }
        return body.slices(from: session.position)
    }

    /// The body in one piece, made once; nil when there is no memory. An empty body is an empty slice.
    func contiguousBody() -> BodySlice? {
        if wholeBody == nil {
            if body == nil { body = Body(expected: 0) }
            wholeBody = body?.contiguous()
        }
        return wholeBody
    }
}

/// One way of decoding it.
struct ActiveVariant {
    var session: DecodeSession?
    var header: ImageHeader?
    /// The latest partial image, then the picture, or what could be salvaged.
    var image: DecodedImage?
}
