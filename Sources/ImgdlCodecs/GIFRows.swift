import ImgdlCore

/// Which rows of a GIF frame have been drawn.
struct GIFRows {
    /// Rows drawn, in whatever order they are stored.
    private(set) var count = 0
    private var passes: GIFPasses?
    private let width: Int
    private let height: Int

    init() { (width, height) = (0, 0) }

    init(_ frame: GIFFrame) {
        (width, height) = (frame.rectangle.width, frame.rectangle.height)
        if frame.isInterlaced { passes = GIFPasses(height: height) }
    }

    /// From 0.
    var pass: Int { passes?.pass ?? 0 }

    /// Draws the rows whose indices have all come and that were not there before. What lies outside the canvas is left
    /// out; an index that the palette does not have is transparent, as browsers see it.
    mutating func draw(
        _ frame: GIFFrame, _ indices: UnsafeBufferPointer<UInt8>, on canvas: PixelBuffer, _ clock: DecodeClock
    ) throws(Failure) {
        guard width > 0, indices.count >= (count + 1) * width, let source = indices.baseAddress else { return }
        let (left, top) = (frame.rectangle.x, frame.rectangle.y)
        let visible = min(width, max(0, canvas.width - left))
        let isOpaque = frame.isOpaque
        try frame.palette.withUnsafeBufferPointer { (palette) throws(Failure) in
            guard let colors = palette.baseAddress, palette.count == 256 else { return }
            while (count + 1) * width <= indices.count, count < height {
                try clock.check(after: width)
                let y = top + (passes?.row ?? count)
                if y < canvas.height, visible > 0 {
                    let row = canvas.bytes + y * canvas.stride + left * 4
                    let from = source + count * width
                    // The host's memory may be aligned in any way.
                    guard Int(bitPattern: row) % 4 == 0 else {
                        for x in 0..<visible where isOpaque || colors[Int(from[x])] != 0 {
                            row.storeBytes(of: colors[Int(from[x])], toByteOffset: 4 * x, as: UInt32.self)
                        }
                        advance()
                        continue
                    }
                    let to = row.assumingMemoryBound(to: UInt32.self)
                    if isOpaque {
                        for x in 0..<visible { to[x] = colors[Int(from[x])] }
                    } else {
                        for x in 0..<visible {
                            let color = colors[Int(from[x])]
                            to[x] = color == 0 ? to[x] : color
                        }
                    }
                }
                advance()
            }
        }
    }

    private mutating func advance() {
        count += 1
        passes?.advance()
    }

    /// How many rows of the canvas, from its top, a picture of this frame alone shows.
    func coveredRows(_ rectangle: PixelRectangle) -> Int {
        if let passes { return passes.pass > 0 ? Int.max : rectangle.y + min(rectangle.height, passes.row) }
        return rectangle.y + min(rectangle.height, count)
    }

    /// A copy in which each row that has not come looks like the nearest one above that has: blocks, not a comb.
    func filled(
        _ canvas: PixelBuffer, _ rectangle: PixelRectangle, _ allocator: CanvasAllocator?,
        _ clock: DecodeClock
    ) throws(Failure) -> PixelBuffer {
        let copy = try PixelBuffer(
            width: canvas.width, height: canvas.height, format: canvas.format, allocator: allocator, clock)
        guard let passes else { return copy }
        for y in 0..<rectangle.height {
            try clock.check(after: rectangle.width)
            guard let source = passes.source(of: y) else { continue }
            let offset = rectangle.x * 4
            (copy.bytes + (rectangle.y + y) * copy.stride + offset).copyMemory(
                from: canvas.bytes + (rectangle.y + source) * canvas.stride + offset, byteCount: rectangle.width * 4)
        }
        return copy
    }
}
