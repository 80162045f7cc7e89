import CCodecs
import ImgdlCore

extension DecodedImage {
    /// What a codec of the host's gave, as the caller wants to have it: the right pixel format, turned by `orientation`
    /// (it is as stored), no larger than was asked for.
    package func adapted(to options: DecodeOptions, _ described: ImageHeader, isComplete: Bool) throws(Failure) -> DecodedImage {
        try options.checkSize(width: pixels.width, height: pixels.height)
        try options.checkAdaptable(width: pixels.width, height: pixels.height)
        var header = described
        header.orientation = 1
        header.width = pixels.width
        header.height = pixels.height
        var canvas = pixels
        if pixels.format != options.pixelFormat {
            canvas = try PixelBuffer(width: pixels.width, height: pixels.height, format: options.pixelFormat)
            codec_convert_pixels(
                pixels.bytes.assumingMemoryBound(to: UInt8.self), pixels.format.codecValue,
                canvas.bytes.assumingMemoryBound(to: UInt8.self), canvas.format.codecValue, pixels.width * pixels.height)
        }
        let upright = DecodedImage(
            header: header, pixels: canvas,
            ready: isComplete ? PixelRectangle(x: 0, y: 0, width: canvas.width, height: canvas.height) : ready,
            isComplete: isComplete, pass: pass)
        return try upright.turned(described.orientation, applied: options.appliesOrientation)
    }
}

extension DecodeOptions {
    /// Scaling what a codec gave in full is not there yet: a result that is too large is refused, not handed over.
    fileprivate func checkAdaptable(width: Int, height: Int) throws(Failure) {
        let tooWide = targetWidth > 0 && width > targetWidth
        let tooHigh = targetHeight > 0 && height > targetHeight
        if tooWide || tooHigh || maximumOutputBytes.map({ UInt64(width * height * 4) > $0 }) ?? false {
            throw Failure(.unsupportedOption, "the codec gave \(width) × \(height) pixels, which is more than was asked for")
        }
    }
}

extension PixelFormat {
    fileprivate var codecValue: Int32 { (isBGRA ? 1 : 0) | (isPremultiplied ? 2 : 0) }
}
