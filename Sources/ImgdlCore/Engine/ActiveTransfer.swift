/// What the engine holds of a transfer that has left the queue: its bytes, its decoders, and what they gave.
final class ActiveTransfer {
    let request: TransferRequest
    /// Of the hop that runs.
    var url: ParsedURL
    var hops: [Hop] = []
    var response: Response?
    var expected: Int64 = -1
    private(set) var body: Body?
    /// In the order of the rules' variants.
    var variants: [ActiveVariant] = []
    var bodyCharge: MemoryCharge?
    private var wholeBody: BodySlice?
    private var probing = Probing.notBegun

    private enum Probing {
        case notBegun
        case looks(any ImageProbe)
        case decided
    }

    init(_ request: TransferRequest) {
        self.request = request
        url = request.url
    }

    var progress: Progress { Progress(received: Int64(body?.count ?? 0), expected: expected) }

    func addVariants(upTo index: Int) {
        while variants.count <= index { variants.append(ActiveVariant()) }
    }

    /// What these next bytes of the body say of the picture; nil when that is known, or nobody can tell.
    func probe(_ bytes: UnsafeRawBufferPointer, _ codec: any ImageCodec) -> PictureSize? {
        let begun: (any ImageProbe)?
        switch probing {
        case .notBegun: begun = codec.makeProbe()
        case .looks(let probe): begun = probe
        case .decided: return nil
        }
        probing = .decided
        guard var probe = begun else { return nil }
        let size = probe.feed(bytes)
        if size == .undecided { probing = .looks(probe) }
        return size
    }

    /// False when there is no memory.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if body == nil { body = Body(expected: expected) }
        return body?.append(bytes) ?? false
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
    /// The memory that the rules have counted for it.
    var charge: MemoryCharge?
}
