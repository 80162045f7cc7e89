import CCodecs
import ImgdlCore

extension DecodedImage {
    /// What a codec of the host's gave, as the caller wants to have it: in the right pixel format, turned by the orientation
    /// that `described` tells (it is as stored), and no larger than was asked for.
    package func adapted(
        to options: DecodeOptions, _ described: ImageHeader, isComplete: Bool
    ) throws(Failure) -> DecodedImage {
        try options.checkSize(width: pixels.width, height: pixels.height)
        var canvas = pixels
        if pixels.format != options.pixelFormat {
            canvas = try PixelBuffer(width: pixels.width, height: pixels.height, format: options.pixelFormat)
            codec_convert_pixels(
                pixels.bytes.assumingMemoryBound(to: UInt8.self), pixels.format.layoutValue,
                canvas.bytes.assumingMemoryBound(to: UInt8.self), canvas.format.layoutValue,
                pixels.width * pixels.height)
        }
        let upright = DecodedImage(
            header: described, pixels: canvas,
            ready: PixelRectangle(x: 0, y: 0, width: canvas.width, height: canvas.height), isComplete: isComplete,
            pass: pass)
        return try upright.turned(described.orientation, options)
    }
}

extension PixelFormat {
    fileprivate var layoutValue: Int32 {
        Int32((isBGRA ? CODEC_LAYOUT_BGRA : 0) | (isPremultiplied ? CODEC_LAYOUT_PREMULTIPLIED : 0))
    }
}
