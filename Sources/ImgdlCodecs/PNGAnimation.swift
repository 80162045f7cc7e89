import CCodecs
import ImgdlCore

/// The animation in an APNG, as its chunks come by (PNG third edition, section 11.3.6).
///
/// A file whose animation is broken is a good picture all the same: it is shown as a still, as browsers do. But where all frames
/// are wanted nothing that was shown is taken back: behind frames that are whole, damage is a failure. Frames are decoded when
/// all are wanted, and the first where it is not the default image.
final class PNGAnimation {
    private let options: DecodeOptions
    private let clock: DecodeClock
    /// Signature and the chunks that each frame needs.
    private let setup = ByteBuffer()
    private var kept: [String] = []
    var keptBytes: Int { setup.count }
    private var width = 0
    private var height = 0
    private var canvas: FrameCanvas?

    private var isBroken = false
    /// It is broken, and no still may take the place of what was shown.
    private var hasFailed = false
    private var announced = 0
    private var plays = 0
    private var sequence = 0
    /// Frames that have begun, and the last one's control while its data comes.
    private var begun = 0
    private var control: Control?
    private var hasData = false
    private var isBehindImageData = false
    /// The default image is no frame: it is for viewers that know no animations.
    private var isImageNoFrame = false
    private var frame: PNGFrame?
    /// How frames are turned and scaled, as far as the image data's beginning tells.
    private var layout: CanvasLayout?
    private var conversion: ColourConversion?
    private var beside: CheckedNumber? = 0

    /// Bytes, with the picture itself.
    private(set) var memoryDemand: Int64 = 0

    /// Those that are whole.
    private(set) var frames: [AnimationFrame] = []
    /// What the first frame says, decoded or not.
    private(set) var firstMilliseconds = 0

    init(_ options: DecodeOptions, _ clock: DecodeClock) {
        self.options = options
        self.clock = clock
    }

    /// By what the file has said so far; 1: a still picture.
    var frameCount: Int { isBroken || announced == 0 ? 1 : announced }
    var loopCount: Int { frameCount > 1 ? plays : 1 }
    /// The first frame is shown in place of the default image.
    var hidesImage: Bool { isImageNoFrame && !isBroken }
    private var decodes: Bool {
        if isBroken { return false }
        return options.decodesAllFrames ? announced > 1 || hidesImage : hidesImage && begun <= 1
    }

    // MARK: Chunks

    /// Known when the image data begins. `beside`: bytes that the decoder of the picture itself holds, without its canvas.
    func shown(as layout: CanvasLayout, _ conversion: ColourConversion?, beside: CheckedNumber?) {
        (self.layout, self.conversion, self.beside) = (layout, conversion, beside)
    }

    /// The signature, IHDR, PLTE or tRNS, whole. One of each counts, for libpng too: every frame is given what is kept here.
    func keep(_ bytes: UnsafeRawBufferPointer, name: String) throws(Failure) {
        if name == "IHDR", let across = Self.number(bytes, 8), let down = Self.number(bytes, 12) {
            let most = Int(Int32.max)
            guard let width = across.count(upTo: most), let height = down.count(upTo: most) else {
                throw Failure(.badImageData, "the PNG is broken: it cannot be \(across) × \(down) pixels large")
            }
            (self.width, self.height) = (width, height)
            let isDeep = options.pixelFormat == .rgba16 && bytes.count > 16 && bytes[16] == 16
            canvas = FrameCanvas(
                width: width, height: height, format: isDeep ? .rgba16 : options.pixelFormat.straight)
        }
        guard !isBehindImageData, !kept.contains(name) else { return }
        kept.append(name)
        try setup.append(bytes)
    }

    /// The data of acTL, nil if it is damaged. One behind the image data does not count.
    func announce(_ bytes: UnsafeRawBufferPointer?) {
        guard !isBehindImageData else { return }
        guard let bytes, bytes.count == 8, announced == 0, let frames = Self.number(bytes, 0)?.count32, frames > 0,
            let plays = Self.number(bytes, 4)?.count32
        else { return giveUp() }
        (announced, self.plays) = (frames, plays)
    }

    /// The data of fcTL, nil if it is damaged.
    func begin(_ bytes: UnsafeRawBufferPointer?) throws(Failure) {
        guard !isBroken, !isBehindImageData || announced > 0 else { return }
        guard let bytes, advance(Self.number(bytes, 0)), let control = Control(bytes) else {
            return try fail()
        }
        try endFrame()
        let area = control.rectangle
        guard area.width > 0, area.height > 0, area.isWithin(width: width, height: height),
            isBehindImageData || begun == 0 && area.covers(width: width, height: height)
        else { return try fail() }
        begun += 1
        if begun == 1 { firstMilliseconds = control.milliseconds }
        self.control = control
        hasData = false
        guard decodes else { return }
        try checkFrame()
        if isBehindImageData { try open() }
    }

    /// An IDAT chunk begins.
    func beginImageData(length: Int) throws(Failure) {
        if !isBehindImageData {
            isBehindImageData = true
            isImageNoFrame = control == nil && announced > 0
            if control != nil, decodes {
                try checkFrame()
                try open()
            }
        }
        guard control != nil, begun == 1 else { return }
        hasData = true
        try attempt { (frame) throws(Failure) in try frame.beginData(length: length) }
    }

    /// An fdAT chunk begins; `length` is that of the image data in it.
    func beginFrameData(sequence: CheckedNumber?, length: Int) throws(Failure) {
        guard !isBroken, announced > 0 else { return }
        guard advance(sequence), isBehindImageData, control != nil else { return try fail() }
        hasData = true
        try attempt { (frame) throws(Failure) in try frame.beginData(length: length) }
    }

    /// What is in IDAT or fdAT, and its checksum.
    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        try attempt { (frame) throws(Failure) in try frame.feed(bytes) }
    }

    /// The image data is over: that of the first frame, or of a picture that is none. What follows belongs to a control.
    func endImageData() throws(Failure) { try endFrame() }

    /// IEND has come.
    func end() throws(Failure) {
        try endFrame()
        guard !isBroken, announced > 0 else { return }
        let wanted = options.decodesAllFrames ? (announced > 1 || hidesImage ? announced : 0) : hidesImage ? 1 : 0
        if begun != announced || frames.count != wanted { try fail() }
    }

    /// Whether a file that ends here, or is damaged from here on, has brought every frame that was announced.
    func hasAll(isWithinData: Bool) -> Bool {
        if hasFailed { return false }
        if isBroken || announced == 0 { return true }
        return begun == announced && (control == nil || hasData) && (frame?.isWhole ?? !isWithinData)
    }

    /// Two frames, or one that is not the default image, are an animation that may have been shown.
    private func fail() throws(Failure) {
        if options.decodesAllFrames, frames.count > (hidesImage ? 0 : 1) {
            hasFailed = true
            throw Failure(.badImageData, "the PNG is damaged behind frame \(frames.count) of its animation")
        }
        giveUp()
    }

    private func giveUp() {
        isBroken = true
        frame = nil
        control = nil
        frames = []
    }

    // MARK: Frames

    private func advance(_ number: CheckedNumber?) -> Bool {
        defer { sequence += 1 }
        return number == CheckedNumber(sequence)
    }

    private func checkFrame() throws(Failure) {
        try options.checkFrame(number: begun, width: width, height: height)
        // Before the image data no layout is known, and what is stored may be scaled.
        guard let layout else {
            try options.checkMemory(width: width, height: height, bytes: storedBytes)
            return
        }
        memoryDemand = max(memoryDemand, try options.checkMemory(canvas: layout, codec: beside + memory(layout)))
    }

    /// Of the frame that is read, as it is stored.
    private var storedBytes: CheckedNumber? {
        guard let area = control?.rectangle, let canvas else { return 0 }
        return options.bytes(width: area.width, height: area.height, canvas.format)
    }

    /// What the frames that have begun take besides the picture itself: each its canvas, and those that are not given out as
    /// they are composed, two for composing.
    func memory(_ layout: CanvasLayout) -> CheckedNumber? {
        guard decodes, begun > 0, let canvas else { return 0 }
        let composed = options.bytes(width: width, height: height, canvas.format) * 2
        let shown = options.bytes(of: layout) * CheckedNumber(begun)
        return storedBytes + shown + (isFinal(layout) ? 0 : composed)
    }

    private func isFinal(_ layout: CanvasLayout) -> Bool {
        guard let canvas else { return false }
        return !layout.isScaled(width: width, height: height) && layout.orientation == .upright
            && options.isFinal(canvas.format, conversion)
    }

    private func open() throws(Failure) {
        guard let control, let canvas else { return }
        let area = control.rectangle
        do {
            frame = try PNGFrame(setup, width: area.width, height: area.height, format: canvas.format, clock)
        } catch { try forgive(error) }
    }

    private func attempt(_ body: (PNGFrame) throws(Failure) -> Void) throws(Failure) {
        guard let frame else { return }
        do { try body(frame) } catch { try forgive(error) }
    }

    private func forgive(_ failure: Failure) throws(Failure) {
        guard failure.code == .badImageData else { throw failure }
        try fail()
    }

    private func endFrame() throws(Failure) {
        guard let ended = control else { return }
        control = nil
        guard hasData else { return try fail() }
        try attempt { (frame) throws(Failure) in try frame.finish() }
        guard let frame, let layout, var canvas else { return }
        self.frame = nil
        let pixels = try canvas.next(isFinal(layout) ? options.allocator : nil, clock)
        // Over nothing a frame is as it is stored, also where it is transparent: so is the picture itself.
        let blends = ended.blends && !frames.isEmpty
        try frame.pixels.draw(on: pixels, ended.rectangle, blends: blends, clock)
        canvas.dispose(pixels, ended.rectangle, ended.disposal)
        self.canvas = canvas
        frames.append(
            AnimationFrame(
                pixels: try pixels.shown(as: layout, options, conversion, isDeep: canvas.format == .rgba16, clock)
                    .pixels,
                milliseconds: AnimationFrame.shown(milliseconds: ended.milliseconds)))
    }
}

extension PixelBuffer {
    /// As the source or over what is there, both with straight alpha.
    fileprivate func draw(
        on canvas: PixelBuffer, _ area: PixelRectangle, blends: Bool, _ clock: DecodeClock
    ) throws(Failure) {
        let blend = format == .rgba16 ? codec_blend_over_words : codec_blend_over
        let left = area.x * format.bytesPerPixel
        for y in 0..<height {
            try clock.check(after: width)
            let from = bytes.advanced(by: y * stride)
            let to = canvas.bytes.advanced(by: (area.y + y) * canvas.stride + left)
            if blends {
                blend(to.assumingMemoryBound(to: UInt8.self), from.assumingMemoryBound(to: UInt8.self), width)
            } else {
                to.copyMemory(from: from, byteCount: rowBytes)
            }
        }
    }
}
