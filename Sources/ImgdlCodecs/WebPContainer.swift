import ImgdlCore

/// Walks over the RIFF chunks of a WebP as they arrive: where its pixels begin, and which orientation its EXIF names.
/// Chunk lengths come from the network; positions are 64-bit sums of 32-bit numbers and cannot overflow.
struct WebPContainer {
    enum Profile {
        case passedOver
        case at(Range<Int>)
    }

    static let riffHeaderLength = 12
    private static let chunkHeaderLength = 8
    private static let longestEXIF = 1024 * 1024

    private(set) var announcesEXIF = false
    private(set) var isAnimated = false
    /// Where the chunk header of the bitstream (VP8 or VP8L) stands.
    private(set) var bitstreamStart: Int?
    private(set) var isLossless = false
    private(set) var profile: Profile?
    private var metadata: MetadataMeter
    private(set) var orientation: Int?
    /// The length of the file, by its own header; nil before that has arrived.
    private(set) var length: Int?
    private var next = Self.riffHeaderLength

    init(_ options: DecodeOptions) { metadata = MetadataMeter(options) }

    /// `bytes` is the body from its beginning, each time longer. Every chunk is looked at once.
    mutating func walk(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard bytes.count >= Self.riffHeaderLength else { return }
        let end = Int(number(bytes, at: 4)) + 8
        length = end
        while next + Self.chunkHeaderLength <= min(bytes.count, end) {
            let payload = next + Self.chunkHeaderLength
            let size = Int(number(bytes, at: next + 4))
            switch name(bytes, at: next) {
            case "VP8X":
                guard payload < bytes.count else { return }
                announcesEXIF = bytes[payload] & 0x08 != 0
                isAnimated = bytes[payload] & 0x02 != 0
            case "VP8 ", "VP8L":
                if bitstreamStart == nil {
                    bitstreamStart = next
                    isLossless = bytes[next + 3] == UInt8(ascii: "L")
                }
            case "ICCP" where profile == nil && bitstreamStart == nil && !isAnimated:
                guard try metadata.fits(size) else {
                    profile = .passedOver
                    break
                }
                guard payload + size <= bytes.count else { return }
                metadata.hold(size)
                profile = .at(payload..<payload + size)
            case "EXIF" where orientation == nil && size <= Self.longestEXIF:
                guard try metadata.fits(size) else { break }
                guard payload + size <= bytes.count else { return }
                metadata.hold(size)
                orientation = EXIFReader.orientation(of: UnsafeRawBufferPointer(rebasing: bytes[payload..<payload + size]))
            default:
                break
            }
            next = payload + size + size % 2
        }
    }

    private func number(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    private func name(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> String {
        String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    }
}
