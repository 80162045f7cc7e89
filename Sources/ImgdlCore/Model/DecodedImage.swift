/// What the first bytes of a picture tell. Width and height are as the caller will see them (orientation applied).
package struct ImageHeader: Equatable, Sendable {
    package var format: ImageFormat
    package var width: Int
    package var height: Int
    /// EXIF orientation as stored, 1 to 8; 1 where the file has none.
    package var orientation: Int = 1
    /// 0 while the header does not tell.
    package var frameCount: Int = 1
    package var hasAlpha: Bool
    /// The file is stored in passes (progressive JPEG, Adam7): an early picture covers the whole canvas.
    package var isProgressive: Bool

    package init(
        format: ImageFormat, width: Int, height: Int, orientation: Int = 1, frameCount: Int = 1, hasAlpha: Bool,
        isProgressive: Bool
    ) {
        self.format = format
        self.width = width
        self.height = height
        self.orientation = orientation
        self.frameCount = frameCount
        self.hasAlpha = hasAlpha
        self.isProgressive = isProgressive
    }
}

/// A part of a canvas, in pixels.
package struct PixelRectangle: Equatable, Sendable {
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }
}

/// One picture of an animation as the viewer sees it: blended over the ones before, which were disposed of.
package struct AnimationFrame: Sendable {
    /// As large as the picture, whatever part of it this frame changed.
    package let pixels: PixelBuffer
    /// How long it is shown; never less than 11 (features G5).
    package let milliseconds: Int

    package init(pixels: PixelBuffer, milliseconds: Int) {
        self.pixels = pixels
        self.milliseconds = milliseconds
    }

    /// What players make of a stored duration: files that say less than 11 ms, or nothing, mean 100.
    package static func shown(milliseconds stored: Int) -> Int { stored < 11 ? 100 : stored }
}

/// Pixels, whole or so far. Partial images of formats whose rows are final share the canvas that is still written:
/// only `ready` may be read without a race; the rest is transparent or already newer.
package struct DecodedImage: Sendable {
    package var header: ImageHeader
    package let pixels: PixelBuffer
    /// The part of the canvas that holds pixels for good (or, for files stored in passes, the best so far).
    package let ready: PixelRectangle
    /// False for partial and for salvaged images.
    package let isComplete: Bool
    /// Which pass over the picture this is: scans of a progressive JPEG or Adam7 passes, 1 otherwise.
    package let pass: Int
    /// The frames of an animation that were decoded, in order: none of a still picture, the first alone unless
    /// `decodesAllFrames` asked for more. Their pixels are final (features O10, O11).
    package var frames: [AnimationFrame] = []
    /// How often the animation plays; 0: for ever.
    package var loopCount = 1
    package var colour = ColourDescription()
    /// It is whole, but what marks its end in the file is missing or damaged.
    package var hasIncompleteEnd = false
    /// Worth showing for a while, though better may come; of itself when complete.
    package var isGoodEnough: Bool
    /// Pixels for each pixel of the layout: its subscriber's (features X10).
    package var scaleFactor = 1.0

    package init(
        header: ImageHeader, pixels: PixelBuffer, ready: PixelRectangle, isComplete: Bool, pass: Int = 1,
        frames: [AnimationFrame] = [], loopCount: Int = 1
    ) {
        self.header = header
        self.pixels = pixels
        self.ready = ready
        self.isComplete = isComplete
        isGoodEnough = isComplete
        self.pass = pass
        self.frames = frames
        self.loopCount = loopCount
        pixels.showOnly(ready)
    }
}

extension DecodedImage {
    /// Frames of the file; of one that is not whole those that are here, whatever it says ahead.
    package var knownFrameCount: Int { max(1, isComplete ? header.frameCount : 0, frames.count) }

    /// One frame as a still picture; the first of a picture without decoded frames is the picture. nil: not decoded.
    package func frame(_ index: Int) -> DecodedImage? {
        guard frames.indices.contains(index) else { return index == 0 && frames.isEmpty ? self : nil }
        var header = header
        header.frameCount = 1
        let pixels = frames[index].pixels
        let whole = PixelRectangle(x: 0, y: 0, width: pixels.width, height: pixels.height)
        var frame = DecodedImage(header: header, pixels: pixels, ready: whole, isComplete: true)
        frame.colour = colour
        frame.hasIncompleteEnd = hasIncompleteEnd
        return frame
    }
}
