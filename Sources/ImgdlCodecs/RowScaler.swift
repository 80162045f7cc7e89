import CCodecs
import ImgdlCore

/// Shrinks a picture while its rows come: each pixel is the average of the area it covers. Transparent pixels lend it no
/// colour. Averages are taken over the values as stored, not over light, as SDWebImage and most viewers do.
final class RowScaler {
    let session: OpaquePointer
    private let layout: CanvasLayout

    /// `layout` is that of the result; `width` and `height`, those of the picture, must not be smaller. Rows that come have
    /// `reduction` times fewer pixels than the picture, rounded up: where it does not divide the size, the last of them stands for less of
    /// the picture than the others. `from` and `format` say what their alpha is and what it becomes. `hasWords`: rows and
    /// canvas are of 16 bits a channel, and nothing has reduced them.
    init(
        width: Int, height: Int, reducedBy reduction: Int = 1, to layout: CanvasLayout, from: codec_alpha,
        _ format: PixelFormat, hasWords: Bool = false
    ) throws(Failure) {
        let scaling = codec_scaling(
            in_width: width, in_height: height, out_width: layout.storedWidth, out_height: layout.storedHeight,
            reduction: reduction, from: from,
            to: format.isPremultiplied ? CODEC_ALPHA_PREMULTIPLIED : CODEC_ALPHA_STRAIGHT,
            has_words: hasWords ? 1 : 0)
        guard let session = codec_scaler_create(scaling) else {
            throw Failure(.outOfMemory, "no memory to scale a picture of \(width) × \(height) pixels")
        }
        self.session = session
        self.layout = layout
    }

    deinit { codec_scaler_destroy(session) }

    /// Rows that are whole on the canvas.
    var rows: Int { codec_scaler_rows(session) }

    /// Before the first row, and again for each pass over the picture.
    func begin(on canvas: PixelBuffer, _ conversion: ColourConversion?, _ clock: DecodeClock?) {
        codec_scaler_begin(session, layout.placement(on: canvas, conversion, clock))
    }

    /// Rows of the source, in its byte order, so many bytes apart.
    func push(
        _ pixels: UnsafeRawPointer, rows: Int, width: Int, stride: Int, _ clock: DecodeClock?
    ) throws(Failure) {
        for row in 0..<rows {
            try clock?.check(after: width)
            codec_scaler_push(session, (pixels + row * stride).assumingMemoryBound(to: UInt8.self))
        }
    }
}

extension PixelBuffer {
    /// What the buffer's own alpha is to a scaler.
    func alpha(isOpaque: Bool) -> codec_alpha {
        isOpaque ? CODEC_ALPHA_OPAQUE : format.isPremultiplied ? CODEC_ALPHA_PREMULTIPLIED : CODEC_ALPHA_STRAIGHT
    }
}
