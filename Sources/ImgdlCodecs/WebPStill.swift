import CCodecs
import ImgdlCore

/// One still WebP on its way through libwebp's incremental decoder, not turned yet, at full size or scaled by libwebp.
final class WebPStill {
    /// Only `rows` of them are more than what was in this memory before.
    let pixels: PixelBuffer
    /// Rows that are final.
    private(set) var rows = 0
    private(set) var isComplete = false
    /// How often libwebp was given data: what the work of a lossless picture depends on.
    private(set) var updates = 0

    private let decoder: OpaquePointer
    /// libwebp looks at it until the end.
    private let configuration: UnsafeMutablePointer<WebPDecoderConfig>
    private let storedHeight: Int
    private let clock: DecodeClock
    private let isLossless: Bool
    private var offered = 0

    init(
        _ features: WebPBitstreamFeatures, isLossless: Bool, width: Int, height: Int, _ format: PixelFormat,
        _ allocator: CanvasAllocator?, _ clock: DecodeClock
    ) throws(Failure) {
        let pixels = try PixelBuffer(
            width: width, height: height, format: format, allocator: allocator, isCleared: false, clock)
        let configuration = UnsafeMutablePointer<WebPDecoderConfig>.allocate(capacity: 1)
        guard WebPInitDecoderConfig(configuration) != 0, let stride = Int32(exactly: pixels.stride),
            let scaledWidth = Int32(exactly: width), let scaledHeight = Int32(exactly: height)
        else {
            configuration.deallocate()
            throw Failure(.outOfMemory, "no memory for a WebP decoder")
        }
        let isScaled = scaledWidth != features.width || scaledHeight != features.height
        configuration.pointee.options.use_scaling = isScaled ? 1 : 0
        configuration.pointee.options.scaled_width = scaledWidth
        configuration.pointee.options.scaled_height = scaledHeight
        configuration.pointee.output.colorspace = format.isBGRA ? MODE_BGRA : MODE_RGBA
        configuration.pointee.output.is_external_memory = 1
        configuration.pointee.output.u.RGBA.rgba = pixels.bytes.assumingMemoryBound(to: UInt8.self)
        configuration.pointee.output.u.RGBA.stride = stride
        configuration.pointee.output.u.RGBA.size = pixels.byteCount
        guard let decoder = WebPIDecode(nil, 0, configuration) else {
            configuration.deallocate()
            throw Failure(.outOfMemory, "no memory for a WebP decoder")
        }
        self.clock = clock
        self.pixels = pixels
        self.decoder = decoder
        self.configuration = configuration
        self.isLossless = isLossless
        storedHeight = Int(features.height)
    }

    /// What libwebp holds of a picture besides its canvas: of a lossless one all of its pixels; of a lossy one its alpha,
    /// which may be such a picture of its own.
    static func bytesPerPixel(isLossless: Bool, hasAlpha: Bool) -> Int { isLossless ? 4 : hasAlpha ? 5 : 0 }

    deinit {
        WebPIDelete(decoder)
        configuration.deallocate()
    }

    /// Lossy pictures go on where they stopped. Lossless ones begin again some rows before, or at the very start while
    /// their code tables are incomplete, so their bytes are saved up: the work stays linear in the length of the body.
    func offer(_ body: UnsafeRawBufferPointer, from start: Int, isWhole: Bool, length: Int) throws(Failure) {
        if isLossless, !isWhole {
            let rowsWorth = 48 * max(0, length - start) / max(1, storedHeight)
            let batch = max(64 * 1024, rowsWorth, rows == 0 ? offered / 2 : 0)
            guard body.count - offered >= batch else { return }
        }
        try update(body)
    }

    /// `body` begins with the file's first byte, each time; it may have moved.
    func update(_ body: UnsafeRawBufferPointer) throws(Failure) {
        guard !isComplete, body.count > offered else { return }
        // There is none within the call.
        try clock.check(after: .max)
        offered = body.count
        updates += 1
        let status = decode(body)
        var last: Int32 = 0
        if WebPIDecGetRGB(decoder, &last, nil, nil, nil) != nil { try reached(Int(last)) }
        if status == VP8_STATUS_SUSPENDED { return }
        try Self.check(status)
        try reached(pixels.height)
        isComplete = true
    }

    /// libwebp looks at what it has made at its first use, each time a picture begins, and has a lock for that: fork() waits
    /// for so much of each picture.
    private static let beginning = 16 * 1024

    private func decode(_ body: UnsafeRawBufferPointer) -> VP8StatusCode {
        let start = body.baseAddress?.assumingMemoryBound(to: UInt8.self)
        if updates == 1 {
            let count = min(body.count, Self.beginning)
            let status = Thread.working { WebPIUpdate(decoder, start, count) }
            if count == body.count || status != VP8_STATUS_SUSPENDED { return status }
        }
        return WebPIUpdate(decoder, start, body.count)
    }

    private func reached(_ row: Int) throws(Failure) {
        guard row > rows else { return }
        // Also where the header denies it, pixels may have alpha: VP8L calls it a hint, VP8X can be wrong.
        if pixels.format.isPremultiplied {
            for row in rows..<row {
                try clock.check(after: pixels.width)
                let first = pixels.bytes.advanced(by: row * pixels.stride).assumingMemoryBound(to: UInt8.self)
                codec_premultiply(first, pixels.width)
            }
        }
        rows = row
    }

    static func check(_ status: VP8StatusCode) throws(Failure) {
        switch status {
        case VP8_STATUS_OK: return
        case VP8_STATUS_OUT_OF_MEMORY: throw Failure(.outOfMemory, "libwebp: out of memory")
        case VP8_STATUS_NOT_ENOUGH_DATA, VP8_STATUS_SUSPENDED: throw Failure(.truncated, "libwebp: not enough data")
        case VP8_STATUS_UNSUPPORTED_FEATURE: throw Failure(.badImageData, "libwebp: unsupported feature")
        default: throw Failure(.badImageData, "libwebp: bitstream error")
        }
    }
}
