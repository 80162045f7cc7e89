import ImgdlCore

/// The canvas on which the frames of an animation follow each other. A frame that was shown is never changed: each gets
/// a canvas of its own, which begins as the one before was left.
struct FrameCanvas {
    /// What becomes of a frame's rectangle when its time is over.
    enum Disposal {
        case none
        /// Transparent, as browsers do, whatever background colour the file names.
        case background
        /// As before the frame.
        case previous
    }

    let width: Int
    let height: Int
    let format: PixelFormat
    /// The frame whose pixels are still there; nil: the canvas is transparent.
    private var under: PixelBuffer?
    /// Where they are not.
    private var cleared: PixelRectangle?

    init(width: Int, height: Int, format: PixelFormat) {
        self.width = width
        self.height = height
        self.format = format
    }

    /// A canvas for the next frame to be drawn on; in the host's memory where it is given out as it is.
    func next(_ allocator: CanvasAllocator?, _ clock: DecodeClock) throws(Failure) -> PixelBuffer {
        let canvas = try PixelBuffer(
            width: width, height: height, format: format, allocator: allocator, isCleared: under == nil, clock)
        guard let under else { return canvas }
        for y in 0..<height {
            try clock.check(after: width)
            (canvas.bytes + y * canvas.stride)
                .copyMemory(from: under.bytes + y * under.stride, byteCount: under.rowBytes)
        }
        guard let cleared, cleared.width > 0 else { return canvas }
        for y in cleared.y..<cleared.y + cleared.height {
            try clock.check(after: cleared.width)
            let row = canvas.bytes + y * canvas.stride + cleared.x * format.bytesPerPixel
            row.initializeMemory(as: UInt8.self, repeating: 0, count: cleared.width * format.bytesPerPixel)
        }
        return canvas
    }

    /// The frame has been shown; `rectangle`, within the canvas, is what it covers.
    mutating func dispose(_ frame: PixelBuffer, _ rectangle: PixelRectangle, _ disposal: Disposal) {
        if disposal == .previous { return }
        under = frame
        cleared = disposal == .background ? rectangle : nil
    }
}

extension PixelRectangle {
    /// As a file has it: nil beyond 32 bits.
    init?(x: CheckedNumber?, y: CheckedNumber?, width: CheckedNumber?, height: CheckedNumber?) {
        guard let x = x?.count32, let y = y?.count32, let width = width?.count32, let height = height?.count32 else {
            return nil
        }
        self.init(x: x, y: y, width: width, height: height)
    }

    /// The part of it on a canvas of that size. None of its numbers is below 0.
    func clipped(width limitX: Int, height limitY: Int) -> PixelRectangle {
        let (left, top) = (min(x, limitX), min(y, limitY))
        return PixelRectangle(x: left, y: top, width: min(width, limitX - left), height: min(height, limitY - top))
    }

    /// All of it is on a canvas of that size.
    func isWithin(width canvasWidth: Int, height canvasHeight: Int) -> Bool {
        let (right, bottom) = (CheckedNumber(x) + CheckedNumber(width), CheckedNumber(y) + CheckedNumber(height))
        return right?.count(upTo: canvasWidth) != nil && bottom?.count(upTo: canvasHeight) != nil
    }

    func covers(width canvasWidth: Int, height canvasHeight: Int) -> Bool {
        x == 0 && y == 0 && width >= canvasWidth && height >= canvasHeight
    }
}
