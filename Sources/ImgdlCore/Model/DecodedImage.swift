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

/// Pixels, whole or so far. Partial images of formats whose rows are final share the canvas that is still written:
/// only `ready` may be read without a race; the rest is transparent or already newer.
package struct DecodedImage: Sendable {
    package let header: ImageHeader
    package let pixels: PixelBuffer
    /// The part of the canvas that holds pixels for good (or, for files stored in passes, the best so far).
    package let ready: PixelRectangle
    /// False for partial and for salvaged images.
    package let isComplete: Bool
    /// Which pass over the picture this is: scans of a progressive JPEG or Adam7 passes, 1 otherwise.
    package let pass: Int
    /// Pixels for each pixel of the layout: its subscriber's (features X10).
    package var scaleFactor = 1.0

    package init(header: ImageHeader, pixels: PixelBuffer, ready: PixelRectangle, isComplete: Bool, pass: Int = 1) {
        self.header = header
        self.pixels = pixels
        self.ready = ready
        self.isComplete = isComplete
        self.pass = pass
    }
}
