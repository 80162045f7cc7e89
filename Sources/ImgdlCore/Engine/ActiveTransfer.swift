/// What the engine holds of a transfer that has left the queue: its bytes, its decoders, and what they gave.
final class ActiveTransfer {
    let request: TransferRequest
    /// With the cache, of the hop that runs; nil where the cache has no part in it.
    var exchange: CacheExchange?
    /// Something of this attempt went to the network.
    var isSent = false
    var response: Response?
    var expected: Int64 = -1
    private(set) var received: Int64 = 0
    private(set) var body: Body
    /// Which attempt this is: reports of an earlier one's decoders are void.
    private(set) var attempt = 0
    /// In the order of the rules' variants.
    var variants: [ActiveVariant] = []
    var bodyCharge: TerminalCharge<MemoryCharge>?
    /// What waits for executors of it.
    var bodyWaits: [TerminalCharge<WaitingCharge>] = []
    private var probing = Probing.notBegun
    private var extras: Extras?

    private enum Probing {
        case notBegun
        case looks(any ImageProbe)
        case decided
    }

    /// What few transfers have; made with the first of it.
    private final class Extras {
        var pictures: [DecodeOptions: DecodedImage] = [:]
        var kept: [BodySlice]?
        var outgoing: OutgoingRequest?
        /// nil: where the request leads.
        var hopURL: ParsedURL?
        var redirect: Redirect?
        var authentication: Authentication?
        var hops: [Hop] = []
        var cookiesSent: [CookiesSent] = []
        /// The first bytes of a body that is not kept.
        var preview: [UInt8] = []
    }

    /// `memory`: for its bodies.
    init(_ request: TransferRequest, _ memory: BodyMemory) {
        self.request = request
        body = Body(memory: memory)
    }

    /// Neither a hook, a redirect nor a challenge has changed what is asked.
    var isAsItCame: Bool { extras.map { $0.outgoing == nil && $0.redirect == nil && $0.authentication == nil } ?? true }

    /// Of the hop that runs.
    var url: ParsedURL { extras?.hopURL ?? request.url }

    var progress: Progress { Progress(received: received, expected: expected) }

    /// Another attempt begins with nothing of the last one but a credential that was asked for.
    func reset() {
        exchange?.breakOff(self)
        exchange = nil
        isSent = false
        var authentication = authentication
        extras = nil
        authentication?.isLeft = false
        if authentication != nil { self.authentication = authentication }
        response = nil
        expected = -1
        dropBody()
        abandonDecoders()
        variants = []
        attempt += 1
    }

    /// What they would give is for nobody (features I12).
    func abandonDecoders() { for variant in variants { variant.session?.abandon() } }

    func dropBody() {
        received = 0
        body.removeAll()
        probing = .notBegun
    }

    /// nil: where the request leads.
    func startHop(_ url: ParsedURL?, redirect: Redirect?) {
        if url == nil, extras == nil { return }
        let extras = madeExtras
        extras.hopURL = url
        extras.redirect = redirect
        extras.preview = []
        extras.pictures = [:]
    }

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

    /// The same of all that has come, which nobody has looked at.
    func probeBody(_ codec: any ImageCodec) -> PictureSize? {
        var size: PictureSize?
        for slice in body.slices(from: 0) { size = slice.withBytes { probe($0, codec) } ?? size }
        return size
    }

    /// False when there is no memory.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if received == 0 { body.expected = expected }
        received += Int64(bytes.count)
        return body.append(bytes)
    }

    /// Bytes that are in memory already: shared, before all others.
    func adopt(_ slices: [BodySlice]) {
        body.expected = expected
        body.adopt(slices)
        received = Int64(body.count)
    }

    /// Bytes that nobody needs.
    func skip(_ count: Int64) { received = count }

    /// Whether the body is these bytes.
    func holds(_ slices: [BodySlice]) -> Bool { body.equals(slices) }

    func appendPreview(_ bytes: UnsafeRawBufferPointer) {
        let extras = madeExtras
        extras.preview += bytes.prefix(BodyDisposition.previewBytes - extras.preview.count)
    }

    /// The first bytes of what came, kept or not.
    func firstBytes() -> [UInt8] {
        if let preview = extras?.preview, !preview.isEmpty { return preview }
        var bytes: [UInt8] = []
        for slice in body.slices(from: 0) where bytes.count < BodyDisposition.previewBytes {
            slice.withBytes { bytes += $0.prefix(BodyDisposition.previewBytes - bytes.count) }
        }
        return bytes
    }

    /// A hook's bytes in place of those that came. False when there is no memory.
    func replaceBody(_ bytes: [UInt8]) -> Bool {
        probing = .notBegun
        body.removeAll()
        body.expected = Int64(bytes.count)
        return bytes.withUnsafeBytes { body.append($0) }
    }

    /// What the decoder has not had yet.
    func takeNewBytes(for session: DecodeSession) -> [BodySlice] {
        defer { session.position = body.count }
        return body.slices(from: session.position)
    }

    /// The body in one piece; nil when there is no memory. An empty body is an empty slice.
    func contiguousBody() -> BodySlice? { body.contiguous() }

    // MARK: What few transfers have

    private var madeExtras: Extras {
        let extras = extras ?? Extras()
        self.extras = extras
        return extras
    }

    /// Pictures of the stored response that is played: no decoder is needed.
    var pictures: [DecodeOptions: DecodedImage] {
        get { extras?.pictures ?? [:] }
        set { madeExtras.pictures = newValue }
    }

    /// The bytes before those that the server sends.
    var kept: [BodySlice]? {
        get { extras?.kept }
        set { madeExtras.kept = newValue }
    }

    /// What this attempt's first hop is sent, when a hook has changed it.
    var outgoing: OutgoingRequest? {
        get { extras?.outgoing }
        set { madeExtras.outgoing = newValue }
    }

    /// That led to the hop that runs; nil for the first.
    var redirect: Redirect? { extras?.redirect }

    var authentication: Authentication? {
        get { extras?.authentication }
        set { madeExtras.authentication = newValue }
    }

    var hops: [Hop] {
        get { extras?.hops ?? [] }
        set { madeExtras.hops = newValue }
    }

    /// Of this attempt's requests that use the jar.
    var cookiesSent: [CookiesSent] {
        get { extras?.cookiesSent ?? [] }
        set { madeExtras.cookiesSent = newValue }
    }
}

/// What the jar had for a request when it was sent.
struct CookiesSent {
    let request: TransportRequest
    let cookies: [UInt8]?

    init(_ request: TransportRequest, _ cookies: [UInt8]?) {
        self.request = request
        self.cookies = cookies
    }
}

/// The credential that a hook gave for a challenge, and the origin that it is for.
struct Authentication {
    let origin: ParsedURL
    let credential: Credential
    /// A redirect has led elsewhere since: it stays dropped, also back there (features I24).
    var isLeft = false

    func holds(for url: ParsedURL) -> Bool { !isLeft && url.isSameOrigin(as: origin) }
}

/// One way of decoding it.
struct ActiveVariant {
    var session: DecodeSession?
    var header: ImageHeader?
    /// The latest partial image, then the picture, or what could be salvaged.
    var image: DecodedImage?
    /// The memory that the rules have counted for it.
    var charge: MemoryCharge?
    /// The same as what waits for executors.
    var waits: [TerminalCharge<WaitingCharge>] = []
}
