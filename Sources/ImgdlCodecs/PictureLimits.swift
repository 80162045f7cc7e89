import ImgdlCore

extension DecodeOptions {
    /// Judges a header before anything of that size is allocated.
    package func checkSize(width: Int, height: Int) throws(Failure) {
        guard width > 0, height > 0 else { throw Failure(.badImageData, "the picture is \(width) × \(height) pixels") }
        let (pixels, overflow) = UInt64(width).multipliedReportingOverflow(by: UInt64(height))
        guard !overflow, pixels <= maximumPixels else {
            throw Failure(
                .pixelLimit, "the picture is \(width) × \(height) pixels, more than the limit of \(maximumPixels) pixels")
        }
    }
    /// Judges a frame more before it has a canvas: all frames that are decoded lie in memory together.
    func checkFrame(number: Int, width: Int, height: Int) throws(Failure) {
        guard decodesAllFrames else { return }
        guard number <= maximumFrames else {
            throw Failure(.frameLimit, "the animation has more than the limit of \(maximumFrames) frames")
        }
        let (pixels, overflow) = UInt64(width * height).multipliedReportingOverflow(by: UInt64(number))
        guard !overflow, pixels <= maximumPixels else {
            throw Failure(
                .pixelLimit,
                "\(number) frames of \(width) × \(height) pixels are more than the limit of \(maximumPixels) pixels")
        }
    }
}
