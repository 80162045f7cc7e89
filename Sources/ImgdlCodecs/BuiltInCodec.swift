import CCodecs
import ImgdlCore

/// The formats that come with the library.
package final class BuiltInCodec: ImageCodec {
    private let now: DecodeClock.CPUTime

    package init() { now = codec_cpu_time }

    /// `now`: in place of the thread's CPU time.
    init(now: DecodeClock.CPUTime) { self.now = now }

    package func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder { SniffingDecoder(options, now) }
    package func makeProbe() -> (any ImageProbe)? { HeaderProbe() }
}

/// A decoder of one format.
protocol FormatDecoder: ImageDecoder {
    /// As far as they are known.
    var colours: Colours { get }
    /// Whether pixels may let something through, whatever the header says.
    var mayHaveAlpha: Bool { get }
    /// The mark of the end of a picture that `finish` gave is missing or damaged.
    var hasIncompleteEnd: Bool { get }
    /// So many bytes are taken at a time; between two pieces decoding can be stopped.
    static var piece: Int { get }
}

extension FormatDecoder {
    var colours: Colours { Colours() }
    var mayHaveAlpha: Bool { header?.hasAlpha ?? true }
    var hasIncompleteEnd: Bool { false }
    static var piece: Int { 64 * 1024 }
}

/// Waits until the content tells the format, then hands everything to that format's decoder. Owned by one worker at a
/// time. It also keeps what all formats promise alike: a failure stays, and a result is not given twice differently.
final class SniffingDecoder: ImageDecoder {
    private let options: DecodeOptions
    private let prefix = ByteBuffer()
    private var decoder: (any FormatDecoder)?
    private var outcome: Result<DecodedImage, Failure>?
    private let clock: DecodeClock

    init(_ options: DecodeOptions, _ now: DecodeClock.CPUTime = codec_cpu_time) {
        self.options = options
        clock = DecodeClock(options, now: now)
    }

    /// The header, with what the pixels tell, too, once the picture is whole.
    var header: ImageHeader? {
        if case .success(let image) = outcome { return image.header }
        return decoder?.header
    }
    var memoryDemand: Int64 { decoder?.memoryDemand ?? 0 }
    var profileBytes: Int64 { Int64(decoder?.colours.description.profile?.bytes.count ?? 0) }

    func stop() { clock.stop() }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        if let outcome {
            if case .failure(let failure) = outcome { throw failure }
            return
        }
        guard !bytes.isEmpty else { return }
        clock.begin()
        defer { clock.end() }
        do throws(Failure) {
            try clock.check()
            try feedOn(bytes)
            try clock.check(after: .max)
            if let stillness = stillness(of: decoder?.header) { throw stillness }
        } catch {
            let failure = stillness(of: decoder?.header) ?? error
            outcome = .failure(failure)
            throw failure
        }
    }

    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
        if let outcome { return try outcome.get() }
        clock.begin()
        defer { clock.end() }
        do throws(Failure) {
            try clock.check()
            guard let decoder else { throw Signature.failure(ofWhole: prefix.bytes) }
            var image = try judged(described(try decoder.finish(end)), mayHaveAlpha: decoder.mayHaveAlpha)
            image.hasIncompleteEnd = decoder.hasIncompleteEnd
            if let stillness = stillness(of: image.header) { throw stillness }
            try clock.check(after: .max)
            outcome = .success(image)
            return image
        } catch {
            let failure = stillness(of: decoder?.header) ?? error
            outcome = .failure(failure)
            throw failure
        }
    }

    /// A picture that does not move where one that does was asked for (features O12). It goes before any damage: that is
    /// found sooner or later, depending on the pieces.
    private func stillness(of header: ImageHeader?) -> Failure? {
        guard options.requiresAnimation, header?.frameCount == 1 else { return nil }
        return Failure(.badImageData, "the picture has one frame, and an animation was asked for")
    }

    func partialImage() -> DecodedImage? {
        guard outcome == nil, let decoder else { return nil }
        clock.begin()
        defer { clock.end() }
        return decoder.partialImage().map(described)
    }

    func salvagedImage() -> DecodedImage? {
        guard case .failure = outcome, stillness(of: decoder?.header) == nil else { return nil }
        clock.begin()
        defer { clock.end() }
        return decoder?.salvagedImage().map(described)
    }

    private func described(_ image: DecodedImage) -> DecodedImage {
        var image = image
        if let decoder { image.colour = decoder.colours.description }
        return image
    }

    /// Headers say whether there may be alpha, and some say it wrongly. Of an animation, whose later frames nobody may have
    /// asked for, the first one tells only what its header denies.
    private func judged(_ image: DecodedImage, mayHaveAlpha: Bool) throws(Failure) -> DecodedImage {
        let isAnimated = image.header.frameCount > 1
        guard image.pixels.format != .rgb8, mayHaveAlpha, !isAnimated || !image.header.hasAlpha else { return image }
        var image = image
        image.header.hasAlpha = try !image.pixels.isOpaque(clock)
        return image
    }

    private func feedOn(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard let decoder else { return try sniff(bytes) }
        let piece = type(of: decoder).piece
        var rest = bytes
        while rest.count > piece {
            try decoder.feed(UnsafeRawBufferPointer(rebasing: rest.prefix(piece)))
            try clock.check(after: piece)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece))
        }
        try decoder.feed(rest)
    }

    /// Keeps no more than a signature's length: the rest goes straight on.
    private func sniff(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        let taken = min(bytes.count, Signature.lengthToJudge - prefix.count)
        try prefix.append(UnsafeRawBufferPointer(rebasing: bytes[..<taken]))
        switch Signature.judge(prefix.bytes) {
        case .undecided: return
        case .unknown:
            // The caller's word counts only where the bytes have none (features X11).
            let hint = options.formatHint
            guard hint != .unknown, hint != .other else { throw Signature.failure(ofWhole: prefix.bytes) }
            try begin(hint, UnsafeRawBufferPointer(rebasing: bytes[taken...]))
        case .format(let format): try begin(format, UnsafeRawBufferPointer(rebasing: bytes[taken...]))
        }
    }

    private func begin(_ format: ImageFormat, _ rest: UnsafeRawBufferPointer) throws(Failure) {
        let decoder = try makeDecoder(format)
        self.decoder = decoder
        try decoder.feed(prefix.bytes)
        try feedOn(rest)
    }

    private func makeDecoder(_ format: ImageFormat) throws(Failure) -> any FormatDecoder {
        switch format {
        case .jpeg: return try JPEGDecoder(options, clock)
        case .png: return try PNGDecoder(options, clock)
        case .webp: return WebPDecoder(options, clock)
        case .gif: return GIFDecoder(options, clock)
        case .unknown, .other: throw Failure(.badImageData, "not an image")
        }
    }
}
