/// What a look at the first bytes of a body says of the picture.
package enum PictureSize: Equatable, Sendable {
    /// More bytes are needed.
    case undecided
    /// As stored. `held`: bytes for each pixel that its decoder holds until the end besides the canvas, because the file goes
    /// over the picture again and again; 0: none. `beside`: those that it takes though its rows are final as they come.
    case known(width: Int, height: Int, held: Int, beside: Int = 0)
    /// No format whose head is understood; nothing is reserved for it.
    case unknown
}

/// How much memory bodies and canvases take, and what still fits (features B20). Bytes, estimated before they are
/// there: a canvas counts from before its decoder is opened until nobody holds its picture any more.
package struct MemoryRules {
    package var budget: Int64
    package private(set) var bodies: Int64 = 0
    package private(set) var canvases: Int64 = 0
    /// Bytes that undoing the codings of bodies takes. They hold up nobody: a few bytes of a server that stands still may ask for
    /// megabytes. Each transfer has a limit of its own (`CodingBudget`).
    package private(set) var codings: Int64 = 0
    /// Bytes of both that count for nobody else: pictures that hosts have not taken, bodies that wait, not decoded, for executors
    /// that are behind, bodies that wait for answers of hooks, and what slow transfers hold.
    package private(set) var excused: Int64 = 0
    package private(set) var peak: Int64 = 0
    /// The budget is reached: nothing new. Until a good part is free again, so that it does not go to and fro.
    package private(set) var isFull = false

    package init(budget: Int64) { self.budget = budget }

    package var inUse: Int64 { bodies + canvases + codings }
    /// Bytes that count for the budget.
    private var counted: Int64 { max(0, bodies + canvases - excused) }

    package mutating func changeBodies(_ bytes: Int64) {
        bodies += bytes
        changed()
    }

    package mutating func changeCanvases(_ bytes: Int64) {
        canvases += bytes
        changed()
    }

    package mutating func changeCodings(_ bytes: Int64) {
        codings += bytes
        peak = max(peak, inUse)
    }

    package mutating func setExcused(_ bytes: Int64) {
        excused = bytes
        changed()
    }

    package mutating func setBudget(_ budget: Int64) {
        self.budget = budget
        isFull = false
        changed()
    }

    package func fits(_ bytes: Int64) -> Bool { counted + bytes <= budget }

    private mutating func changed() {
        peak = max(peak, inUse)
        isFull = counted >= (isFull ? budget - budget / 8 : budget)
    }

    /// Bytes that a decoder of this picture will need: its canvas; where the file goes over it again and again, the
    /// coefficients or rows that are held; and what its codec takes for itself. `showsParts`: partial images of a picture that
    /// is not on its canvas yet have one of their own.
    package static func canvas(_ size: PictureSize, _ options: DecodeOptions, showsParts: Bool = false) -> Int64 {
        guard case .known(let width, let height, let held, let beside) = size, width > 0, height > 0,
            let pixels = product(width, height), pixels <= options.maximumPixels
        else { return 0 }
        // Each factor is small next to what 64 bits hold: `product` says so.
        let each = UInt64(options.pixelFormat.bytesPerPixel)
        var bytes = pixels * each
        if let scaled = scaledPixels(width, height, options) { bytes = min(bytes, scaled * each) }
        if let most = options.maximumOutputBytes { bytes = min(bytes, most) }
        if showsParts, held > 0 { bytes *= 2 }
        let taken = [held, beside].reduce(0) { $0 + UInt64(min(max(0, $1), greatestHeld)) }
        return min(greatestCanvas, Int64(clamping: bytes + pixels * taken))
    }

    /// What a header names may be more than any machine has: counted as an address space, however many name it at once
    /// their sum is a number.
    static let greatestCanvas: Int64 = 1 << 47
    /// Four words of a pixel.
    private static let greatestHeld = 8

    /// Pixels in the target box; whichever of both ways it lies, since it may still be turned. nil: not scaled.
    private static func scaledPixels(_ width: Int, _ height: Int, _ options: DecodeOptions) -> UInt64? {
        guard options.targetWidth > 0 || options.targetHeight > 0 else { return nil }
        if options.stretches, options.targetWidth > 0, options.targetHeight > 0 {
            return product(options.targetWidth, options.targetHeight)
        }
        let isTurned = options.appliesOrientation ? [false, true] : [false]
        return isTurned.map { isTurned in
            let (boxWidth, boxHeight) =
                isTurned
                ? (options.targetHeight, options.targetWidth) : (options.targetWidth, options.targetHeight)
            let horizontal = boxWidth > 0 ? Double(boxWidth) / Double(width) : .infinity
            let vertical = boxHeight > 0 ? Double(boxHeight) / Double(height) : .infinity
            let scale = min(1, horizontal, vertical)
            return UInt64((Double(width) * scale).rounded(.up) * (Double(height) * scale).rounded(.up))
        }.max()
    }

    /// nil where it is too large to be meant; no more than a quarter of what 64 bits hold.
    private static func product(_ width: Int, _ height: Int) -> UInt64? {
        (CheckedNumber(width) * CheckedNumber(height))?.within(0...1 << 56).map { UInt64($0) }
    }
}
