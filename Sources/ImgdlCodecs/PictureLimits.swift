import ImgdlCore

extension DecodeOptions {
    /// Judges a header before anything of that size is allocated.
    package func checkSize(width: Int, height: Int) throws(Failure) {
        guard width > 0, height > 0 else { throw Failure(.badImageData, "the picture is \(width) × \(height) pixels") }
        if let side = maximumSide, max(width, height) > side {
            throw Failure(
                .sizeLimit, "the picture is \(width) × \(height) pixels, and no side may have more than \(side)")
        }
        let pixels = CheckedNumber(width) * CheckedNumber(height)
        guard pixels?.within(0...Int64(clamping: maximumPixels)) != nil else {
            throw Failure(
                .pixelLimit,
                "the picture is \(width) × \(height) pixels, more than the limit of \(maximumPixels) pixels")
        }
    }

    /// libpng takes a row in one go, which cannot be stopped: a megapixel of 16-bit colours with alpha takes up to 30 ms.
    /// A limit of the caller's on a side allows more.
    func checkRow(width: Int, bytesPerPixel: Int) throws(Failure) {
        let most = Self.mostRowBytes / bytesPerPixel
        guard maximumSide == nil, width > most else { return }
        throw Failure(
            .sizeLimit,
            "a row of the PNG has \(width) pixels, and without max_side no more than \(most) of this kind are decoded")
    }

    private static var mostRowBytes: Int { 8 << 20 }

    /// Judges a frame more before it has a canvas: all frames that are decoded lie in memory together.
    func checkFrame(number: Int, width: Int, height: Int) throws(Failure) {
        guard decodesAllFrames else { return }
        guard number <= maximumFrames else {
            throw Failure(.frameLimit, "the animation has more than the limit of \(maximumFrames) frames")
        }
        let pixels = CheckedNumber(width) * CheckedNumber(height) * CheckedNumber(number)
        let most = maximumAnimationPixels ?? maximumPixels
        guard pixels?.within(0...Int64(clamping: most)) != nil else {
            throw Failure(
                .animationLimit,
                "\(number) frames of \(width) × \(height) pixels are more than the limit of \(most) pixels for all frames"
            )
        }
    }

    /// Judges what decoding will take, before it is allocated: canvases of so many pixels as the caller wants them, and
    /// bytes of the codec's own. More than 64 bits can count is over any limit.
    func checkMemory(canvas: CanvasLayout, count: Int = 1, codec: CheckedNumber? = 0) throws(Failure) {
        guard let most = maximumMemoryBytes else { return }
        let row = CheckedNumber(canvas.width) * CheckedNumber(pixelFormat.bytesPerPixel)
        let bytes = row * CheckedNumber(canvas.height) * CheckedNumber(count) + codec
        guard bytes?.within(0...Int64(clamping: most)) == nil else { return }
        let about = bytes.map { "about \($0)" } ?? "more than \(Int64.max)"
        throw Failure(
            .memoryLimit,
            "decoding \(canvas.width) × \(canvas.height) pixels takes \(about) bytes of memory, "
                + "more than the limit of \(most)")
    }

    func metadataFailure(_ bytes: Int) -> Failure {
        Failure(
            .metadataLimit,
            "the picture has \(bytes) bytes of EXIF and profile, more than the limit of \(maximumMetadataBytes ?? 0)")
    }
}
