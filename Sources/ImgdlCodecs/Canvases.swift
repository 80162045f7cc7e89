import CCodecs
import ImgdlCore

extension DecodeOptions {
    /// What is given out: in the host's memory where it brings some. Not cleared: of what is handed out before all is
    /// written, `DecodedImage` makes the rest transparent.
    func makeCanvas(_ layout: CanvasLayout, _ clock: DecodeClock?) throws(Failure) -> PixelBuffer {
        let canvas = try PixelBuffer(
            width: layout.width, height: layout.height, format: pixelFormat, allocator: allocator, isCleared: false,
            clock)
        guard layout.orientation.swapsAxes else { return canvas }
        // What is written by columns would take too long to be cleared when somebody looks, and its first row lies on all
        // of its pages.
        if canvas.byteCount > Self.largeCanvas { try canvas.clear(clock) }
        if canvas.byteCount > Self.manyPages, !canvas.isHosts { try canvas.bringPages(clock) }
        return canvas
    }

    /// In bytes: clearing those row by row takes 20 ms at most.
    private static var largeCanvas: Int { 128 << 20 }
    /// In bytes: the system brings those in 5 ms.
    private static var manyPages: Int { 16 << 20 }

    /// Whether pixels of this format, upright and at full size, can be given out as they are.
    func isFinal(_ format: PixelFormat, _ conversion: ColourConversion?) -> Bool {
        format == pixelFormat && conversion == nil
    }
}

extension PixelFormat {
    /// The same order of colours in four bytes, not premultiplied: what frames are blended in.
    var straight: PixelFormat { isBGRA ? .bgra8 : .rgba8 }
    /// Four bytes a pixel, as codecs write them: the format itself, or straight RGBA.
    var working: PixelFormat { bytesPerPixel == 4 ? self : .rgba8 }

    var codecPixel: codec_pixel {
        switch self {
        case .rgb8: CODEC_PIXEL_THREE_BYTES
        case .rgba16: CODEC_PIXEL_FOUR_WORDS
        default: CODEC_PIXEL_FOUR_BYTES
        }
    }
}

/// Whatever decoders do to canvases as such counts as work over so many pixels, and can be stopped.
extension PixelBuffer {
    /// How decoders come by canvases. Large ones in the host's memory are cleared at once, which is nothing to do in
    /// one go when somebody looks.
    convenience init(
        width: Int, height: Int, format: PixelFormat, allocator: CanvasAllocator? = nil, isCleared: Bool = true,
        _ clock: DecodeClock?
    ) throws(Failure) {
        try self.init(width: width, height: height, format: format, allocator: allocator, isCleared: false)
        // Whether or not they are old: of a new one the system clears the pages.
        try clock?.check(after: width * height)
        if isCleared || isHosts && byteCount > Self.largeHosts { try clear(clock) }
    }

    /// In bytes, whose pages the system may have to bring, too.
    private static var largeHosts: Int { 16 << 20 }

    func clear(_ clock: DecodeClock?) throws(Failure) {
        try clear { (pixels) throws(Failure) in try clock?.check(after: pixels) }
    }

    func bringPages(_ clock: DecodeClock?) throws(Failure) {
        try bringPages { (pixels) throws(Failure) in try clock?.check(after: pixels) }
    }
}

extension PixelBuffer {
    /// The rows from `first` on, where `layout` has them on the canvas and as its format says. Of three bytes a pixel: no.
    /// `top`: the row of the picture that this buffer begins with. When `clock` is due the rest is left out.
    func place(
        first: Int = 0, rows: Int, top: Int = 0, _ layout: CanvasLayout, on canvas: PixelBuffer,
        _ conversion: ColourConversion?, _ clock: DecodeClock?
    ) {
        let placement = layout.placement(on: canvas, conversion, clock)
        let multiplies: Int32 = canvas.format.isPremultiplied && !format.isPremultiplied ? 1 : 0
        // Rows with padding go one by one.
        let atOnce = isPacked ? rows : 1
        for row in Swift.stride(from: first, to: first + rows, by: max(1, atOnce)) {
            let source = (bytes + row * self.stride).assumingMemoryBound(to: UInt8.self)
            if format == .rgba16 {
                codec_place_words(source, width, top + row, atOnce, placement)
            } else {
                codec_place_rows(source, width, top + row, atOnce, placement, multiplies)
            }
        }
    }

    /// Whether nothing is seen through any pixel of it, or of its first rows.
    func isOpaque(rows: Int? = nil, _ clock: DecodeClock?) throws(Failure) -> Bool {
        for row in 0..<(rows ?? height) {
            try clock?.check(after: width / 4)
            let first = (bytes + row * stride).assumingMemoryBound(to: UInt8.self)
            guard codec_is_opaque(first, format.codecPixel, width) != 0 else { return false }
        }
        return true
    }

    /// Itself where it has four bytes a pixel, or a copy that has.
    func inFourBytes(_ clock: DecodeClock?) throws(Failure) -> PixelBuffer {
        guard format.bytesPerPixel != 4 else { return self }
        let copy = try PixelBuffer(width: width, height: height, format: .rgba8, isCleared: false, clock)
        for row in 0..<height {
            try clock?.check(after: width)
            codec_four_bytes(
                (bytes + row * stride).assumingMemoryBound(to: UInt8.self), format.codecPixel,
                (copy.bytes + row * copy.stride).assumingMemoryBound(to: UInt8.self), width)
        }
        return copy
    }

    /// Whether that is how a caller wants them already.
    func isShown(as layout: CanvasLayout, _ options: DecodeOptions, _ conversion: ColourConversion?) -> Bool {
        let isAtHome = options.allocator == nil || isHosts
        return !layout.isScaled(width: width, height: height) && layout.orientation == .upright && isAtHome
            && options.isFinal(format, conversion)
    }

    /// The same pixels as a caller wants them: turned, scaled, converted, in the host's memory. Itself where that is what
    /// they are. `rows`: those that have come, and how many they make. `isDeep`: words are not bytes times 257, and stay words
    /// when they are scaled.
    func shown(
        as layout: CanvasLayout, _ options: DecodeOptions, _ conversion: ColourConversion? = nil,
        isOpaque: Bool = false,
        isDeep: Bool = false, rows: Int = .max, _ clock: DecodeClock?
    ) throws(Failure) -> (pixels: PixelBuffer, rows: Int) {
        let isScaled = layout.isScaled(width: width, height: height)
        let rows = min(rows, height)
        if isShown(as: layout, options, conversion) { return (self, rows) }
        let staysDeep = format == .rgba16 && options.pixelFormat == .rgba16 && (isDeep || !isScaled)
        let source = staysDeep ? self : try inFourBytes(clock)
        let canvas = try options.makeCanvas(layout, clock)
        guard isScaled else {
            source.place(rows: rows, layout, on: canvas, conversion, clock)
            try clock?.check()
            return (canvas, rows)
        }
        let scaler = try RowScaler(
            width: width, height: height, to: layout, from: source.alpha(isOpaque: isOpaque), options.pixelFormat,
            hasWords: staysDeep)
        scaler.begin(on: canvas, conversion, clock)
        try scaler.push(source.bytes, rows: rows, width: width, stride: source.stride, clock)
        try clock?.check()
        return (canvas, scaler.rows)
    }
}
