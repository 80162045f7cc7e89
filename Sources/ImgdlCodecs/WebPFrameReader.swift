import ImgdlCore

/// Walks over the chunks of an animated WebP as they arrive. Headers are kept, and the bytes of frames that are decoded;
/// no byte is looked at twice.
struct WebPFrameReader {
    struct Frame {
        var rectangle: PixelRectangle
        var milliseconds: Int
        var blends: Bool
        var disposal: FrameCanvas.Disposal

        /// The first sixteen bytes of an ANMF chunk.
        init(_ bytes: UnsafeRawBufferPointer) {
            rectangle = PixelRectangle(
                x: 2 * WebPFrameReader.number(bytes, 0), y: 2 * WebPFrameReader.number(bytes, 3),
                width: WebPFrameReader.number(bytes, 6) + 1, height: WebPFrameReader.number(bytes, 9) + 1)
            milliseconds = WebPFrameReader.number(bytes, 12)
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
        case profile(UnsafeRawBufferPointer)
        case frame(Frame, length: Int)
        /// A part of the frame's own chunks, valid until the next call.
        case data(UnsafeRawBufferPointer)
        case frameEnd
    }

    private enum State {
        case chunk, frame(Int), loops(Int), exif(Int), profile(Int)
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
                guard let head = try hold(&rest, 8) else { return nil }
                let size = Int(UInt32(littleEndian: head.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
                let padded = size + size % 2
                switch String(decoding: head[..<4], as: UTF8.self) {
                case "ANMF":
                    guard size >= Self.frameHeaderLength + 8 else {
                        throw Failure(.badImageData, "a frame of the WebP has \(size) bytes")
                    }
                    state = .frame(size)
                case "ANIM":
                    guard size >= 6 else { throw Failure(.badImageData, "the WebP's ANIM chunk has \(size) bytes") }
                    state = .loops(padded)
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
                        return .profile(UnsafeRawBufferPointer(start: nil, count: 0))
                    }
                    metadata.hold(size)
                    state = .profile(size)
                default:
                    state = padded == 0 ? .chunk : .padding(remaining: padded)
                }
            case .loops(let size):
                guard let bytes = try hold(&rest, 6) else { return nil }
                state = size == 6 ? .chunk : .padding(remaining: size - 6)
                return .loops(Int(bytes[4]) | Int(bytes[5]) << 8)
            case .exif(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                state = size % 2 == 0 ? .chunk : .padding(remaining: 1)
                return .exif(bytes)
            case .profile(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                state = size % 2 == 0 ? .chunk : .padding(remaining: 1)
                return .profile(bytes)
            case .frame(let size):
                guard let bytes = try hold(&rest, Self.frameHeaderLength) else { return nil }
                let length = size - Self.frameHeaderLength
                state = .data(remaining: length + size % 2)
                return .frame(Frame(bytes), length: length)
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

    private static func number(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Int {
        Int(bytes[at]) | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2]) << 16
    }
}
