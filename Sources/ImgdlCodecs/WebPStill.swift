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

    private let decoder: WebPIncrementalDecoder
    private let features: WebPBitstreamFeatures
    private let clock: DecodeClock
    private let isLossless: Bool
    /// Bytes of the body, as far as the file says it.
    private let length: Int
    private var offered = 0
    /// libwebp has failed, and may have written rows that it did not count.
    private var hasUncountedRows = false

    init(
        _ features: WebPBitstreamFeatures, isLossless: Bool, length: Int, width: Int, height: Int,
        _ format: PixelFormat, _ allocator: CanvasAllocator?, _ clock: DecodeClock
    ) throws(Failure) {
        let pixels = try PixelBuffer(
            width: width, height: height, format: format, allocator: allocator, isCleared: false, clock)
        decoder = try WebPIncrementalDecoder(
            features,
            WebPIncrementalDecoder.Output(
                start: pixels.bytes, stride: pixels.stride, byteCount: pixels.byteCount, width: width, height: height,
                isBGRA: format.isBGRA))
        self.clock = clock
        self.pixels = pixels
        self.isLossless = isLossless
        self.length = length
        self.features = features
    }

    /// What libwebp holds of a picture besides its canvas: of a lossless one all of its pixels; of a lossy one its alpha,
    /// which may be such a picture of its own.
    static func bytesPerPixel(isLossless: Bool, hasAlpha: Bool) -> Int { isLossless ? 4 : hasAlpha ? 5 : 0 }

    /// Bytes of a lossy picture that libwebp is given next, however they come, but for what is left at the end: it reads eight at
    /// once where there are as many, and of a damaged picture that makes other pixels. Each time it goes over the chunks ahead
    /// of the picture again: with a part more each time that is linear in the length of the body.
    private var step: Int { max(min(4096, max(1, length / 16)), offered / 64) }

    /// Lossy pictures go on where they stopped. Lossless ones begin again some rows before, or at the very start while
    /// their code tables are incomplete, so their bytes are saved up: the work stays linear in the length of the body.
    func offer(_ body: UnsafeRawBufferPointer, from start: Int, isWhole: Bool) throws(Failure) {
        if isLossless, !isWhole {
            let batch = Self.batch(
                rows: rows, offered: offered, of: max(0, length - start), height: Int(features.height), least: 64 * 1024
            )
            guard body.count - offered >= batch else { return }
        }
        try update(body, isEnd: isLossless || isWhole)
    }

    /// Bytes that are worth a call for a lossless picture, of which `offered` of `length` were given and made `rows`.
    static func batch(rows: Int, offered: Int, of length: Int, height: Int, least: Int) -> Int {
        let rowsWorth = 48 * length / max(1, height)
        return max(least, rowsWorth, rows == 0 ? offered / 2 : 0)
    }

    /// `body` begins with the file's first byte, each time; it may have moved. `isEnd`: nothing more is waited for.
    func update(_ body: UnsafeRawBufferPointer, isEnd: Bool = true) throws(Failure) {
        while !isComplete, body.count > offered, isEnd || body.count >= offered + step {
            // There is none within the call.
            try clock.check(after: .max)
            offered = isLossless ? body.count : min(body.count, offered + step)
            updates += 1
            let status = decoder.update(UnsafeRawBufferPointer(rebasing: body[..<offered]))
            if let rows = decoder.rows { try reached(rows) }
            if status == VP8_STATUS_SUSPENDED { continue }
            hasUncountedRows = status != VP8_STATUS_OK
            try Self.check(status)
            try reached(pixels.height)
            isComplete = true
        }
    }

    /// The rows that can be had of `body`, whether it is cut off or broken, and however it came.
    func salvage(_ body: UnsafeRawBufferPointer) {
        do throws(Failure) { try update(body) } catch {}
        guard isLossless, hasUncountedRows else { return }
        // Once.
        hasUncountedRows = false
        do throws(Failure) {
            try reached(WebPWrittenRows.count(in: body, features, height: pixels.height, clock))
        } catch {}
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
