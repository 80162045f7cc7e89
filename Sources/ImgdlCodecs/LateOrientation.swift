import ImgdlCore

extension DecodedImage {
    /// The same upright picture as the caller wants it: turned, scaled into the box if it stands out of that, converted. For
    /// an orientation that was found only behind the pixels, and for pixels that came as they are stored. `isDeep`: as words
    /// that are not bytes times 257; `beside`: bytes of other canvases that the decoder holds; `hasAlpha`: of the
    /// first frame, where the header is about all that have come.
    func turned(
        _ stored: Int, _ options: DecodeOptions, _ conversion: ColourConversion? = nil, isDeep: Bool = false,
        beside: Int = 0, hasAlpha: Bool? = nil, _ clock: DecodeClock?
    ) throws(Failure) -> DecodedImage {
        var header = header
        header.orientation = stored
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let count = options.decodesAllFrames ? max(1, header.frameCount) : 1
        let layout = CanvasLayout(
            width: pixels.width, height: pixels.height, orientation: orientation, frames: count, options)
        header.width = layout.width
        header.height = layout.height
        if !pixels.isShown(as: layout, options, conversion) {
            let held = CheckedNumber(pixels.byteCount) * CheckedNumber(max(1, frames.count)) + CheckedNumber(beside)
            try options.checkMemory(canvas: layout, count: isComplete ? max(1, frames.count) : 1, codec: held)
        }
        // Only a picture that is scaled has to know; and its header may be wrong. Rows that have not come say nothing: those
        // that have would be another step lighter or darker at the end.
        let isScaled = layout.isScaled(width: pixels.width, height: pixels.height)
        var isOpaque = isScaled && !(hasAlpha ?? header.hasAlpha)
        if isOpaque { isOpaque = try pixels.isOpaque(rows: ready.height, clock) }
        let shown = try pixels.shown(
            as: layout, options, conversion, isOpaque: isOpaque, isDeep: isDeep, rows: ready.height, clock)
        guard shown.pixels !== pixels else {
            return DecodedImage(
                header: header, pixels: pixels, ready: ready, isComplete: isComplete, pass: pass, frames: frames,
                loopCount: loopCount)
        }
        // All frames again for each partial image would be work without bound: the whole picture has them.
        var turnedFrames: [AnimationFrame] = []
        for frame in isComplete ? frames : [] {
            let isPicture = frame.pixels === pixels
            let turned =
                isPicture
                ? shown.pixels : try frame.pixels.shown(as: layout, options, conversion, isDeep: isDeep, clock).pixels
            turnedFrames.append(AnimationFrame(pixels: turned, milliseconds: frame.milliseconds))
        }
        return DecodedImage(
            header: header, pixels: shown.pixels, ready: layout.rectangle(ofRows: shown.rows), isComplete: isComplete,
            pass: pass, frames: turnedFrames, loopCount: loopCount)
    }
}
