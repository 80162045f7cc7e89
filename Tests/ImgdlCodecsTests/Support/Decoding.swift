@testable import ImgdlCodecs
import ImgdlCore

/// What a caller can tell of a decode.
struct Verdict: Equatable {
    var failure: Failure?
    var header: ImageHeader?
    var pixels: [UInt8]?
    var isComplete = false
    var frames: [[UInt8]] = []
    var milliseconds: [Int] = []
    var loopCount = 1
    var hasIncompleteEnd = false

    init(_ image: DecodedImage) {
        header = image.header
        pixels = image.bytes
        isComplete = image.isComplete
        frames = image.frames.map { bytes(of: $0.pixels) }
        milliseconds = image.frames.map(\.milliseconds)
        loopCount = image.loopCount
        hasIncompleteEnd = image.hasIncompleteEnd
    }

    init(failure: Failure, header: ImageHeader?) { (self.failure, self.header) = (failure, header) }
}

/// Without padding.
func bytes(of pixels: PixelBuffer) -> [UInt8] {
    if pixels.isPacked { return Array(UnsafeRawBufferPointer(start: pixels.bytes, count: pixels.byteCount)) }
    return (0..<pixels.height).flatMap { row in
        Array(UnsafeRawBufferPointer(start: pixels.bytes + row * pixels.stride, count: pixels.rowBytes))
    }
}

extension ImageDecoder {
    /// The picture of a body that may have been cut.
    func finish() throws(Failure) -> DecodedImage { try finish(.closing) }
}

extension PixelBuffer {
    func scaled(to layout: CanvasLayout, isOpaque: Bool) throws(Failure) -> PixelBuffer {
        var options = DecodeOptions()
        options.pixelFormat = format
        return try shown(as: layout, options, isOpaque: isOpaque, nil).pixels
    }
}

extension DecodedImage {
    var bytes: [UInt8] { ImgdlCodecsTests.bytes(of: pixels) }

    /// The pixel in the canvas, as it lies in memory.
    func pixel(_ x: Int, _ y: Int) -> [UInt8] {
        let at = pixels.bytes.advanced(by: y * pixels.stride + 4 * x)
        return (0..<4).map { at.load(fromByteOffset: $0, as: UInt8.self) }
    }
}

func decodeOptions(_ format: PixelFormat = .rgba8, turned: Bool = true) -> DecodeOptions {
    var options = DecodeOptions()
    options.pixelFormat = format
    options.appliesOrientation = turned
    return options
}

/// Feeds the bytes in pieces of that size, each in memory of its own that is gone afterwards. `after` is called with the
/// number of bytes fed.
func feed(
    _ decoder: any ImageDecoder, _ bytes: [UInt8], pieces: Int, after: (Int) -> Void = { _ in }
) throws(Failure) {
    var start = 0
    while start < bytes.count {
        let end = min(bytes.count, start + pieces)
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: end - start, alignment: 1)
        defer { piece.deallocate() }
        piece.copyBytes(from: bytes[start..<end])
        try decoder.feed(UnsafeRawBufferPointer(piece))
        start = end
        after(start)
    }
}

func decode(
    _ bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), pieces: Int = .max / 2, partials: Bool = false,
    end: BodyEnd = .closing
) -> Verdict {
    let decoder = BuiltInCodec().makeDecoder(options)
    do throws(Failure) {
        try feed(decoder, bytes, pieces: pieces) { _ in if partials { _ = decoder.partialImage() } }
        return Verdict(try decoder.finish(end))
    } catch {
        return Verdict(failure: error, header: decoder.header)
    }
}

/// Sizes from 1 up, as many small ones as large ones; the same for the same seed.
struct RandomSizes {
    private var state: UInt64
    private let most: Int

    init(seed: UInt64, most: Int) { (state, self.most) = (seed &* 2 &+ 1, most) }

    mutating func next() -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let bound = 1 << (Int(state >> 58) % (Int.bitWidth - most.leadingZeroBitCount))
        return 1 + Int(state >> 20 & 0xFFFF_FFFF) % bound
    }
}

/// In pieces of these sizes; after about every other one the picture so far is looked at.
func decode(_ bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), randomPieces sizes: inout RandomSizes)
    -> Verdict
{
    let decoder = BuiltInCodec().makeDecoder(options)
    do throws(Failure) {
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + sizes.next())
            try feed(decoder, Array(bytes[start..<end]), pieces: .max / 2)
            start = end
            if sizes.next() & 1 == 0 { _ = decoder.partialImage() }
        }
        return Verdict(try decoder.finish())
    } catch {
        return Verdict(failure: error, header: decoder.header)
    }
}
