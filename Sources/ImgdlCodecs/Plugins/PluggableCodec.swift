import ImgdlCore

/// The host's codecs in front of those that come with the library. Without any, nothing is added to these.
package final class PluggableCodec: ImageCodec {
    private let builtIn: any ImageCodec
    package let registry = CodecRegistry()

    package init(_ builtIn: any ImageCodec = BuiltInCodec()) { self.builtIn = builtIn }

    package func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder {
        if let id = options.coder {
            return ChoosingDecoder(options, [], builtIn: nil, chosen: registry.plugin(id))
        }
        let plugins = registry.all()
        if plugins.isEmpty { return builtIn.makeDecoder(options) }
        return ChoosingDecoder(options, plugins, builtIn: builtIn, chosen: nil)
    }

    /// Of formats that the library knows, whoever decodes them.
    package func makeProbe() -> (any ImageProbe)? { builtIn.makeProbe() }
}

/// Shows the first bytes to one codec after the other until one takes them. It also keeps, for the host's codecs, what
/// all promise: a failure stays, and a result is not given twice differently. Owned by one worker at a time.
private final class ChoosingDecoder: ImageDecoder {
    private let options: DecodeOptions
    /// Not asked yet, or not decided, in order.
    private var candidates: ArraySlice<any CodecPlugin>
    /// nil: none but `chosen` will do.
    private let builtIn: (any ImageCodec)?
    private var chosen: (any CodecPlugin)?
    private let prefix = ByteBuffer()
    /// The one that was chosen, which `stop` is for.
    private let lock = Lock()
    private var decoder: (any ImageDecoder)?
    private var isStopped = false
    /// Nobody waits any more: no function of the host's is called again but its end.
    private var mayGoOn: Bool { lock.withLock { !isStopped } }
    private var outcome: Result<DecodedImage, Failure>?

    init(
        _ options: DecodeOptions, _ candidates: [any CodecPlugin], builtIn: (any ImageCodec)?,
        chosen: (any CodecPlugin)?
    ) {
        self.options = options
        self.candidates = candidates[...]
        self.builtIn = builtIn
        self.chosen = chosen
    }

    var header: ImageHeader? { decoder?.header }
    var memoryDemand: Int64 { decoder?.memoryDemand ?? 0 }
    var profileBytes: Int64 { decoder?.profileBytes ?? 0 }

    func stop() {
        lock.withLock { () -> (any ImageDecoder)? in
            isStopped = true
            return decoder
        }?.stop()
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        if let outcome {
            if case .failure(let failure) = outcome { throw failure }
            return
        }
        guard !bytes.isEmpty else { return }
        do throws(Failure) {
            try check()
            if let decoder { return try decoder.feed(bytes) }
            let taken = min(bytes.count, CodecRegistry.prefixLength - prefix.count)
            try prefix.append(UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
            guard let decoder = try choose(isWhole: false) else { return }
            try decoder.feed(UnsafeRawBufferPointer(rebasing: bytes[taken...]))
        } catch {
            outcome = .failure(error)
            throw error
        }
    }

    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
        if let outcome { return try outcome.get() }
        do throws(Failure) {
            try check()
            if decoder == nil { _ = try choose(isWhole: true) }
            try check()
            guard let decoder else {
                throw Failure(.internal, "no codec was chosen")
            }
            let image = try decoder.finish(end)
            outcome = .success(image)
            return image
        } catch {
            outcome = .failure(error)
            throw error
        }
    }

    func partialImage() -> DecodedImage? { outcome == nil && mayGoOn ? decoder?.partialImage() : nil }

    func salvagedImage() -> DecodedImage? {
        guard case .failure = outcome, mayGoOn else { return nil }
        return decoder?.salvagedImage()
    }

    private func check() throws(Failure) {
        if !mayGoOn { throw Failure(.cancelled, "nobody waits for the picture") }
    }

    /// The decoder, which has had the prefix; nil while the codec whose turn it is wants to see more.
    private func choose(isWhole: Bool) throws(Failure) -> (any ImageDecoder)? {
        while chosen == nil, let candidate = candidates.first {
            try check()
            switch candidate.canDecode(prefix.bytes) {
            case true?: chosen = candidate
            case nil where !isWhole && prefix.count < CodecRegistry.prefixLength: return nil
            default: candidates = candidates.dropFirst()
            }
        }
        candidates = []
        try check()
        let new: any ImageDecoder
        if let chosen {
            new = try chosen.makeDecoder(options)
        } else if let builtIn {
            new = builtIn.makeDecoder(options)
        } else {
            throw Failure(.invalidOperation, "the codec that was asked for has been taken out")
        }
        let mustStop = lock.withLock {
            decoder = new
            return isStopped
        }
        if mustStop { new.stop() }
        try check()
        if !prefix.isEmpty { try new.feed(prefix.bytes) }
        return new
    }
}
