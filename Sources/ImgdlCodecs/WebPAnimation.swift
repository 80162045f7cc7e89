import CCodecs
import ImgdlCore

/// An animated WebP: each frame through an incremental decoder of its own, and composed as libwebp's WebPAnimDecoder
/// does, to the bit. Frames that nobody asked for are walked over, their headers checked.
final class WebPAnimation {
    private let options: DecodeOptions
    private let clock: DecodeClock
    private let width: Int
    private let height: Int
    private var reader: WebPFrameReader
    private var canvas: FrameCanvas
    private(set) var colours = Colours()
    /// What the first frame and all others come as: the caller's format, unless they are converted at the end.
    private var format: PixelFormat {
        colours.conversion == nil ? options.pixelFormat.working : options.pixelFormat.straight
    }
    private var isFinal: Bool {
        let layout = CanvasLayout(width: width, height: height, orientation: .upright, options)
        return !layout.isScaled(width: width, height: height) && options.isFinal(format, colours.conversion)
    }

    /// For partial images, which have canvases of their own where frames are not given out as they are.
    private(set) var hasRoomForPart = false
    private(set) var memoryDemand: Int64 = 0

    /// What is known of the file so far.
    private(set) var frameCount = 0
    private(set) var loopCount = 1
    private(set) var orientation: Int?
    private var hasLoops = false

    private var frame: WebPFrameReader.Frame?
    private var length = 0
    /// The frame's bytes, from its first chunk on: until it is decoded, or its header read.
    private let body = ByteBuffer()
    private var received = 0
    private var features: WebPBitstreamFeatures?
    /// libwebp looks for the picture from the frame's first chunk on, each time: not before so many bytes are there.
    private var enough = 0
    /// How often it has looked.
    private(set) var looks = 0
    private var still: WebPStill?

    /// The frame before, which decides what this one is drawn over.
    private var last: WebPFrameReader.Frame?
    private var wasKey = false

    /// The first frame as the caller wants it but upright, like all frames, and its rows that are final.
    private(set) var first: PixelBuffer?
    private(set) var readyRows = 0
    private var placedRows = 0
    private(set) var frames: [AnimationFrame] = []

    init(width: Int, height: Int, _ options: DecodeOptions, _ clock: DecodeClock) {
        (self.width, self.height, self.options, self.clock) = (width, height, options, clock)
        reader = WebPFrameReader(options)
        canvas = FrameCanvas(width: width, height: height, format: options.pixelFormat.straight)
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while let event = try reader.next(&rest) {
            // Of libwebp's state for a frame.
            try clock.check(after: 1024)
            switch event {
            case .loops(let plays): (loopCount, hasLoops) = (plays, true)
            case .exif(let data): orientation = orientation ?? EXIFReader.orientation(of: data)
            case .profile(let profile): try colours.found(profile, CODEC_SAMPLES_COLOURS, options, clock)
            case .frame(let frame, let length): try begin(frame, length)
            case .data(let data): try read(data)
            case .frameEnd: try endFrame()
            }
        }
    }

    /// The file ends here, by its own header.
    func end() throws(Failure) {
        guard reader.isBetweenChunks, frameCount > 0 else { throw broken("ends within a chunk, or has none") }
    }

    /// More rows may be in bytes that were waiting for their batch.
    func salvage() {
        guard frameCount == 1, let still else { return }
        still.salvage(body.bytes)
        try? placeFirst()
    }

    // MARK: One frame

    private func begin(_ frame: WebPFrameReader.Frame, _ length: Int) throws(Failure) {
        frameCount += 1
        guard hasLoops else { throw broken("comes ahead of the ANIM chunk") }
        guard frame.rectangle.isWithin(width: width, height: height) else { throw broken("lies outside the canvas") }
        try options.checkFrame(number: frameCount, width: width, height: height)
        (self.frame, self.length, received, features, still, enough) = (frame, length, 0, nil, nil, 0)
        try checkMemory(frame, libwebp: 0)
        body.removeAll()
        if frameCount == 1 {
            first = try PixelBuffer(
                width: width, height: height, format: format, allocator: isFinal ? options.allocator : nil, clock)
        }
    }

    /// Each frame has a canvas of the file's size, and another one where that is not what is given out; those that are
    /// multiplied by alpha at their end are composed on two others. `libwebp`: bytes a pixel of its own.
    private func checkMemory(_ frame: WebPFrameReader.Frame, libwebp: Int) throws(Failure) {
        let count = options.decodesAllFrames ? frameCount : 1
        let composing = options.decodesAllFrames && format.isPremultiplied ? 2 : 0
        let area = CheckedNumber(frame.rectangle.width) * CheckedNumber(frame.rectangle.height)
        let canvases = options.bytes(width: width, height: height, format) * CheckedNumber(count + composing)
        let held = CheckedNumber(length) + area * CheckedNumber(4 + libwebp) + canvases + colours.memory
        let layout = CanvasLayout(width: width, height: height, orientation: .upright, options)
        let taken = try options.checkMemory(canvas: layout, count: isFinal ? 0 : count, codec: held)
        memoryDemand = max(memoryDemand, taken - Int64(colours.description.profile?.bytes.count ?? 0))
        hasRoomForPart = isFinal || options.canvasRoom(layout, codec: held) > count
    }

    private var isDecoded: Bool { frameCount == 1 || options.decodesAllFrames }

    private func read(_ data: UnsafeRawBufferPointer) throws(Failure) {
        received += data.count
        guard isDecoded || features == nil else { return }
        try body.append(data)
        try readFeatures()
        guard isDecoded, let still else { return }
        try still.offer(body.bytes, from: 0, isWhole: false)
        if frameCount == 1 { try placeFirst() }
    }

    private func readFeatures() throws(Failure) {
        guard body.count >= enough || received >= length else { return }
        try look()
    }

    /// Tells what is wrong with what has come of a frame that nothing follows.
    func judge() throws(Failure) {
        try look()
        try still?.update(body.bytes)
    }

    /// At all that is there.
    private func look() throws(Failure) {
        guard features == nil, !body.isEmpty, let frame else { return }
        enough = body.count + body.count / 16 + 1
        looks += 1
        var found = WebPBitstreamFeatures()
        let start = body.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let status = WebPGetFeatures(start, body.count, &found)
        if status == VP8_STATUS_NOT_ENOUGH_DATA { return }
        try WebPStill.check(status)
        let area = frame.rectangle
        guard found.width == area.width, found.height == area.height, found.has_animation == 0 else {
            throw broken("has another size than it says")
        }
        features = found
        let isLossless = body.bytes.starts(with: "VP8L".utf8)
        if isDecoded {
            try checkMemory(
                frame, libwebp: WebPStill.bytesPerPixel(isLossless: isLossless, hasAlpha: found.has_alpha != 0))
            still = try WebPStill(
                found, isLossless: isLossless, length: length, width: Int(found.width), height: Int(found.height),
                options.pixelFormat.straight, nil, clock)
        } else {
            body.removeAll()
        }
    }

    private func placeFirst() throws(Failure) {
        guard let still, let frame, let first, still.rows > placedRows else { return }
        var placement = shownLayout.placement(on: first, nil, clock)
        placement.origin += frame.rectangle.x * placement.step_x + frame.rectangle.y * placement.step_y
        let source = still.pixels.bytes.advanced(by: placedRows * still.pixels.stride)
        codec_place_rows(
            source.assumingMemoryBound(to: UInt8.self), still.pixels.width, placedRows, still.rows - placedRows,
            placement, format.isPremultiplied ? 1 : 0)
        try clock.check()
        placedRows = still.rows
        readyRows = frame.rectangle.y + placedRows
    }

    private func endFrame() throws(Failure) {
        guard let frame else { return }
        guard let features else { throw broken("has no picture in it") }
        guard isDecoded, let still else { return }
        try still.update(body.bytes)
        if frameCount == 1 { try placeFirst() }
        guard still.isComplete else { throw broken("ends after \(still.rows) of \(frame.rectangle.height) rows") }
        body.removeAll()
        self.still = nil
        self.frame = nil
        if frameCount == 1, let first {
            readyRows = height
            if options.decodesAllFrames {
                try compose(frame, still.pixels, features, format.isPremultiplied ? nil : first)
            } else {
                frames = [AnimationFrame(pixels: first, milliseconds: milliseconds(frame))]
            }
        } else {
            try compose(frame, still.pixels, features, nil)
        }
    }

    /// `drawn` is the canvas where the frame is on it already.
    private func compose(
        _ frame: WebPFrameReader.Frame, _ pixels: PixelBuffer, _ features: WebPBitstreamFeatures, _ drawn: PixelBuffer?
    ) throws(Failure) {
        let isKey = isKey(frame, hasAlpha: features.has_alpha != 0)
        if isKey { canvas = FrameCanvas(width: canvas.width, height: canvas.height, format: canvas.format) }
        let work: PixelBuffer
        if let drawn {
            work = drawn
        } else {
            let isShown = isFinal && !format.isPremultiplied && frameCount > 1
            work = try canvas.next(isShown ? options.allocator : nil, clock)
            try draw(pixels, frame, on: work, blends: frame.blends && !isKey)
        }
        canvas.dispose(work, frame.rectangle, frame.disposal)
        (last, wasKey) = (frame, isKey)
        let shown = frameCount == 1 ? first ?? work : try uprightFrame(work)
        frames.append(AnimationFrame(pixels: shown, milliseconds: milliseconds(frame)))
    }

    /// Multiplied by alpha, where that is not left to the end.
    private func uprightFrame(_ work: PixelBuffer) throws(Failure) -> PixelBuffer {
        guard format != work.format else { return work }
        let frame = try PixelBuffer(
            width: width, height: height, format: format, allocator: isFinal ? options.allocator : nil,
            isCleared: false, clock)
        work.place(rows: height, shownLayout, on: frame, nil, clock)
        try clock.check()
        return frame
    }

    /// Frames are turned and scaled together, at the end.
    private var shownLayout: CanvasLayout {
        CanvasLayout(storedWidth: width, storedHeight: height, orientation: .upright)
    }

    private func milliseconds(_ frame: WebPFrameReader.Frame) -> Int {
        AnimationFrame.shown(milliseconds: frame.milliseconds)
    }

    /// Nothing of the frames before is seen through this one.
    private func isKey(_ frame: WebPFrameReader.Frame, hasAlpha: Bool) -> Bool {
        func isFull(_ frame: WebPFrameReader.Frame) -> Bool {
            frame.rectangle.covers(width: canvas.width, height: canvas.height)
        }
        guard let last else { return true }
        if !hasAlpha || !frame.blends, isFull(frame) { return true }
        return last.disposal == .background && (isFull(last) || wasKey)
    }

    private func draw(
        _ pixels: PixelBuffer, _ frame: WebPFrameReader.Frame, on canvas: PixelBuffer, blends: Bool
    ) throws(Failure) {
        let area = frame.rectangle
        // Where the frame before was cleared there is nothing to blend with: libwebp leaves these pixels as they are.
        let cleared = last?.disposal == .background ? last?.rectangle : nil
        for y in 0..<area.height {
            try clock.check(after: area.width)
            let from = pixels.bytes.advanced(by: y * pixels.stride).assumingMemoryBound(to: UInt8.self)
            let to = canvas.bytes.advanced(by: (area.y + y) * canvas.stride + area.x * 4)
                .assumingMemoryBound(to: UInt8.self)
            guard blends else {
                UnsafeMutableRawPointer(to).copyMemory(from: from, byteCount: pixels.stride)
                continue
            }
            var raw = 0..<0
            if let cleared, (cleared.y..<cleared.y + cleared.height).contains(area.y + y) {
                let columns = cleared.x - area.x..<cleared.x + cleared.width - area.x
                raw = columns.clamped(to: 0..<area.width)
            }
            guard !raw.isEmpty else {
                codec_blend_over_webp(to, from, area.width)
                continue
            }
            codec_blend_over_webp(to, from, raw.lowerBound)
            UnsafeMutableRawPointer(to + 4 * raw.lowerBound)
                .copyMemory(from: from + 4 * raw.lowerBound, byteCount: 4 * raw.count)
            codec_blend_over_webp(to + 4 * raw.upperBound, from + 4 * raw.upperBound, area.width - raw.upperBound)
        }
    }

    private func broken(_ words: String) -> Failure {
        Failure(.badImageData, "frame \(frameCount) of the WebP \(words)")
    }
}
