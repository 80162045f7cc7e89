import CCodecs
import ImgdlCore

extension DecodedImage {
    /// The same upright, complete picture with an orientation that was found only behind its pixels. If that has made it
    /// stand out of the box, it is scaled once more, from the size it has.
    func turned(_ stored: Int, _ options: DecodeOptions) throws(Failure) -> DecodedImage {
        var header = header
        header.orientation = stored
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let layout = CanvasLayout(width: pixels.width, height: pixels.height, orientation: orientation, options)
        header.width = layout.width
        header.height = layout.height
        if layout.isScaled(width: pixels.width, height: pixels.height) {
            let canvas = try pixels.scaled(to: layout, isOpaque: !header.hasAlpha)
            return DecodedImage(
                header: header, pixels: canvas, ready: layout.rectangle(ofRows: layout.storedHeight),
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
