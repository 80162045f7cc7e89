import CCodecs
import ImgdlCore

/// The small JPEG that cameras put into EXIF, made as large as the picture: something to show before anything else has
/// come (features R05).
struct JPEGThumbnail {
    /// Larger ones are no thumbnails. A segment has no room for more than 64 KiB, whatever its picture claims.
    private static let maximumPixels: UInt64 = 1 << 20
    private static let maximumScans = 32

    let pixels: PixelBuffer

    /// `stored` is the picture's size in the file; `memory`: what decoding may take. nil: there is no thumbnail that can be
    /// decoded, or it has other proportions than the picture, as one with black bars has.
    init?(
        exif: UnsafeRawBufferPointer, stored: OutputSize, _ layout: CanvasLayout, memory: UInt64?,
        _ options: DecodeOptions, _ conversion: ColourConversion?, _ clock: DecodeClock,
        makeCanvas: () throws(Failure) -> PixelBuffer
    ) {
        guard let bytes = EXIFReader.thumbnail(in: exif) else { return nil }
        var own = DecodeOptions()
        own.pixelFormat = options.pixelFormat.working
        own.appliesOrientation = false
        own.maximumPixels = min(Self.maximumPixels, options.maximumPixels)
        own.maximumScans = Self.maximumScans
        own.maximumMemoryBytes = memory
        do throws(Failure) {
            let decoder = try JPEGDecoder(own, clock)
            try decoder.feed(bytes)
            let small = try decoder.finish(.whole).pixels
            guard Self.isAlike(small, stored) else { return nil }
            let canvas = try makeCanvas()
            let placement = layout.placement(on: canvas, conversion, clock)
            let source = small.bytes.assumingMemoryBound(to: UInt8.self)
            let isDone = codec_stretch(
                source, small.width, small.height, layout.storedWidth, layout.storedHeight, placement, clock.session)
            guard isDone != 0 else { return nil }
            pixels = canvas
        } catch {
            return nil
        }
    }

    /// The sides were rounded to whole pixels.
    private static func isAlike(_ small: PixelBuffer, _ stored: OutputSize) -> Bool {
        abs(small.width * stored.height - small.height * stored.width) <= max(stored.width, stored.height)
    }
}
