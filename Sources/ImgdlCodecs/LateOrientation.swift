import CCodecs
import ImgdlCore

extension DecodedImage {
    /// The same upright picture with an orientation that was found only behind its pixels.
    func turned(_ stored: Int, applied: Bool) throws(Failure) -> DecodedImage {
        var header = header
        header.orientation = stored
        let orientation = applied ? Orientation(rawValue: stored) ?? .upright : .upright
        let layout = CanvasLayout(storedWidth: pixels.width, storedHeight: pixels.height, orientation: orientation)
        header.width = layout.width
        header.height = layout.height
        guard orientation != .upright else {
            return DecodedImage(
                header: header, pixels: pixels, ready: ready, isComplete: isComplete, pass: pass, frames: frames,
                loopCount: loopCount)
        }
        var turnedFrames: [AnimationFrame] = []
        for frame in frames {
            let turned = try frame.pixels.turned(orientation, format: frame.pixels.format)
            turnedFrames.append(AnimationFrame(pixels: turned, milliseconds: frame.milliseconds))
        }
        let canvas = try layout.makeCanvas(pixels.format)
        codec_place_rows(
            pixels.bytes.assumingMemoryBound(to: UInt8.self), pixels.width, 0, ready.height,
            layout.placement(on: canvas), 0)
        return DecodedImage(
            header: header, pixels: canvas, ready: layout.rectangle(ofRows: ready.height), isComplete: isComplete,
            pass: pass, frames: turnedFrames, loopCount: loopCount)
    }
}
