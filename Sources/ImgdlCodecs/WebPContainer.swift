import ImgdlCore

/// Walks over the RIFF chunks of a WebP as they arrive: where its pixels begin, and which orientation its EXIF names.
///
/// What libwebp needs of a still picture is kept, together with nothing else: metadata that is passed over takes no memory. Of
/// an animation every byte is kept, for the reader of its frames.
struct WebPContainer {
    enum Profile {
        case passedOver
        case held(ByteBuffer)
    }

    private enum State {
        case riff
        case head
        /// Of the chunk that says what the file has.
        case flags(padded: Int)
        case kept(remaining: Int)
        case dropped(remaining: Int)
        case profile(size: Int)
        case exif(size: Int)
        /// Whatever follows is kept.
        case everything
    }

    static let riffHeaderLength = 12
    private static let longestEXIF = 1024 * 1024

    /// The file as libwebp gets to see it, from its first byte on.
    let body = ByteBuffer()
    /// Bytes that belong to the file, by its own header.
    private(set) var received = 0
    /// The length of the file, by its own header; nil before that has arrived.
    private(set) var length: Int?
    private(set) var announcesEXIF = false
    /// Where the chunk header of the bitstream (VP8 or VP8L) stands in `body`.
    private(set) var bitstreamStart: Int?
    private(set) var isLossless = false
    private(set) var hasAlphaChunk = false
    private(set) var profile: Profile?
    private(set) var orientation: Int?

    private var state = State.riff
    private let held = ByteBuffer()
    private var isExtended = false
    private var metadata: MetadataMeter

    init(_ options: DecodeOptions) { metadata = MetadataMeter(options) }

    var isWhole: Bool { length.map { received >= $0 } ?? false }
    /// Nothing more comes for libwebp.
    var hasWholeBody: Bool {
        if case .kept = state { return isWhole }
        return isWhole || bitstreamStart != nil
    }

    /// The next bytes. What lies behind the file's own end is ignored.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty, !isWhole {
            switch state {
            case .riff:
                guard try hold(&rest, Self.riffHeaderLength) else { return }
                let file = try RIFFChunk(head: held.bytes)
                length = (CheckedNumber(file.size) + CheckedNumber(RIFFChunk.headLength))?.count(upTo: .max)
                try keepHeld(then: .head)
            case .head:
                guard try hold(&rest, RIFFChunk.headLength) else { return }
                try judge(RIFFChunk(head: held.bytes))
                held.removeAll()
            case .flags(let padded):
                guard try hold(&rest, 1) else { return }
                let flags = held.bytes[0]
                announcesEXIF = flags & 0x08 != 0
                let isAnimated = flags & 0x02 != 0
                try keepHeld(then: isAnimated ? .everything : .kept(remaining: padded - 1))
            case .kept(let remaining):
                let taken = take(&rest, remaining)
                try body.append(taken)
                state = taken.count == remaining ? .head : .kept(remaining: remaining - taken.count)
            case .dropped(let remaining):
                let taken = take(&rest, remaining)
                state = taken.count == remaining ? .head : .dropped(remaining: remaining - taken.count)
            case .profile(let size):
                guard case .held(let profile) = profile else { return }
                try profile.append(take(&rest, size - profile.count))
                if profile.count == size { state = .dropped(remaining: size % 2) }
            case .exif(let size):
                guard try hold(&rest, size) else { return }
                orientation = EXIFReader.orientation(of: held.bytes)
                held.removeAll()
                state = .dropped(remaining: size % 2)
            case .everything:
                try body.append(take(&rest, .max))
            }
        }
    }

    /// For bytes that go elsewhere: those which belong to the file.
    mutating func count(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var rest = bytes
        return take(&rest, .max)
    }

    /// The head of a chunk is held.
    private mutating func judge(_ chunk: RIFFChunk) throws(Failure) {
        let size = chunk.size
        state = .dropped(remaining: chunk.padded)
        switch chunk.name {
        case "VP8 " where bitstreamStart == nil, "VP8L" where bitstreamStart == nil:
            bitstreamStart = body.count
            isLossless = chunk.name == "VP8L"
            try keepHeld(then: .kept(remaining: chunk.padded))
        case "VP8X" where !isExtended && bitstreamStart == nil:
            isExtended = true
            try keepHeld(then: size > 0 ? .flags(padded: chunk.padded) : .everything)
        // Libwebp has something to say about such files.
        case _ where !isExtended && bitstreamStart == nil:
            try keepHeld(then: .everything)
        case "ALPH" where bitstreamStart == nil:
            hasAlphaChunk = true
            try keepHeld(then: .kept(remaining: chunk.padded))
        case "ICCP" where profile == nil && bitstreamStart == nil:
            profile = .passedOver
            guard try metadata.fits(size) else { return }
            metadata.hold(size)
            let bytes = ByteBuffer()
            try bytes.reserve(size)
            profile = .held(bytes)
            if size > 0 { state = .profile(size: size) }
        case "EXIF" where orientation == nil && size <= Self.longestEXIF:
            guard try metadata.fits(size) else { return }
            metadata.hold(size)
            orientation = size > 0 ? nil : 1
            if size > 0 { state = .exif(size: size) }
        default: break
        }
    }

    private mutating func keepHeld(then next: State) throws(Failure) {
        try body.append(held.bytes)
        held.removeAll()
        state = next
    }

    /// True when as many bytes are held.
    private mutating func hold(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) throws(Failure) -> Bool {
        try held.append(take(&rest, wanted - held.count))
        return held.count == wanted
    }

    private mutating func take(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) -> UnsafeRawBufferPointer {
        let count = min(wanted, rest.count, length.map { max(0, $0 - received) } ?? .max)
        received += count
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
        return UnsafeRawBufferPointer(rebasing: rest[..<count])
    }
}
