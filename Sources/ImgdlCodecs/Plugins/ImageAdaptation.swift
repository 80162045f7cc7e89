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
            // Formats of another size are made of straight RGBA, which is done last.
            let format = options.pixelFormat.bytesPerPixel == 4 ? options.pixelFormat : .rgba8
            if format != pixels.format { canvas = try pixels.inFourBytes(nil).converted(to: format) }
        }
        let upright = DecodedImage(
            header: described, pixels: canvas,
            ready: PixelRectangle(x: 0, y: 0, width: canvas.width, height: canvas.height), isComplete: isComplete,
            pass: pass)
        return try upright.turned(described.orientation, options, isDeep: canvas.format == .rgba16, nil)
    }
}

extension PixelBuffer {
    /// Four bytes a pixel, and four bytes.
    fileprivate func converted(to format: PixelFormat) throws(Failure) -> PixelBuffer {
        let canvas = try PixelBuffer(width: width, height: height, format: format, isCleared: false, nil)
        for row in 0..<height {
            codec_convert_pixels(
                (bytes + row * stride).assumingMemoryBound(to: UInt8.self), self.format.layoutValue,
                (canvas.bytes + row * canvas.stride).assumingMemoryBound(to: UInt8.self), format.layoutValue, width)
        }
        return canvas
    }
}

extension PixelFormat {
    fileprivate var layoutValue: Int32 {
        Int32((isBGRA ? CODEC_LAYOUT_BGRA : 0) | (isPremultiplied ? CODEC_LAYOUT_PREMULTIPLIED : 0))
    }
}
