import CCodecs
import ImgdlCore

/// How many rows of a broken lossless picture libwebp writes before it sees that it is broken. It does not say so, and what
/// it has said before depends on where the body was cut into pieces.
///
/// So it is seen: the body is decoded into a column one pixel wide, once over zeros and once over ones, and a row that is
/// neither was written. That takes as long as decoding the picture twice more. libwebp has let go of the picture itself by
/// then, so it holds no more memory than before.
enum WebPWrittenRows {
    /// `height`: of what is written, when libwebp scales it.
    static func count(
        in body: UnsafeRawBufferPointer, _ features: WebPBitstreamFeatures, height: Int, _ clock: DecodeClock
    ) throws(Failure) -> Int {
        let zeros = try column(0, body, features, height, clock)
        let ones = try column(.max, body, features, height, clock)
        return (0..<height).first { zeros[$0] == 0 && ones[$0] == .max } ?? height
    }

    private static func column(
        _ background: UInt32, _ body: UnsafeRawBufferPointer, _ features: WebPBitstreamFeatures, _ height: Int,
        _ clock: DecodeClock
    ) throws(Failure) -> [UInt32] {
        let bytes = height * MemoryLayout<UInt32>.stride
        let column = UnsafeMutableBufferPointer<UInt32>.allocate(capacity: height)
        column.initialize(repeating: background)
        defer { column.deallocate() }
        let output = WebPIncrementalDecoder.Output(
            start: UnsafeMutableRawPointer(column.baseAddress.unsafelyUnwrapped), stride: MemoryLayout<UInt32>.stride,
            byteCount: bytes, width: 1, height: height, isBGRA: false)
        let decoder = try WebPIncrementalDecoder(features, output)
        var offered = 0
        repeat {
            // There is no check within the call.
            try clock.check(after: .max)
            let batch = WebPStill.batch(
                rows: decoder.rows ?? 0, offered: offered, of: body.count, height: Int(features.height),
                least: WebPDecoder.piece)
            offered = min(body.count, offered + batch)
        } while decoder.update(UnsafeRawBufferPointer(rebasing: body[..<offered])) == VP8_STATUS_SUSPENDED
            && offered < body.count
        return Array(column)
    }
}
