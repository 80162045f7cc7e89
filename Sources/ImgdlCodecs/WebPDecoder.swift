import CCodecs
import ImgdlCore

/// WebP through libwebp. Owned by one worker at a time.
///
/// The picture's bytes are kept until all of it has been decoded: libwebp reads them in place and looks back. Where EXIF is
/// announced but stands behind the pixels, the orientation, and with it width and height, are known only at the end: until
/// then there is no header and no partial image, since both would be wrong.
///
/// libwebp scales while it decodes. Lossy pictures for which that is not as good as an average of the pixels are decoded at
/// full size and scaled here (`libwebpScales`).
final class WebPDecoder: FormatDecoder {
    /// RIFF header, one chunk header, and the ten bytes that hold the size in each kind of bitstream.
    private static let headerLength = 30

    private let options: DecodeOptions
    private let clock: DecodeClock
    private var container: WebPContainer
    private var body: ByteBuffer { container.body }
    private var ownColours = Colours()
    var colours: Colours { animation?.colours ?? ownColours }
    private var features: WebPBitstreamFeatures?
    private var still: WebPStill?
    private var animation: WebPAnimation?

    /// A call of libwebp cannot be stopped: of these at the most detail there is one takes 20 ms. In smaller pieces lossless
    /// pictures take a third longer.
    static var piece: Int { 256 * 1024 }

    private(set) var header: ImageHeader?
    private var stillDemand: Int64 = 0
    var memoryDemand: Int64 { animation?.memoryDemand ?? stillDemand }
    /// A lossless one's bit for it is a hint, and VP8X can be wrong.
    var mayHaveAlpha: Bool {
        animation != nil || container.isLossless || container.hasAlphaChunk || features?.has_alpha != 0
    }
    private var layout: CanvasLayout?
    private var scaler: RowScaler?
    /// The turned or scaled picture; nil while it is the one that libwebp writes, or not known yet.
    private var canvas: PixelBuffer?
    private var isPrepared = false
    private var hasReadProfile = false
    private var placedRows = 0
    private var shownRows = 0
    private var shownFrames = 1

    init(_ options: DecodeOptions, _ clock: DecodeClock) {
        self.options = options
        self.clock = clock
        container = WebPContainer(options)
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        if let animation { return try feed(container.count(bytes), to: animation) }
        if let still, still.isComplete, layout != nil {
            try container.feed(bytes)
            return body.release()
        }
        // What came before a chunk that is refused is looked at first, as it would be in pieces.
        var refusal: Failure?
        do throws(Failure) { try container.feed(bytes) } catch { refusal = error }
        try advance()
        if let refusal { throw refusal }
    }

    private func advance() throws(Failure) {
        try readFeatures()
        if let features, features.has_animation != 0 { return try beginAnimation(features) }
        try findOrientation()
        try decode()
    }

    /// There is nothing behind its length to be missing.
    func finish(_: BodyEnd) throws(Failure) -> DecodedImage {
        try animation?.judge()
        guard let features, container.isWhole else {
            try still?.update(body.bytes)
            throw Failure(.truncated, "the WebP ends after \(container.received) of \(container.length ?? 12) bytes")
        }
        if let animation {
            try animation.end()
            guard let image = try animated(animation, isComplete: true) else {
                throw Failure(.badImageData, "the WebP has no pixels")
            }
            return image
        }
        guard container.bitstreamStart != nil else { throw Failure(.badImageData, "the WebP has no picture in it") }
        try settle(container.orientation ?? 1)
        try prepare()
        let still = try openedStill(features)
        try still.update(body.bytes)
        try placeRows()
        guard still.isComplete else {
            throw Failure(.badImageData, "the WebP's data ends after \(storedRows(still)) of \(features.height) rows")
        }
        guard let image = image(isComplete: true) else { throw Failure(.badImageData, "the WebP has no pixels") }
        return image
    }

    func partialImage() -> DecodedImage? {
        if let animation, layout != nil {
            guard animation.readyRows > shownRows || animation.frames.count > shownFrames, animation.hasRoomForPart
            else { return nil }
            (shownRows, shownFrames) = (animation.readyRows, max(1, animation.frames.count))
            return try? animated(animation, isComplete: false)
        }
        guard layout != nil, finishedRows > shownRows else { return nil }
        shownRows = finishedRows
        return image(isComplete: false)
    }

    func salvagedImage() -> DecodedImage? {
        guard let features else { return nil }
        if let animation {
            animation.salvage()
            return try? animated(animation, isComplete: false)
        }
        guard container.bitstreamStart != nil else { return nil }
        // More rows may be in bytes that were waiting for their batch; none of a picture that was refused for its size.
        do throws(Failure) {
            try settle(container.orientation ?? 1)
            try prepare()
            try openedStill(features).salvage(body.bytes)
        } catch {}
        try? placeRows()
        return image(isComplete: false)
    }

    // MARK: Bytes in

    private func readFeatures() throws(Failure) {
        guard features == nil, !body.isEmpty else { return }
        // Shown more than a header, libwebp would judge chunks behind it too, but only when they are there already.
        var found = WebPBitstreamFeatures()
        let header = body.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let status = WebPGetFeatures(header, min(body.count, Self.headerLength), &found)
        if status == VP8_STATUS_NOT_ENOUGH_DATA { return }
        try WebPStill.check(status)
        try options.checkSize(width: Int(found.width), height: Int(found.height))
        features = found
    }

    private func findOrientation() throws(Failure) {
        guard features != nil, layout == nil else { return }
        if container.announcesEXIF {
            guard let orientation = container.orientation else { return }
            try settle(orientation)
        } else {
            try settle(1)
        }
    }

    /// From here on it is known how the picture lies.
    private func settle(_ stored: Int) throws(Failure) {
        guard let features, layout == nil else { return }
        let layout = layout(features, options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright)
        let isAnimated = features.has_animation != 0
        header = ImageHeader(
            format: .webp, width: layout.width, height: layout.height, orientation: stored,
            frameCount: isAnimated ? 0 : 1, hasAlpha: features.has_alpha != 0, isProgressive: false)
        self.layout = layout
    }

    /// What the pixels that are about to come need; the profile stands ahead of them.
    private func prepare() throws(Failure) {
        guard let features, let layout, !isPrepared, container.bitstreamStart != nil else { return }
        try readProfile()
        try checkMemory(features, layout)
        // Not before: what is over a limit is not decoded to be salvaged either.
        isPrepared = true
        if isScaledHere(features, layout) {
            // The rows that come are premultiplied already where that was asked for.
            let alpha = stillFormat.isPremultiplied ? CODEC_ALPHA_PREMULTIPLIED : CODEC_ALPHA_STRAIGHT
            let scaler = try RowScaler(
                width: Int(features.width), height: Int(features.height), to: layout, from: alpha, options.pixelFormat)
            let pixels = try options.makeCanvas(layout, clock)
            scaler.begin(on: pixels, ownColours.conversion, clock)
            canvas = pixels
            self.scaler = scaler
        } else if layout.orientation != .upright || !isFinal || still != nil && options.allocator != nil {
            canvas = try options.makeCanvas(layout, clock)
        }
    }

    /// Before it is known how the picture lies, `canvas` is nil: then that counts which is needed in any case.
    private func checkMemory(_ features: WebPBitstreamFeatures, _ canvas: CanvasLayout?) throws(Failure) {
        let libwebp = WebPStill.bytesPerPixel(isLossless: container.isLossless, hasAlpha: features.has_alpha != 0)
        let pixels = CheckedNumber(Int(features.width)) * CheckedNumber(Int(features.height))
        let target = canvas ?? layout(features, .upright)
        let decoded =
            libwebpScales(features, target) ? CheckedNumber(target.width) * CheckedNumber(target.height) : pixels
        let isGivenOut = target.orientation == .upright && isFinal && !isScaledHere(features, target)
        // The profile is a part of that length.
        let length = CheckedNumber(container.length ?? 0) + ownColours.copied
        let held = length + pixels * CheckedNumber(libwebp) + (isGivenOut && canvas != nil ? 0 : decoded * 4)
        stillDemand = max(
            stillDemand, try options.checkMemory(canvas: target, count: canvas == nil ? 0 : 1, codec: held))
    }

    /// And not by libwebp.
    private func isScaledHere(_ features: WebPBitstreamFeatures, _ layout: CanvasLayout) -> Bool {
        layout.isScaled(width: Int(features.width), height: Int(features.height)) && !libwebpScales(features, layout)
    }

    private func readProfile() throws(Failure) {
        guard !hasReadProfile, container.bitstreamStart != nil else { return }
        hasReadProfile = true
        switch container.profile {
        case .held(let bytes): try ownColours.found(bytes.takeProfile(), CODEC_SAMPLES_COLOURS, options, clock)
        case .passedOver: ownColours.description.notes.insert(.unusableProfile)
        case nil: break
        }
    }

    /// What libwebp writes.
    private var stillFormat: PixelFormat {
        ownColours.conversion == nil ? options.pixelFormat.working : options.pixelFormat.straight
    }

    /// What libwebp writes can be given out, if it is upright.
    private var isFinal: Bool { options.isFinal(stillFormat, ownColours.conversion) }

    private func layout(_ features: WebPBitstreamFeatures, _ orientation: Orientation) -> CanvasLayout {
        CanvasLayout(width: Int(features.width), height: Int(features.height), orientation: orientation, options)
    }

    /// Of a lossy picture libwebp averages colours without regard to alpha, so that invisible ones would show. It scales their
    /// half as many samples for themselves: those of an odd side stand for one pixel more than there is, and those of a side
    /// that stays longer than their number lie beside their places; by a tenth of a pixel is allowed. And it bounds values
    /// behind the average: what that takes from a small picture shows, and costs little to have right.
    private func libwebpScales(_ features: WebPBitstreamFeatures, _ layout: CanvasLayout) -> Bool {
        if container.isLossless { return true }
        let (width, height) = (Int(features.width), Int(features.height))
        guard features.has_alpha == 0, width * height > CODEC_SMALL_PIXELS else { return false }
        func isExact(_ side: Int, _ shown: Int) -> Bool { side % 2 == 0 ? 5 * shown <= 3 * side : 10 * shown <= side }
        return isExact(width, layout.storedWidth) && isExact(height, layout.storedHeight)
    }

    private func openedStill(_ features: WebPBitstreamFeatures) throws(Failure) -> WebPStill {
        if let still { return still }
        try readProfile()
        if layout == nil { try checkMemory(features, nil) }
        // Before the orientation is known it is not known either whether these pixels are given out.
        let allocator = layout != nil && canvas == nil && isFinal ? options.allocator : nil
        let layout = layout ?? layout(features, .upright)
        let scales = libwebpScales(features, layout)
        let opened = try WebPStill(
            features, isLossless: container.isLossless, length: container.length ?? 0,
            width: scales ? layout.storedWidth : Int(features.width),
            height: scales ? layout.storedHeight : Int(features.height), stillFormat, allocator, clock)
        still = opened
        return opened
    }

    private func decode() throws(Failure) {
        guard let features, features.has_animation == 0, let start = container.bitstreamStart else { return }
        // Before the orientation is known, only a size that does not depend on it.
        let (upright, lying) = (layout(features, .upright), layout(features, .transposed))
        guard layout != nil || !lying.isScaled(width: upright.storedWidth, height: upright.storedHeight) else { return }
        try prepare()
        try openedStill(features).offer(body.bytes, from: start, isWhole: container.hasWholeBody)
        try placeRows()
    }

    private func placeRows() throws(Failure) {
        guard let still, let canvas, let layout, still.rows > placedRows else { return }
        if let scaler {
            let source = still.pixels.bytes.advanced(by: placedRows * still.pixels.stride)
            try scaler.push(
                source, rows: still.rows - placedRows, width: still.pixels.width, stride: still.pixels.stride, clock)
            try clock.check()
            placedRows = still.rows
            return
        }
        still.pixels.place(
            first: placedRows, rows: still.rows - placedRows, layout, on: canvas, ownColours.conversion, clock)
        try clock.check()
        placedRows = still.rows
    }

    // MARK: Pictures out

    /// On the canvas.
    private var finishedRows: Int { scaler?.rows ?? still?.rows ?? 0 }

    private func storedRows(_ still: WebPStill) -> Int {
        still.rows * Int(features?.height ?? 0) / max(1, still.pixels.height)
    }

    private func image(isComplete: Bool) -> DecodedImage? {
        guard let header, let layout, let still, finishedRows > 0 else { return nil }
        return DecodedImage(
            header: header, pixels: canvas ?? still.pixels, ready: layout.rectangle(ofRows: finishedRows),
            isComplete: isComplete)
    }

    // MARK: Animations

    /// All behind the RIFF header goes through the frames' own reader; nothing of it is kept here.
    private func beginAnimation(_ features: WebPBitstreamFeatures) throws(Failure) {
        let animation = WebPAnimation(width: Int(features.width), height: Int(features.height), options, clock)
        self.animation = animation
        defer { body.release() }
        if !container.announcesEXIF { try settle(1) }
        let chunks = UnsafeRawBufferPointer(rebasing: body.bytes.dropFirst(WebPContainer.riffHeaderLength))
        try feed(chunks, to: animation)
    }

    private func feed(_ bytes: UnsafeRawBufferPointer, to animation: WebPAnimation) throws(Failure) {
        defer { if layout == nil, let orientation = animation.orientation { try? settle(orientation) } }
        try animation.feed(bytes)
    }

    private func animated(_ animation: WebPAnimation, isComplete: Bool) throws(Failure) -> DecodedImage? {
        guard let features, let first = animation.first, animation.readyRows > 0 else { return nil }
        let isAnimated = animation.frameCount > 1
        let upright = ImageHeader(
            format: .webp, width: first.width, height: first.height,
            frameCount: isComplete ? animation.frameCount : 0, hasAlpha: features.has_alpha != 0, isProgressive: false)
        let image = DecodedImage(
            header: upright, pixels: first,
            ready: PixelRectangle(x: 0, y: 0, width: first.width, height: animation.readyRows), isComplete: isComplete,
            frames: isAnimated ? animation.frames : [], loopCount: isAnimated ? animation.loopCount : 1)
        let turned = try image.turned(animation.orientation ?? 1, options, animation.colours.conversion, clock)
        header = turned.header
        return turned
    }
}
