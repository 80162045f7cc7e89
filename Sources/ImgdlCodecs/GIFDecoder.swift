import ImgdlCore

/// GIF87a and GIF89a. Owned by one worker at a time.
///
/// Frames that nobody asked for are read too, their codes checked and not carried out: whether a file is broken does not
/// depend on how much of it is wanted.
final class GIFDecoder: FormatDecoder {
    private let options: DecodeOptions
    private let clock: DecodeClock
    private var reader: GIFReader
    private let codes = LZWReader()
    private var canvas: FrameCanvas?
    /// Frames are given out as they are drawn.
    private var isFinal = false

    private(set) var header: ImageHeader?
    private(set) var memoryDemand: Int64 = 0
    /// The frame whose data is being read; nil between frames and behind its last index.
    private var frame: GIFFrame?
    /// Where it is drawn; nil while it is only checked.
    private var drawn: PixelBuffer?
    private var rows = GIFRows()
    private var frames: [AnimationFrame] = []
    private var frameCount = 0
    private var hasAlpha = false
    private var firstHasAlpha = false
    private var isComplete = false
    private var lacksTrailer = false
    var hasIncompleteEnd: Bool { lacksTrailer || reader.hasStrayZeros }

    /// The first frame, and what can be seen of it.
    private var first: PixelBuffer?
    private var firstRectangle = PixelRectangle(x: 0, y: 0, width: 0, height: 0)
    private var firstRows = GIFRows()
    private var firstMilliseconds = 0
    private var isFirstWhole: Bool { !frames.isEmpty }
    /// For a partial image that has a canvas of its own.
    private var hasRoomForPart = false
    /// Rows of the first frame and frames that the last partial image showed.
    private var shown = (rows: 0, frames: 0)

    init(_ options: DecodeOptions, _ clock: DecodeClock) {
        self.options = options
        self.clock = clock
        reader = GIFReader(isBGRA: options.pixelFormat.isBGRA)
    }

    /// An index that the palette does not have is transparent, which the file says nowhere.
    var mayHaveAlpha: Bool { true }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while let event = try reader.next(&rest) {
            // As long as a palette takes.
            try clock.check(after: 256)
            switch event {
            case .screen(let width, let height):
                try options.checkSize(width: width, height: height)
                canvas = FrameCanvas(width: width, height: height, format: options.pixelFormat.working)
                let layout = CanvasLayout(width: width, height: height, orientation: .upright, options)
                isFinal =
                    !layout.isScaled(width: width, height: height)
                    && options.isFinal(options.pixelFormat.working, nil)
            case .frame(let frame): try begin(frame)
            case .data(let data): try read(data)
            case .frameEnd:
                guard frame == nil else {
                    throw Failure(.badImageData, "frame \(frameCount) of the GIF has too little data")
                }
            case .trailer: try end()
            }
        }
    }

    func finish(_ bodyEnd: BodyEnd) throws(Failure) -> DecodedImage {
        if !isComplete, bodyEnd == .whole, frameCount > 0, frame == nil, reader.isBehindFrames {
            lacksTrailer = true
            try end()
        }
        guard isComplete else {
            guard canvas != nil else { throw Failure(.truncated, "the GIF ends within its header") }
            throw Failure(
                .truncated,
                frameCount == 0
                    ? "the GIF ends ahead of its first frame, or in it"
                    : "the GIF ends in or behind frame \(frameCount)")
        }
        guard let image = try image(isComplete: true) else { throw Failure(.badImageData, "the GIF has no pixels") }
        return image
    }

    func partialImage() -> DecodedImage? {
        let now = (rows: firstRows.count, frames: frames.count)
        guard now.rows > shown.rows || now.frames > max(1, shown.frames) else { return nil }
        let isShared = isFinal && (isFirstWhole || header?.isProgressive == false)
        guard isShared || hasRoomForPart else { return nil }
        shown = now
        return try? image(isComplete: false)
    }

    func salvagedImage() -> DecodedImage? { try? image(isComplete: false) }

    // MARK: Frames

    private func begin(_ frame: GIFFrame) throws(Failure) {
        guard let canvas else { return }
        frameCount += 1
        let rectangle = frame.rectangle
        let isEmpty = rectangle.width == 0 || rectangle.height == 0
        if isEmpty, frameCount == 1 {
            throw Failure(
                .badImageData, "the first frame of the GIF is \(rectangle.width) × \(rectangle.height) pixels")
        }
        if !isEmpty { try options.checkSize(width: rectangle.width, height: rectangle.height) }
        try options.checkFrame(number: frameCount, width: canvas.width, height: canvas.height)
        let layout = CanvasLayout(width: canvas.width, height: canvas.height, orientation: .upright, options)
        try checkMemory(layout, rectangle)
        hasAlpha =
            hasAlpha || frame.control.transparentIndex != nil || frame.control.disposal == .background
            || frameCount == 1 && !rectangle.covers(width: canvas.width, height: canvas.height)
        self.frame = frame
        rows = GIFRows(frame)
        let allocator = isFinal ? options.allocator : nil
        drawn = frameCount == 1 || options.decodesAllFrames ? try canvas.next(allocator, clock) : nil
        if frameCount == 1 {
            first = drawn
            firstHasAlpha = hasAlpha
            firstRectangle = rectangle.clipped(width: canvas.width, height: canvas.height)
            firstRows = rows
            firstMilliseconds = frame.control.milliseconds
            header = ImageHeader(
                format: .gif, width: layout.width, height: layout.height, frameCount: 0, hasAlpha: hasAlpha,
                isProgressive: frame.isInterlaced)
        }
        try codes.begin(minimumWidth: frame.codeSize, count: rectangle.width * rectangle.height, copies: drawn != nil)
        if isEmpty { endFrame(frame) }
    }

    /// Frames that are not given out as they are drawn are made what is wanted at the end, all together.
    private func checkMemory(_ layout: CanvasLayout, _ rectangle: PixelRectangle) throws(Failure) {
        guard let canvas else { return }
        let count = options.decodesAllFrames ? frameCount : 1
        let indices = CheckedNumber(rectangle.width) * CheckedNumber(rectangle.height)
        let drawn = options.bytes(width: canvas.width, height: canvas.height, canvas.format)
        let held = indices + (isFinal ? 0 : drawn * CheckedNumber(count))
        memoryDemand = max(memoryDemand, try options.checkMemory(canvas: layout, count: count, codec: held))
        let filled = isFinal || frameCount > 1 ? 0 : drawn
        hasRoomForPart = options.canvasRoom(layout, codec: held + filled) > count
    }

    private func read(_ data: UnsafeRawBufferPointer) throws(Failure) {
        guard let frame else { return }
        let outcome = codes.feed(data)
        try draw(frame)
        switch outcome {
        case .suspended: return
        case .complete: endFrame(frame)
        case .endedEarly: throw Failure(.badImageData, "frame \(frameCount) of the GIF has too few pixels")
        case .impossibleCode: throw Failure(.badImageData, "frame \(frameCount) of the GIF has an impossible LZW code")
        }
    }

    private func draw(_ frame: GIFFrame) throws(Failure) {
        guard let drawn else { return }
        try rows.draw(frame, codes.indices, on: drawn, clock)
        if frameCount == 1 { firstRows = rows }
    }

    private func endFrame(_ frame: GIFFrame) {
        self.frame = nil
        guard let drawn, var canvas else { return }
        let milliseconds = AnimationFrame.shown(milliseconds: frame.control.milliseconds)
        frames.append(AnimationFrame(pixels: drawn, milliseconds: milliseconds))
        let rectangle = frame.rectangle.clipped(width: canvas.width, height: canvas.height)
        canvas.dispose(drawn, rectangle, frame.control.disposal)
        self.canvas = canvas
        self.drawn = nil
    }

    private func end() throws(Failure) {
        guard frameCount > 0 else { throw Failure(.badImageData, "the GIF has no frame") }
        header?.frameCount = frameCount
        header?.hasAlpha = hasAlpha
        isComplete = true
    }

    // MARK: Pictures out

    private func image(isComplete: Bool) throws(Failure) -> DecodedImage? {
        guard var header, let first, firstRows.count > 0 || isFirstWhole else { return nil }
        let isAnimated = header.frameCount > 1 || frameCount > 1
        let loops = !isAnimated ? 1 : reader.repetitions.map { $0 == 0 ? 0 : $0 + 1 } ?? 1
        var pixels = first
        (header.width, header.height) = (first.width, first.height)
        var ready = PixelRectangle(x: 0, y: 0, width: first.width, height: first.height)
        if !isFirstWhole {
            ready.height = min(first.height, firstRows.coveredRows(firstRectangle))
            if header.isProgressive {
                pixels = try firstRows.filled(first, firstRectangle, isFinal ? options.allocator : nil, clock)
            }
        }
        let image = DecodedImage(
            header: header, pixels: pixels, ready: ready, isComplete: isComplete,
            pass: isFirstWhole ? (header.isProgressive ? 4 : 1) : firstRows.pass + 1,
            frames: isAnimated ? frames : [], loopCount: loops)
        return try image.turned(1, options, nil, hasAlpha: firstHasAlpha, clock)
    }
}
