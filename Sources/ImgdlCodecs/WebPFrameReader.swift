import ImgdlCore

/// Walks over the chunks of an animated WebP as they arrive. Headers are kept, and the bytes of frames that are decoded;
/// no byte is looked at twice.
struct WebPFrameReader {
    struct Frame {
        var rectangle: PixelRectangle
        var milliseconds: Int
        var blends: Bool
        var disposal: FrameCanvas.Disposal

        /// The first sixteen bytes of an ANMF chunk; nil: there are fewer.
        init?(_ bytes: UnsafeRawBufferPointer) {
            func number(_ at: CheckedNumber) -> CheckedNumber? { CheckedNumber(littleEndian: bytes, at: at, count: 3) }
            let area = PixelRectangle(x: 2 * number(0), y: 2 * number(3), width: number(6) + 1, height: number(9) + 1)
            guard bytes.count >= 16, let area, let duration = number(12)?.count(upTo: .max) else { return nil }
            rectangle = area
            milliseconds = duration
            blends = bytes[15] & 2 == 0
            disposal = bytes[15] & 1 == 0 ? .none : .background
        }
    }

    enum Event {
        /// Plays, 0: for ever.
        case loops(Int)
        /// Valid until the next call.
        case exif(UnsafeRawBufferPointer)
        /// Likewise; empty for one that is passed over.
        /// nil: it is passed over.
        case profile(ProfileBytes?)
        case frame(Frame, length: Int)
        /// A part of the frame's own chunks, valid until the next call.
        case data(UnsafeRawBufferPointer)
        case frameEnd
    }

    private enum State {
        case chunk, frame(RIFFChunk), exif(Int), profile(Int)
        case loops(padded: Int)
        case data(remaining: Int)
        case padding(remaining: Int)
    }

    private static let frameHeaderLength = 16
    private static let longestEXIF = 1024 * 1024

    private var state = State.chunk
    private let held = ByteBuffer()
    private var metadata: MetadataMeter
    private var hasProfile = false

    init(_ options: DecodeOptions) { metadata = MetadataMeter(options) }

    mutating func next(_ rest: inout UnsafeRawBufferPointer) throws(Failure) -> Event? {
        while !rest.isEmpty {
            switch state {
            case .chunk:
                guard let head = try hold(&rest, RIFFChunk.headLength) else { return nil }
                let chunk = try RIFFChunk(head: head)
                let (size, padded) = (chunk.size, chunk.padded)
                switch chunk.name {
                case "ANMF":
                    guard size >= Self.frameHeaderLength + 8 else { throw Self.short(frame: chunk) }
                    state = .frame(chunk)
                case "ANIM":
                    guard size >= 6 else { throw Failure(.badImageData, "the WebP's ANIM chunk has \(size) bytes") }
                    state = .loops(padded: padded)
                case "VP8 ", "VP8L", "ALPH":
                    throw Failure(.badImageData, "the WebP is animated, but has a picture outside its frames")
                case "EXIF" where (1...Self.longestEXIF).contains(size):
                    if try metadata.fits(size) {
                        metadata.hold(size)
                        state = .exif(size)
                    } else {
                        state = .padding(remaining: padded)
                    }
                case "ICCP" where !hasProfile && size > 0:
                    hasProfile = true
                    guard try metadata.fits(size) else {
                        state = .padding(remaining: padded)
                        return .profile(nil)
                    }
                    metadata.hold(size)
                    try held.reserve(size)
                    state = .profile(size)
                default:
                    state = padded == 0 ? .chunk : .padding(remaining: padded)
                }
            case .loops(let padded):
                guard let bytes = try hold(&rest, 6) else { return nil }
                state = padded == 6 ? .chunk : .padding(remaining: padded - 6)
                return .loops(CheckedNumber(littleEndian: bytes, at: 4, count: 2)?.count(upTo: .max) ?? 1)
            case .exif(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                state = size % 2 == 0 ? .chunk : .padding(remaining: 1)
                return .exif(bytes)
            case .profile(let size):
                try held.append(Self.take(&rest, size - held.count))
                guard held.count == size else { return nil }
                state = size % 2 == 0 ? .chunk : .padding(remaining: 1)
                return .profile(held.takeProfile())
            case .frame(let chunk):
                guard let bytes = try hold(&rest, Self.frameHeaderLength) else { return nil }
                guard let frame = Frame(bytes) else { throw Self.short(frame: chunk) }
                state = .data(remaining: chunk.padded - Self.frameHeaderLength)
                return .frame(frame, length: chunk.size - Self.frameHeaderLength)
            case .data(let remaining):
                // libwebp reads chunks with their padding; a last one without it is as good.
                guard remaining > 0 else {
                    state = .chunk
                    return .frameEnd
                }
                let taken = Self.take(&rest, remaining)
                state = .data(remaining: remaining - taken.count)
                return .data(taken)
            case .padding(let remaining):
                let taken = Self.take(&rest, remaining)
                state = taken.count == remaining ? .chunk : .padding(remaining: remaining - taken.count)
            }
        }
        // The end of a frame is seen without a byte behind it.
        if case .data(remaining: 0) = state {
            state = .chunk
            return .frameEnd
        }
        return nil
    }

    private static func short(frame: RIFFChunk) -> Failure {
        Failure(.badImageData, "a frame of the WebP has \(frame.size) bytes")
    }

    /// Whether the file may end here.
    var isBetweenChunks: Bool { if case .chunk = state { held.isEmpty } else { false } }

    private func hold(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) throws(Failure) -> UnsafeRawBufferPointer? {
        try held.append(Self.take(&rest, wanted - held.count))
        guard held.count == wanted else { return nil }
        defer { held.removeAll() }
        return held.bytes
    }

    private static func take(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) -> UnsafeRawBufferPointer {
        let count = min(wanted, rest.count)
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
        return UnsafeRawBufferPointer(rebasing: rest[..<count])
    }
}
