import CCodecs
import ImgdlCore

/// WebP through libwebp. Owned by one worker at a time.
///
/// The body is kept until all of it has been decoded: libwebp reads it in place and looks back. Where EXIF is announced but
/// stands behind the pixels, the orientation, and with it width and height, are known only at the end: until then there
/// is no header and no partial image, since both would be wrong.
///
/// libwebp scales while it decodes; but it averages the colours of a lossy picture without regard to their alpha, so that
/// invisible ones would show. Those are decoded at full size and scaled here.
final class WebPDecoder: ImageDecoder {
    /// RIFF header, one chunk header, and the ten bytes that hold the size in each kind of bitstream.
    private static let headerLength = 30

    private let options: DecodeOptions
    private let body = ByteBuffer()
    private var received = 0
    private var container = WebPContainer()
    private var features: WebPBitstreamFeatures?
    private var still: WebPStill?

    private(set) var header: ImageHeader?
    private var layout: CanvasLayout?
    private var scaler: RowScaler?
    /// The turned or scaled picture; nil while it is the one that libwebp writes, or not known yet.
    private var canvas: PixelBuffer?
    private var placedRows = 0
    private var shownRows = 0

    init(_ options: DecodeOptions) { self.options = options }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        let room = container.length.map { max(0, $0 - received) } ?? bytes.count
        received += min(room, bytes.count)
        if let still, still.isComplete, layout != nil { return body.release() }
        try body.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(room)))
        container.walk(body.bytes)
        try readFeatures()
        try findOrientation()
        try decode()
    }

    func finish() throws(Failure) -> DecodedImage {
        guard let features, let length = container.length, received >= length else {
            throw Failure(.truncated, "the WebP ends after \(received) of \(container.length ?? 12) bytes")
        }
        if features.has_animation != 0 { return try firstFrame(features) }
        guard container.bitstreamStart != nil else { throw Failure(.badImageData, "the WebP has no picture in it") }
        try settle(container.orientation ?? 1)
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
        guard layout != nil, finishedRows > shownRows else { return nil }
        shownRows = finishedRows
        return image(isComplete: false)
    }

    func salvagedImage() -> DecodedImage? {
        guard let features else { return nil }
        if features.has_animation != 0 { return salvagedFrame(features) }
        guard container.bitstreamStart != nil else { return nil }
        // More rows may be in bytes that were waiting for their batch.
        try? settle(container.orientation ?? 1)
        try? openedStill(features).update(body.bytes)
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
        guard !isAnimated else { return }
        let (width, height) = (Int(features.width), Int(features.height))
        if layout.isScaled(width: width, height: height), !libwebpScales(features) {
            // The rows that come are premultiplied already where that was asked for.
            let alpha = options.pixelFormat.isPremultiplied ? CODEC_ALPHA_PREMULTIPLIED : CODEC_ALPHA_STRAIGHT
            let scaler = try RowScaler(width: width, height: height, to: layout, from: alpha, options.pixelFormat)
            let pixels = try layout.makeCanvas(options.pixelFormat)
            scaler.begin(on: pixels)
            canvas = pixels
            self.scaler = scaler
        } else if layout.orientation != .upright {
            canvas = try layout.makeCanvas(options.pixelFormat)
        }
    }

    private func layout(_ features: WebPBitstreamFeatures, _ orientation: Orientation) -> CanvasLayout {
        CanvasLayout(width: Int(features.width), height: Int(features.height), orientation: orientation, options)
    }

    private func libwebpScales(_ features: WebPBitstreamFeatures) -> Bool {
        container.isLossless || features.has_alpha == 0
    }

    private func openedStill(_ features: WebPBitstreamFeatures) throws(Failure) -> WebPStill {
        if let still { return still }
        let layout = layout ?? layout(features, .upright)
        let scales = libwebpScales(features)
        let opened = try WebPStill(
            features, isLossless: container.isLossless, width: scales ? layout.storedWidth : Int(features.width),
            height: scales ? layout.storedHeight : Int(features.height), options.pixelFormat)
        still = opened
        return opened
    }

    private func decode() throws(Failure) {
        guard let features, features.has_animation == 0, let start = container.bitstreamStart else { return }
        // Before the orientation is known, only a size that does not depend on it.
        let (upright, lying) = (layout(features, .upright), layout(features, .transposed))
        guard layout != nil || !lying.isScaled(width: upright.storedWidth, height: upright.storedHeight) else { return }
        let isWhole = container.length.map { received >= $0 } ?? false
        try openedStill(features).offer(body.bytes, from: start, isWhole: isWhole, length: container.length ?? 0)
        try placeRows()
    }

    private func placeRows() throws(Failure) {
        guard let still, let canvas, let layout, still.rows > placedRows else { return }
        let source = still.pixels.bytes.advanced(by: placedRows * still.pixels.stride)
        if let scaler {
            scaler.push(source, rows: still.rows - placedRows)
            placedRows = still.rows
            return
        }
        codec_place_rows(
            source.assumingMemoryBound(to: UInt8.self), layout.storedWidth, placedRows, still.rows - placedRows,
            layout.placement(on: canvas), 0)
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

    private func firstFrame(_ features: WebPBitstreamFeatures) throws(Failure) -> DecodedImage {
        let frame = try WebPAnimation.firstFrame(of: body.bytes, features, options.pixelFormat)
        return try animated(frame, features, isComplete: true)
    }

    private func salvagedFrame(_ features: WebPBitstreamFeatures) -> DecodedImage? {
        guard let frame = WebPAnimation.salvagedFrame(of: body.bytes, features, options.pixelFormat) else { return nil }
        return try? animated(frame, features, isComplete: false)
    }

    private func animated(
        _ frame: WebPAnimation.Frame, _ features: WebPBitstreamFeatures, isComplete: Bool
    ) throws(Failure) -> DecodedImage {
        let upright = ImageHeader(
            format: .webp, width: frame.pixels.width, height: frame.pixels.height, frameCount: frame.count,
            hasAlpha: features.has_alpha != 0, isProgressive: false)
        let image = DecodedImage(
            header: upright, pixels: frame.pixels,
            ready: PixelRectangle(x: 0, y: 0, width: frame.pixels.width, height: frame.rows), isComplete: isComplete)
        let turned = try image.turned(container.orientation ?? 1, options)
        header = turned.header
        return turned
    }
}
