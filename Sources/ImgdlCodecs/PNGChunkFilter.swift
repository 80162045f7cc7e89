import CCodecs
import ImgdlCore

/// Walks over the chunks of a PNG and gives out those that make pixels.
///
/// libpng keeps a chunk that has not arrived as a whole, copies what it has at every call, and may inflate it: a large
/// text or an unknown chunk costs memory and, in small pieces, the square of its length. So what is not needed never
/// reaches libpng, image data goes through as it comes, and the few others are handed over whole. EXIF is read here,
/// since libpng's progressive reader does not know it.
struct PNGChunkFilter {
    private enum State {
        case signature
        case head
        case whole(length: Int)
        case imageData(remaining: Int)
        case frameSequence(length: Int)
        case frameData(remaining: Int)
        case dropped(remaining: Int)
        case end
    }

    /// Chunks come in this order; image data that is interrupted is not taken up again.
    private enum Progress { case nothing, header, imageData, behindImageData }

    private static let signatureLength = 8
    private static let headLength = 8
    private static let checksumLength = 4
    private static let sequenceLength = 4
    /// PNG section 5.3. So what stands around a chunk's data can be added.
    private static let longestChunk = Int(Int32.max)
    /// No chunk that is needed whole is longer; EXIF may hold a thumbnail.
    private static let longestWhole = 64 * 1024
    private static let longestEXIF = 1024 * 1024
    private static let longestControl = 26

    /// How zlib and libpng end, and which rows they have given by then, depends on how much they are shown at a time where data
    /// is damaged, or runs on behind the last row. So image data is cut the same way whatever pieces the file comes in: so
    /// finely that a partial image lacks little of what has come, and in no smaller parts than the two are quick with.
    private static let unitLengths = 16...16 * 1024
    private static let mostWaiting = 16

    private var state = State.signature
    /// Bytes of image data given out so far.
    private var imageBytes = 0
    private var progress = Progress.nothing
    private let held = ByteBuffer()
    /// Gets what libpng does not understand, and what both need.
    let animation: PNGAnimation
    /// What EXIF says, wherever it stood so far.
    private(set) var orientation: Int?
    /// What iCCP, sRGB, gAMA and cHRM say, as far as they stand ahead of the pixels.
    private(set) var colours = Colours()
    /// One has come.
    private var hasProfile = false
    /// The profile, until the picture's size is judged; nil: nothing of use, or none.
    private var profile: ProfileBytes?
    private var metadata: MetadataMeter
    private let options: DecodeOptions
    private let clock: DecodeClock

    init(_ animation: PNGAnimation, _ options: DecodeOptions, _ clock: DecodeClock) {
        self.clock = clock
        self.animation = animation
        self.options = options
        metadata = MetadataMeter(options)
    }

    /// Follows the profile ahead of the pixels, if there is one.
    mutating func followProfile(_ samples: codec_samples) throws(Failure) {
        if let profile = profile.take() { try colours.found(profile, samples, options, clock) }
    }

    /// The chunk IEND has passed.
    var isAtEnd: Bool { if case .end = state { true } else { false } }

    /// Data of a frame behind the default image has begun to come, and is not over.
    var isWithinFrame: Bool {
        switch state {
        case .frameSequence, .frameData: true
        default: false
        }
    }

    /// The next bytes for libpng, to be used at once; nil when `rest` is used up.
    mutating func next(_ rest: inout UnsafeRawBufferPointer) throws(Failure) -> UnsafeRawBufferPointer? {
        while !rest.isEmpty {
            switch state {
            case .signature:
                guard try hold(&rest, Self.signatureLength) else { return nil }
                state = .head
                try animation.keep(held.bytes, name: "")
                return held.bytes
            case .head:
                guard try hold(&rest, Self.headLength) else { return nil }
                if try judgeHead() { return held.bytes }
            case .whole(let length):
                guard try hold(&rest, length) else { return nil }
                let name = Self.name(of: held.bytes)
                state = name == "IEND" ? .end : .head
                switch name {
                case "eXIf": readEXIF()
                case "iCCP": try unpackProfile()
                case "acTL": animation.announce(checkedData)
                case "fcTL": try animation.begin(checkedData)
                default:
                    if name == "IEND" {
                        // Newer versions of libpng pass over it.
                        guard checkedData != nil else {
                            throw Failure(.badImageData, "the PNG is damaged: the checksum of its last chunk is wrong")
                        }
                        try animation.end()
                    } else {
                        try animation.keep(held.bytes, name: name ?? "")
                    }
                    return held.bytes
                }
                held.removeAll()
            case .imageData(let remaining):
                guard let unit = try unit(&rest, remaining) else { return nil }
                state = unit.count == remaining ? .head : .imageData(remaining: remaining - unit.count)
                try animation.feed(unit)
                return unit
            case .frameSequence(let length):
                guard try hold(&rest, Self.headLength + Self.sequenceLength) else { return nil }
                let sequence = CheckedNumber(
                    bigEndian: held.bytes, at: CheckedNumber(Self.headLength), count: Self.sequenceLength)
                held.removeAll()
                try animation.beginFrameData(sequence: sequence, length: length)
                state = .frameData(remaining: length + Self.checksumLength)
            case .frameData(let remaining):
                guard let unit = try unit(&rest, remaining) else { return nil }
                state = unit.count == remaining ? .head : .frameData(remaining: remaining - unit.count)
                try animation.feed(unit)
                held.removeAll()
            case .dropped(let remaining):
                let taken = Self.take(&rest, remaining)
                state = taken.count == remaining ? .head : .dropped(remaining: remaining - taken.count)
            case .end:
                return nil
            }
        }
        return nil
    }

    /// No more bytes will come: what waits of the image data, for libpng.
    mutating func last() throws(Failure) -> UnsafeRawBufferPointer? {
        guard !held.isEmpty else { return nil }
        switch state {
        case .imageData:
            try animation.feed(held.bytes)
            return held.bytes
        case .frameData:
            try animation.feed(held.bytes)
            return nil
        default: return nil
        }
    }

    /// The next part of image data, of which so many bytes are to come; nil until it is there.
    private mutating func unit(
        _ rest: inout UnsafeRawBufferPointer, _ remaining: Int
    ) throws(Failure) -> UnsafeRawBufferPointer? {
        let wanted = imageBytes / Self.mostWaiting
        let length = min(remaining, max(Self.unitLengths.lowerBound, min(Self.unitLengths.upperBound, wanted)))
        if held.isEmpty, rest.count >= length {
            imageBytes += length
            return Self.take(&rest, length)
        }
        guard try hold(&rest, length) else { return nil }
        imageBytes += length
        return held.bytes
    }

    /// Bytes given out by `next` have been used.
    func discardHeld() { held.removeAll() }

    /// True when the chunk is image data, whose head is passed on at once.
    private mutating func judgeHead() throws(Failure) -> Bool {
        let stored = CheckedNumber(bigEndian: held.bytes, at: 0, count: 4)
        guard let name = Self.name(of: held.bytes), let length = stored?.count(upTo: Self.longestChunk) else {
            throw Failure(.badImageData, "the PNG is broken: a chunk has an impossible name or length")
        }
        if progress == .nothing {
            guard name == "IHDR" else {
                throw Failure(.badImageData, "the PNG does not begin with its header, but with a chunk “\(name)”")
            }
            progress = .header
        } else if name == "IHDR" {
            throw Failure(.badImageData, "the PNG is broken: it has a second header")
        }
        if name == "IDAT", progress != .behindImageData {
            progress = .imageData
            try animation.beginImageData(length: length)
            state = .imageData(remaining: length + Self.checksumLength)
            return true
        }
        if progress == .imageData {
            progress = .behindImageData
            try animation.endImageData()
        }
        if name == "fdAT", length >= Self.sequenceLength {
            state = .frameSequence(length: length - Self.sequenceLength)
            return false
        }
        if progress == .header { note(name) }
        if try isNeeded(name, length) {
            state = .whole(length: Self.headLength + length + Self.checksumLength)
            return false
        }
        let isCritical = held.bytes[4] & 0x20 == 0
        guard !isCritical || name == "IDAT" || name == "PLTE" else {
            throw Failure(.badImageData, "the PNG needs a chunk that is not known: “\(name)”")
        }
        held.removeAll()
        state = .dropped(remaining: length + Self.checksumLength)
        return false
    }

    private mutating func isNeeded(_ name: String, _ length: Int) throws(Failure) -> Bool {
        switch name {
        case "IHDR", "PLTE", "tRNS", "IEND": return length <= Self.longestWhole
        case "eXIf":
            guard orientation == nil, length <= Self.longestEXIF, try metadata.fits(length) else { return false }
            metadata.hold(length)
            return true
        case "iCCP":
            guard progress == .header, !hasProfile else { return false }
            hasProfile = true
            // Counted when it is unpacked.
            let fits = try metadata.fits(packed: length)
            guard fits else {
                colours.description.notes.insert(.unusableProfile)
                return false
            }
            try held.reserve(Self.headLength + length + Self.checksumLength)
            return true
        case "acTL", "fcTL": return length <= Self.longestControl
        default: return false
        }
    }

    private mutating func note(_ name: String) {
        switch name {
        case "sRGB": colours.description.notes.insert(.sRGB)
        case "gAMA": colours.description.notes.insert(.gamma)
        case "cHRM": colours.description.notes.insert(.chromaticities)
        default: break
        }
    }

    /// Here and not by libpng, which inflates it in one go, for however long that takes.
    private mutating func unpackProfile() throws(Failure) {
        defer { held.release() }
        let chunk = held.bytes
        let room = min(metadata.room, max(0, Int(clamping: options.maximumMemoryBytes ?? .max) - chunk.count))
        var memory: UnsafeMutablePointer<UInt8>?
        var length = 0
        let status = codec_png_unpack_profile(
            chunk.baseAddress?.assumingMemoryBound(to: UInt8.self), chunk.count, room, clock.session, &memory, &length)
        if let memory { profile = ProfileBytes(owning: memory, count: length) }
        switch status {
        case CODEC_DONE: metadata.hold(length)
        case CODEC_LATE: throw clock.failure
        case CODEC_FAILED: throw Failure(.outOfMemory, "no memory for a colour profile")
        default:
            if status == CODEC_SUSPENDED, try metadata.fits(length) {
                try options.checkMemory(ofMetadata: CheckedNumber(chunk.count) + CheckedNumber(length))
            }
            colours.description.notes.insert(.unusableProfile)
        }
    }

    private mutating func readEXIF() {
        guard let data = checkedData else { return }
        orientation = EXIFReader.orientation(of: data)
    }

    /// What is in the chunk that is held; nil if it is damaged.
    private var checkedData: UnsafeRawBufferPointer? {
        let stored = held.bytes.suffix(Self.checksumLength).reduce(0) { $0 << 8 | UInt32($1) }
        let chunk = held.bytes.dropLast(Self.checksumLength)
        guard checksum(chunk.dropFirst(4)) == stored else { return nil }
        return UnsafeRawBufferPointer(rebasing: chunk.dropFirst(Self.headLength))
    }

    /// CRC-32 (PNG section 5.5); one small chunk is not worth a table.
    private func checksum(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt32 {
        var sum = UInt32.max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        return ~sum
    }

    /// True when as many bytes are held.
    private func hold(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) throws(Failure) -> Bool {
        try held.append(Self.take(&rest, wanted - held.count))
        return held.count >= wanted
    }

    private static func take(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) -> UnsafeRawBufferPointer {
        let count = min(wanted, rest.count)
        let taken = UnsafeRawBufferPointer(rebasing: rest[..<count])
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        return taken
    }

    /// nil unless there are four letters.
    private static func name(of head: UnsafeRawBufferPointer) -> String? {
        let letters = head.dropFirst(4).prefix(4)
        guard letters.allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) }) else { return nil }
        return String(decoding: letters, as: UTF8.self)
    }
}
