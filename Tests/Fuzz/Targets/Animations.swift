import ImgdlCore

@testable import ImgdlCodecs

/// The GIF reader's events and the indices behind its codes are the same in pieces (features B7).
func fuzzGIF(_ bytes: UnsafeRawBufferPointer) throws {
    var whole = GIFLog()
    whole.feed(bytes)
    var pieces = GIFLog()
    bytes.forEachPiece(seed: bytes.seed) { pieces.feed($0) }
    try require(
        whole.events == pieces.events, "\(pieces.events.count) events in pieces, \(whole.events.count) as a whole")
}

private struct GIFLog {
    private var reader = GIFReader(isBGRA: false)
    private let codes = LZWReader()
    private var isOver = false
    /// The frame's indices are not all there yet.
    private var isReading = false
    private(set) var events: [String] = []
    private var bytesOfData = 0

    mutating func feed(_ bytes: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        var rest = bytes
        do throws(Failure) {
            while let event = try reader.next(&rest) { try note(event) }
        } catch {
            isOver = true
            events.append("\(error)")
        }
    }

    private mutating func note(_ event: GIFReader.Event) throws(Failure) {
        switch event {
        case .screen(let width, let height): events.append("screen \(width) \(height)")
        case .frame(let frame):
            let area = frame.rectangle
            events.append("frame \(area) \(frame.isInterlaced) \(frame.control) \(frame.palette.hashValue)")
            let count = min(area.width * area.height, 1 << 18)
            try codes.begin(minimumWidth: frame.codeSize, count: count, copies: true)
            isReading = true
        case .data(let data):
            bytesOfData += data.count
            guard isReading else { return }
            switch codes.feed(data) {
            case .suspended: break
            case let outcome:
                isReading = false
                events.append("\(outcome) \(codes.indices.reduce(0) { $0 &* 31 &+ Int($1) })")
            }
        case .frameEnd: events.append("end of frame, \(bytesOfData) bytes")
        case .trailer: events.append("trailer, \(reader.repetitions ?? -1)")
        }
    }
}

/// What the chunk filter hands to libpng, and what it makes of animations, is the same in pieces.
func fuzzPNG(_ bytes: UnsafeRawBufferPointer) throws {
    let whole = PNGLog()
    whole.feed(bytes)
    let pieces = PNGLog()
    bytes.forEachPiece(seed: bytes.seed) { pieces.feed($0) }
    try require(whole.text == pieces.text, "in pieces \(pieces.text), as a whole \(whole.text)")
    try require((1...8).contains(whole.filter.orientation ?? 1), "an orientation that is none")
}

private final class PNGLog {
    var filter: PNGChunkFilter
    private let animation: PNGAnimation
    private var given = 0
    private var sum: UInt64 = 0
    private var failure: Failure?

    init() {
        var options = DecodeOptions()
        options.decodesAllFrames = true
        options.maximumPixels = fuzzedPixels
        animation = PNGAnimation(options, DecodeClock(options))
        filter = PNGChunkFilter(animation, options, DecodeClock(options))
    }

    func feed(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil else { return }
        var rest = bytes
        do throws(Failure) {
            while let piece = try filter.next(&rest) {
                given += piece.count
                for byte in piece { sum = sum &* 31 &+ UInt64(byte) }
                filter.discardHeld()
            }
        } catch { failure = error }
    }

    var text: String {
        // Until its end a file may still turn out to have a broken animation, sooner or later.
        let frames = filter.isAtEnd ? animation.frameCount : 0
        return "\(failure as Any) \(given) bytes, \(sum), \(filter.isAtEnd) \(filter.orientation ?? 0) \(frames)"
    }
}

/// The RIFF walker, and the reader of animations.
func fuzzWebP(_ bytes: UnsafeRawBufferPointer) throws {
    var whole = WebPContainer(DecodeOptions())
    let verdict = failure { () throws(Failure) in try whole.feed(bytes) }
    var growing = WebPContainer(DecodeOptions())
    var found: Failure?
    bytes.forEachPiece(seed: bytes.seed) { piece in
        if found == nil { found = failure { () throws(Failure) in try growing.feed(piece) } }
    }
    try require(verdict == found, "in pieces \(found as Any), as a whole \(verdict as Any)")
    try require("\(whole)" == "\(growing)", "in pieces \(growing), as a whole \(whole)")

    let frames = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(WebPContainer.riffHeaderLength))
    var all = WebPLog()
    all.feed(frames)
    var pieces = WebPLog()
    frames.forEachPiece(seed: bytes.seed) { pieces.feed($0) }
    try require(all.text == pieces.text, "in pieces \(pieces.text), as a whole \(all.text)")
}

private func failure(_ body: () throws(Failure) -> Void) -> Failure? {
    do throws(Failure) { try body() } catch { return error }
    return nil
}

private struct WebPLog {
    private var reader = WebPFrameReader(DecodeOptions())
    private(set) var text = ""
    private var isOver = false
    private var sum: UInt64 = 0

    mutating func feed(_ bytes: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        var rest = bytes
        do throws(Failure) {
            while let event = try reader.next(&rest) {
                switch event {
                case .loops(let plays): text += " loops \(plays)"
                case .exif(let block): text += " exif \(EXIFReader.orientation(of: block))"
                case .profile(let profile): text += " profile of \(profile?.bytes.count ?? 0)"
                case .frame(let frame, let length): text += " \(frame) \(length)"
                case .data(let data): for byte in data { sum = sum &* 31 &+ UInt64(byte) }
                case .frameEnd: text += " end \(sum)"
                }
            }
        } catch {
            isOver = true
            text += " \(error)"
        }
    }
}
