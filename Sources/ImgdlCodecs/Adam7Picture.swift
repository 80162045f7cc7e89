import CCodecs
import ImgdlCore

/// The pixels of an Adam7 picture as they are stored, each written once to where it belongs. The gaps between them are filled
/// only where somebody looks: a partial image costs the rows that have changed, and a picture nobody watched nothing.
final class Adam7Picture {
    private static let stripRows = 16
    /// Of a processor's own caches, about: a canvas that is larger is not in them any more when it is looked at.
    private static let cacheBytes = 2 << 20

    let stored: PixelBuffer
    /// Rows on their way to a canvas of another kind.
    private var strip: PixelBuffer?

    init(_ stored: PixelBuffer) { self.stored = stored }

    /// `canvas` shows the picture as it was at `last` (nil: it is empty), and then as it is at `position`.
    func show(
        _ position: Adam7Position, after last: Adam7Position?, _ layout: CanvasLayout, on canvas: PixelBuffer,
        _ conversion: ColourConversion?, _ clock: DecodeClock
    ) throws(Failure) {
        let isAlike = canvas.format == stored.format && layout.orientation == .upright && conversion == nil
        let strip = isAlike ? nil : try makeStrip(clock)
        var gathered = 0
        for y in 0..<stored.height {
            try clock.check(after: stored.width)
            let source = position.source(of: y)
            if let source, source != last?.source(of: y) {
                let row = strip.map { $0.bytes + gathered * $0.stride } ?? canvas.bytes + y * canvas.stride
                fill(source, into: row, isLarge: isAlike && canvas.byteCount > Self.cacheBytes)
                gathered += 1
                if gathered < Self.stripRows, y + 1 < stored.height { continue }
                strip?.place(rows: gathered, top: y + 1 - gathered, layout, on: canvas, conversion, clock)
            } else if gathered > 0 {
                strip?.place(rows: gathered, top: y - gathered, layout, on: canvas, conversion, clock)
            }
            gathered = 0
        }
        try clock.check()
    }

    /// All rows that can be shown, to a scaler that has begun.
    func push(_ position: Adam7Position, to scaler: RowScaler, _ clock: DecodeClock) throws(Failure) {
        let strip = try makeStrip(clock)
        var filled: Adam7Position.Source?
        for y in 0..<stored.height {
            try clock.check(after: stored.width)
            guard let source = position.source(of: y) else { return }
            if source != filled { fill(source, into: strip.bytes, isLarge: false) }
            filled = source
            try scaler.push(strip.bytes, rows: 1, width: stored.width, stride: strip.stride, clock)
        }
    }

    private func fill(_ source: Adam7Position.Source, into row: UnsafeMutableRawPointer, isLarge: Bool) {
        codec_fill_gaps(
            (stored.bytes + source.row * stored.stride).assumingMemoryBound(to: UInt8.self),
            stored.format.bytesPerPixel,
            source.step, row.assumingMemoryBound(to: UInt8.self), stored.width, isLarge ? 1 : 0)
    }

    private func makeStrip(_ clock: DecodeClock) throws(Failure) -> PixelBuffer {
        if let strip { return strip }
        let strip = try PixelBuffer(
            width: stored.width, height: Self.stripRows, format: stored.format, isCleared: false, clock)
        self.strip = strip
        return strip
    }
}
