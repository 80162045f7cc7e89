import CCodecs
import ImgdlCore

extension DecodedImage {
    /// The same upright picture, turned, and scaled into the box if it stands out of that: for an orientation that was
    /// found only behind the pixels, and for pixels that came at full size.
    func turned(_ stored: Int, _ options: DecodeOptions) throws(Failure) -> DecodedImage {
        var header = header
        header.orientation = stored
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let layout = CanvasLayout(width: pixels.width, height: pixels.height, orientation: orientation, options)
        header.width = layout.width
        header.height = layout.height
        if layout.isScaled(width: pixels.width, height: pixels.height) {
            let scaled = try pixels.scaled(to: layout, isOpaque: !header.hasAlpha, rows: ready.height)
            return DecodedImage(
                header: header, pixels: scaled.pixels, ready: layout.rectangle(ofRows: scaled.rows),
                isComplete: isComplete, pass: pass)
        }
        guard orientation != .upright else {
            return DecodedImage(header: header, pixels: pixels, ready: ready, isComplete: isComplete, pass: pass)
        }
        let canvas = try layout.makeCanvas(pixels.format)
        codec_place_rows(
            pixels.bytes.assumingMemoryBound(to: UInt8.self), pixels.width, 0, ready.height,
            layout.placement(on: canvas), 0)
        return DecodedImage(
            header: header, pixels: canvas, ready: layout.rectangle(ofRows: ready.height), isComplete: isComplete,
            pass: pass)
    }
}
