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
    /// bytes of the codec's own. Gives their sum. More than 64 bits can count is over any limit.
    @discardableResult
    func checkMemory(
        canvas: CanvasLayout, count: Int = 1, codec: CheckedNumber? = 0
    ) throws(Failure) -> Int64 {
        try checkMemory(
            width: canvas.width, height: canvas.height, bytes: bytes(of: canvas) * CheckedNumber(count) + codec)
    }

    @discardableResult
    func checkMemory(width: Int, height: Int, bytes: CheckedNumber?) throws(Failure) -> Int64 {
        guard let most = maximumMemoryBytes, bytes?.within(0...Int64(clamping: most)) == nil else {
            return bytes?.length ?? .max
        }
        let about = bytes.map { "about \($0)" } ?? "more than \(Int64.max)"
        throw Failure(
            .memoryLimit,
            "decoding \(width) × \(height) pixels takes \(about) bytes of memory, more than the limit of \(most)")
    }

    /// Judges EXIF and a profile before they are held.
    func checkMemory(ofMetadata bytes: CheckedNumber?) throws(Failure) {
        guard let most = maximumMemoryBytes, bytes?.within(0...Int64(clamping: most)) == nil else { return }
        let about = bytes.map { "about \($0)" } ?? "more than \(Int64.max)"
        throw Failure(
            .memoryLimit,
            "EXIF and the colour profile take \(about) bytes of memory, more than the limit of \(most)")
    }

    /// How many such canvases there may be at a time besides bytes of the codec's own. The picture takes one; for a partial
    /// image that does not share it there has to be room for another.
    func canvasRoom(_ canvas: CanvasLayout, codec: CheckedNumber?) -> Int {
        guard let left = memoryLeft(beside: canvas, count: 0, codec: codec) else { return .max }
        guard let each = bytes(of: canvas)?.within(1...Int64.max) else { return 0 }
        return Int(clamping: left / UInt64(each))
    }

    /// Of what is allowed; nil: there is no limit.
    func memoryLeft(beside canvas: CanvasLayout, count: Int, codec: CheckedNumber?) -> UInt64? {
        guard let most = maximumMemoryBytes else { return nil }
        let taken = bytes(of: canvas) * CheckedNumber(count) + codec
        return (CheckedNumber(Int64(clamping: most)) - taken)?.length.map { UInt64($0) } ?? 0
    }

    func bytes(of canvas: CanvasLayout) -> CheckedNumber? {
        bytes(width: canvas.width, height: canvas.height, pixelFormat)
    }

    /// Of a canvas: what is larger than a huge page is rounded up to some.
    func bytes(width: Int, height: Int, _ format: PixelFormat) -> CheckedNumber? {
        let pixels = CheckedNumber(width) * CheckedNumber(height) * CheckedNumber(format.bytesPerPixel)
        guard allocator == nil, let exact = pixels?.length, exact > Self.hugePage else { return pixels }
        let beyond = exact % Self.hugePage
        return CheckedNumber(exact) + (beyond > 0 ? CheckedNumber(Self.hugePage - beyond) : 0)
    }

    private static var hugePage: Int64 { 2 << 20 }

    /// `profile`: what it is called.
    func metadataFailure(_ bytes: CheckedNumber?, profile: String = "profile") -> Failure {
        let number = bytes.map { "\($0)" } ?? "more than \(Int64.max)"
        return Failure(
            .metadataLimit,
            "the picture has \(number) bytes of EXIF and \(profile), more than the limit of \(maximumMetadataBytes ?? 0)"
        )
    }
}
