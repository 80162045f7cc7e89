import CCodecs
import ImgdlCore

extension DecodedImage {
    /// The same upright picture, turned, and scaled into the box if it stands out of that: for an orientation that was
    /// found only behind the pixels, and for pixels that came at full size.
    func turned(_ stored: Int, _ options: DecodeOptions) throws(Failure) -> DecodedImage {
        var header = header
        header.orientation = stored
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let count = options.decodesAllFrames ? max(1, header.frameCount) : 1
        let layout = CanvasLayout(
            width: pixels.width, height: pixels.height, orientation: orientation, frames: count, options)
        header.width = layout.width
        header.height = layout.height
        let isScaled = layout.isScaled(width: pixels.width, height: pixels.height)
        guard isScaled || orientation != .upright else {
            return DecodedImage(
                header: header, pixels: pixels, ready: ready, isComplete: isComplete, pass: pass, frames: frames,
                loopCount: loopCount)
        }
        let canvas: PixelBuffer
        var rows = ready.height
        if isScaled {
            let scaled = try pixels.scaled(to: layout, isOpaque: !header.hasAlpha, rows: rows)
            (canvas, rows) = (scaled.pixels, scaled.rows)
        } else {
            canvas = try layout.makeCanvas(pixels.format)
            codec_place_rows(
                pixels.bytes.assumingMemoryBound(to: UInt8.self), pixels.width, 0, rows,
                layout.placement(on: canvas), 0)
        }
        // All frames again for each partial image would be work without bound: the whole picture has them.
        var turnedFrames: [AnimationFrame] = []
        for frame in isComplete ? frames : [] {
            let isPicture = frame.pixels === pixels
            let turned = isPicture ? canvas : try frame.pixels.shown(as: layout, pixels.format)
            turnedFrames.append(AnimationFrame(pixels: turned, milliseconds: frame.milliseconds))
        }
        return DecodedImage(
            header: header, pixels: canvas, ready: layout.rectangle(ofRows: rows), isComplete: isComplete, pass: pass,
            frames: turnedFrames, loopCount: loopCount)
    }
}
