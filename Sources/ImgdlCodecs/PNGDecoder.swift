import CCodecs
import ImgdlCore

/// PNG through libpng's progressive reader. Owned by one worker at a time.
///
/// Rows go straight onto the canvas. An Adam7 picture is kept as stored, with straight alpha, and its changed rows are copied
/// for each partial image, with larger pixels where later passes have not come, so that each pass looks like a picture.
/// So scaling holds a few rows of the full size, but for Adam7 all of them.
final class PNGDecoder: FormatDecoder {
    private let options: DecodeOptions
    private let session: OpaquePointer
    private let clock: DecodeClock
    private let animation: PNGAnimation
    private var filter: PNGChunkFilter
    private var isComplete = false
    private(set) var hasIncompleteEnd = false
    /// Damage behind the last row: of no account where the body is whole.
    private var damagedEnd: Failure?

    private(set) var header: ImageHeader?
    var memoryDemand: Int64 { animation.memoryDemand }
    private var layout: CanvasLayout?
    private var found = codec_png_header()
    private var scaler: RowScaler?
    /// What libpng writes: the canvas, or for Adam7 the picture as stored.
    private var written: PixelBuffer?
    /// What is written, to be shown.
    private var passes: Adam7Picture?
    private var snapshots = PassSnapshots<Adam7Position>()
    private var shown = (pass: -1, rows: 0, frames: 0)

    private var isInterlaced: Bool { found.is_interlaced != 0 }
    private var premultiplies: Bool { options.pixelFormat.isPremultiplied && found.has_alpha != 0 }
    var colours: Colours { filter.colours }
    /// Samples of 16 bits, and they are wanted.
    private var isDeep: Bool { options.pixelFormat == .rgba16 && found.depth == 16 }

    init(_ options: DecodeOptions, _ clock: DecodeClock) throws(Failure) {
        guard let session = codec_png_create(options.pixelFormat.isBGRA ? 1 : 0, clock.session) else {
            throw Failure(.outOfMemory, "no memory for a PNG decoder")
        }
        self.options = options
        self.session = session
        self.clock = clock
        animation = PNGAnimation(options, clock)
        filter = PNGChunkFilter(animation, options, clock)
    }

    deinit { codec_png_destroy(session) }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard !isComplete, damagedEnd == nil else { return }
        var rest = bytes
        while let piece = try next(&rest) {
            try pass(piece)
            filter.discardHeld()
        }
        if filter.isAtEnd, damagedEnd == nil { try end() }
    }

    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
        if !isComplete, damagedEnd == nil, let piece = try filter.last() { try pass(piece) }
        if !isComplete, end == .whole, hasAll {
            try animation.end()
            hasIncompleteEnd = true
            header?.frameCount = animation.frameCount
            isComplete = true
        }
        guard isComplete else {
            if let damagedEnd { throw damagedEnd }
            guard layout != nil else { throw Failure(.truncated, "the PNG ends within its header") }
            let pass = codec_png_pass(session) + 1
            let rows = codec_png_rows(session)
            // The last pass has every second row.
            let hasAllRows =
                isInterlaced ? pass > 7 || pass == 7 && rows >= found.height / 2 : rows >= found.height
            guard !hasAllRows else {
                let what =
                    codec_png_is_whole(session) != 0
                    ? "its end (IEND) is missing" : "the compressed data of its pixels do not end as they must"
                throw Failure(.truncated, "the PNG ends behind its last row: \(what)")
            }
            let part = isInterlaced ? "\(rows) rows of pass \(pass) of 7" : "\(rows) of \(found.height) rows"
            throw Failure(.truncated, "the PNG ends after \(part)")
        }
        guard let image = try picture(isComplete: true, isLast: true) else {
            throw Failure(.badImageData, "the PNG has no pixels")
        }
        return try turnedByLateEXIF(image)
    }

    func partialImage() -> DecodedImage? {
        if animation.hidesImage {
            // Those of a still that is to be shown for want of an animation would have to be taken back.
            guard options.decodesAllFrames, animation.frames.count > shown.frames else { return nil }
            shown.frames = animation.frames.count
            return animated(isComplete: false)
        }
        let rows = isInterlaced ? codec_png_rows(session) : scaler?.rows ?? codec_png_rows(session)
        let now = (pass: Int(codec_png_pass(session)), rows: rows, frames: animation.frames.count)
        guard now.rows > 0, (now.pass, now.rows) > (shown.pass, shown.rows) || now.frames > max(1, shown.frames)
        else { return nil }
        let image = try? picture(isComplete: false, isLast: false)
        if image != nil { shown = now }
        return image
    }

    func salvagedImage() -> DecodedImage? { try? picture(isComplete: false, isLast: true) }

    // MARK: Bytes in

    /// The next bytes for libpng. What is broken behind all that makes a picture is kept for the end.
    private func next(_ rest: inout UnsafeRawBufferPointer) throws(Failure) -> UnsafeRawBufferPointer? {
        do throws(Failure) {
            return try filter.next(&rest)
        } catch {
            guard error.code == .badImageData, hasAll else { throw error }
            damagedEnd = error
            return nil
        }
    }

    /// All rows and frames, and nothing is wrong with them.
    private var hasAll: Bool {
        layout != nil && codec_png_is_whole(session) != 0 && codec_png_is_damaged(session) == 0
            && animation.hasAll(isWithinData: filter.isWithinFrame)
    }

    private func pass(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            var used = 0
            let status = codec_png_feed(
                session, rest.baseAddress?.assumingMemoryBound(to: UInt8.self), rest.count, &used)
            guard status != CODEC_LATE else { throw clock.failure }
            guard status != CODEC_FAILED else { throw brokenPNG() }
            rest = UnsafeRawBufferPointer(rebasing: rest[used...])
            if layout == nil, codec_png_header_of(session, &found) != 0 { try begin() }
        }
    }

    private func begin() throws(Failure) {
        let width = Int(found.width)
        let height = Int(found.height)
        try options.checkSize(width: width, height: height)
        try options.checkRow(width: width, bytesPerPixel: found.depth == 16 ? 8 : 4)
        let stored = filter.orientation ?? 1
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let frames = options.decodesAllFrames ? animation.frameCount : 1
        let layout = CanvasLayout(width: width, height: height, orientation: orientation, frames: frames, options)
        try filter.followProfile(found.is_gray != 0 ? CODEC_SAMPLES_GRAY : CODEC_SAMPLES_COLOURS)
        let asStored = CanvasLayout(storedWidth: width, storedHeight: height, orientation: .upright)
        let target = isInterlaced ? asStored : layout
        let row = CheckedNumber(isDeep ? 8 : 4) * CheckedNumber(width)
        let isScaled = layout.isScaled(width: width, height: height)
        let rows = isInterlaced ? row * CheckedNumber(height) : row
        animation.shown(as: layout, colours.conversion, beside: rows)
        let held = rows + animation.memory(layout) + colours.memory
        try options.checkMemory(canvas: layout, codec: held)
        let isGivenAsStored = isInterlaced && layout.orientation == .upright && !isScaled && isAsStored
        snapshots.room = snapshotRoom(layout, held, isGivenAsStored: isGivenAsStored)
        if isScaled {
            let alpha = found.has_alpha != 0 ? CODEC_ALPHA_STRAIGHT : CODEC_ALPHA_OPAQUE
            scaler = try RowScaler(
                width: width, height: height, to: layout, from: alpha, options.pixelFormat, hasWords: isDeep)
        }
        let premultipliesRows = !isInterlaced && premultiplies
        let ownScaler = isInterlaced ? nil : scaler
        let written: PixelBuffer
        if !isInterlaced || isGivenAsStored {
            written = try options.makeCanvas(target, clock)
        } else {
            let wanted = options.pixelFormat
            let format = isDeep ? .rgba16 : premultiplies ? wanted.straight : wanted.working
            written = try PixelBuffer(width: width, height: height, format: format, isCleared: false, clock)
        }
        let conversion = isInterlaced ? nil : colours.conversion
        ownScaler?.begin(on: written, conversion, clock)
        let status = codec_png_start(
            session, target.placement(on: written, conversion, clock), premultipliesRows ? 1 : 0, ownScaler?.session,
            isDeep ? 1 : 0)
        guard status != CODEC_FAILED else { throw brokenPNG() }
        self.written = written
        passes = isInterlaced ? Adam7Picture(written) : nil
        self.layout = layout
        header = ImageHeader(
            format: .png, width: layout.width, height: layout.height, orientation: stored,
            frameCount: animation.frameCount, hasAlpha: found.has_alpha != 0, isProgressive: isInterlaced)
    }

    /// What is written can be the picture itself, besides all others; and one that EXIF behind the pixels turns takes
    /// another canvas.
    private func snapshotRoom(_ layout: CanvasLayout, _ held: CheckedNumber?, isGivenAsStored: Bool) -> Int {
        let mayTurn = options.appliesOrientation && filter.orientation == nil
        let room = options.canvasRoom(layout, codec: held)
        return room == .max ? room : room + (isGivenAsStored ? 1 : 0) - (mayTurn ? 1 : 0)
    }

    /// What libpng writes of an Adam7 picture can be given out.
    private var isAsStored: Bool {
        !premultiplies && options.isFinal(isDeep ? .rgba16 : options.pixelFormat.working, colours.conversion)
    }

    /// libpng is content with image data that ends early or was never verified; a caller must not be.
    private func end() throws(Failure) {
        guard layout != nil, codec_png_is_whole(session) != 0, codec_png_is_damaged(session) == 0 else {
            throw brokenPNG()
        }
        header?.frameCount = animation.frameCount
        isComplete = true
    }

    private func brokenPNG() -> Failure {
        let words = codec_png_message(session).map { "libpng: " + String(cString: $0) }
        let code = codec_png_is_out_of_memory(session) != 0 ? ErrorCode.outOfMemory : .badImageData
        return Failure(code, words ?? "the PNG has less image data than pixels")
    }

    // MARK: Pictures out

    /// `isLast`: no other follows.
    private func picture(isComplete: Bool, isLast: Bool) throws(Failure) -> DecodedImage? {
        if animation.hidesImage { return animated(isComplete: isComplete) }
        let pass = Int(codec_png_pass(session))
        guard let header, let layout, let written, codec_png_rows(session) > 0 else { return nil }
        var rows = codec_png_rows(session)
        var pixels = written
        if let passes {
            let position = Adam7Position(pass: pass, rows: rows)
            rows = position.shownRows(height: Int(found.height))
            let isFinal = layout.orientation == .upright && scaler == nil && isAsStored
            if !(isComplete && isFinal) { pixels = try copy(passes, position, layout, isLast: isLast) }
        }
        let ready = scaler?.rows ?? rows
        guard ready > 0 else { return nil }
        return DecodedImage(
            header: header, pixels: pixels, ready: layout.rectangle(ofRows: ready), isComplete: isComplete,
            pass: pass + 1,
            frames: frames(behind: pixels, isWhole: isComplete), loopCount: animation.loopCount)
    }

    /// The frames that are whole, without the default image, which is none of them.
    private func animated(isComplete: Bool) -> DecodedImage? {
        guard let header, let layout, let first = animation.frames.first else { return nil }
        return DecodedImage(
            header: header, pixels: first.pixels, ready: layout.rectangle(ofRows: layout.storedHeight),
            isComplete: isComplete, pass: 1, frames: animation.frameCount > 1 ? animation.frames : [],
            loopCount: animation.loopCount)
    }

    private func copy(
        _ passes: Adam7Picture, _ position: Adam7Position, _ layout: CanvasLayout, isLast: Bool
    ) throws(Failure) -> PixelBuffer {
        let canvas = try snapshots.next(position, isLast: isLast) { () throws(Failure) in
            try options.makeCanvas(layout, clock)
        }
        if let scaler {
            scaler.begin(on: canvas.pixels, colours.conversion, clock)
            try passes.push(position, to: scaler, clock)
        } else {
            try passes.show(position, after: canvas.last, layout, on: canvas.pixels, colours.conversion, clock)
        }
        return canvas.pixels
    }

    /// The decoded frames. Where only one was wanted it is the picture.
    private func frames(behind pixels: PixelBuffer, isWhole: Bool) -> [AnimationFrame] {
        guard animation.frameCount > 1 else { return [] }
        if options.decodesAllFrames { return animation.frames }
        let milliseconds = AnimationFrame.shown(milliseconds: animation.firstMilliseconds)
        return isWhole ? [AnimationFrame(pixels: pixels, milliseconds: milliseconds)] : []
    }

    /// EXIF behind the pixels is rare but allowed: only now is it known how the picture has to be turned.
    private func turnedByLateEXIF(_ image: DecodedImage) throws(Failure) -> DecodedImage {
        let stored = filter.orientation ?? 1
        guard stored != image.header.orientation else { return image }
        let beside = written.map { $0 === image.pixels ? 0 : $0.byteCount } ?? 0
        return try image.turned(stored, options, isDeep: isDeep, beside: beside, clock)
    }
}
