import CCodecs
import ImgdlCore

/// JPEG through libjpeg's suspending interface. Owned by one worker at a time.
///
/// A file with one scan goes row by row onto the canvas. A file with several (progressive, or one scan for each
/// component) is kept as coefficients, which costs nothing extra, and put out once at the end, plus for partial images: of
/// the first scan the rows that are there, each once, then every scan once that is whole. libjpeg cannot suspend within
/// arithmetic coding: such files are decoded at the end.
final class JPEGDecoder: FormatDecoder {
    private enum Stage {
        case header
        /// Arithmetic coding: waits for the end.
        case collecting
        case rows
        case trailer
        case scans
        case complete
    }

    /// libjpeg reads coefficients in a faster way while it has some kilobytes ahead.
    private static let batch = 32 * 1024

    private let options: DecodeOptions
    private let session: OpaquePointer
    private var stage = Stage.header
    private var walker = JPEGScanWalker()
    private var pending = PendingBytes()
    /// Bytes of the file so far.
    private var fed = 0
    /// Found while a partial image was made: the next call tells it.
    private var failure: Failure?
    private var hasBrokenSession = false
    private(set) var hasIncompleteEnd = false
    private var fill = JPEGFill()

    private(set) var header: ImageHeader?
    private var layout: CanvasLayout?
    /// Bytes of libjpeg's own.
    private var held: CheckedNumber? = 0
    private var stored = OutputSize(width: 0, height: 0)
    /// libjpeg's own: rows come at the stored size divided by this.
    private var reduction = 1
    /// From there to the exact size; nil where none is needed.
    private var scaler: RowScaler?
    private var hasMultipleScans = false
    private var canvas: PixelBuffer?
    private var snapshots = PassSnapshots<Int>()
    /// The canvas of the last pass over several scans.
    private var snapshot: PixelBuffer?
    /// What the last partial image showed; the scan is the one that a pass was begun for.
    private var shownRows = 0
    private var shownScan: Int32 = 0
    private var hasShownThumbnail = false
    private var salvaged: DecodedImage?
    private(set) var colours = Colours()
    private let clock: DecodeClock

    init(_ options: DecodeOptions, _ clock: DecodeClock) throws(Failure) {
        guard let session = codec_jpeg_create(clock.session) else {
            throw Failure(.outOfMemory, "no memory for a JPEG decoder")
        }
        self.options = options
        self.session = session
        self.clock = clock
        codec_jpeg_read_profile(session, max(0, MetadataMeter(options).room))
    }

    deinit { codec_jpeg_destroy(session) }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        if let failure { throw failure }
        fed += bytes.count
        var rest = bytes
        while stage != .complete, !rest.isEmpty {
            // Fill bytes and a stuffed zero are one 0xFF of data. libjpeg's faster way takes them for a marker, and leaves
            // coefficients behind that it made up.
            let (allowed, filling) = walker.walk(rest, maximumScans: options.maximumScans)
            fed -= filling
            try take(UnsafeRawBufferPointer(rebasing: rest[..<allowed]))
            guard walker.scanCount <= options.maximumScans else {
                if stage == .collecting { endCollecting() }
                try pending.offerKept(use)
                throw Failure(.scanLimit, "the JPEG has more than \(options.maximumScans) scans")
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[(allowed + filling)...])
        }
    }

    private func take(_ walked: UnsafeRawBufferPointer) throws(Failure) {
        let bytes = fill.shortened(walked)
        fed -= walked.count - bytes.count
        guard !bytes.isEmpty else { return }
        pending.batch = stage == .header ? 0 : Self.batch
        if stage == .collecting { try pending.keep(bytes) } else { try pending.offer(bytes, use) }
    }

    private func endCollecting() {
        codec_jpeg_end(session)
        stage = hasMultipleScans ? .scans : .rows
    }

    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
        if let failure { throw failure }
        if stage == .collecting { endCollecting() }
        if stage != .complete { try pending.offerKept(use) }
        if stage == .rows {
            // libjpeg keeps rows back until it has seen what follows them.
            codec_jpeg_end(session)
            do { try pending.offerKept(use) } catch { if stage != .trailer || hasBrokenSession { throw error } }
        }
        if stage != .complete, end == .whole { try endWithoutMarker() }
        guard stage == .complete, let image = image(isComplete: true) else { throw truncated() }
        guard codec_jpeg_is_damaged(session, fed) == 0 else { throw Failure(.badImageData, words()) }
        return image
    }

    /// The end of a body that is whole: complete if nothing but its mark is missing.
    private func endWithoutMarker() throws(Failure) {
        switch stage {
        case .trailer: guard codec_jpeg_is_final(session) != 0 else { return }
        case .scans:
            guard leaveInput(), codec_jpeg_is_final(session) != 0 else { return }
            try putOutLastScan()
        case .header, .collecting, .rows, .complete: return
        }
        hasIncompleteEnd = true
        stage = .complete
    }

    func partialImage() -> DecodedImage? {
        if let thumbnail = thumbnail() { return thumbnail }
        guard failure == nil else { return nil }
        if stage == .rows || stage == .scans {
            do throws(Failure) { try pending.offerKept(use) } catch { failure = error }
        }
        switch stage {
        case .header, .collecting: return nil
        case .rows, .trailer: break
        case .scans: return partialScan()
        case .complete: if hasMultipleScans { return nil }
        }
        let rows = finishedRows
        guard rows > shownRows else { return nil }
        shownRows = rows
        return image(rows: rows, isComplete: false)
    }

    func salvagedImage() -> DecodedImage? {
        if salvaged == nil { salvaged = hasMultipleScans ? salvagedScans() : image(isComplete: false) }
        return salvaged
    }

    // MARK: Bytes in

    private func use(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
        lend(bytes)
        defer { codec_jpeg_give(session, nil, 0) }
        while try advance() {}
        return bytes.count - codec_jpeg_left(session)
    }

    private func lend(_ bytes: UnsafeRawBufferPointer) {
        codec_jpeg_give(session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    /// One stage further; false when it takes more bytes.
    private func advance() throws(Failure) -> Bool {
        switch stage {
        case .header:
            var found = codec_jpeg_header()
            guard try isDone(codec_jpeg_read_header(session, &found)) else { return false }
            try begin(found)
        case .rows:
            guard let layout, let canvas else { return false }
            guard try isDone(codec_jpeg_rows(session, layout.placement(on: canvas, conversion, clock), .max)) else {
                return false
            }
            stage = .trailer
        case .trailer:
            guard try isDone(codec_jpeg_finish(session)) else { return false }
            stage = .complete
        case .scans:
            guard try isDone(codec_jpeg_consume(session)) else { return false }
            try putOutLastScan()
            stage = .complete
        case .collecting, .complete:
            return false
        }
        return true
    }

    private func begin(_ found: codec_jpeg_header) throws(Failure) {
        let width = Int(found.width)
        let height = Int(found.height)
        try options.checkSize(width: width, height: height)
        var size = 0
        let exif = codec_jpeg_exif(session, &size)
        let stored = EXIFReader.orientation(of: UnsafeRawBufferPointer(start: exif, count: size))
        let orientation = options.appliesOrientation ? Orientation(rawValue: stored) ?? .upright : .upright
        let layout = CanvasLayout(width: width, height: height, orientation: orientation, options)
        try readProfile(exif: size)
        held = CheckedNumber(UInt64(found.held)) + colours.memory
        try options.checkMemory(canvas: layout, codec: held)
        snapshots.room = options.canvasRoom(layout, codec: held)
        self.layout = layout
        try chooseScale(OutputSize(width: width, height: height), layout)
        hasMultipleScans = found.has_multiple_scans != 0
        header = ImageHeader(
            format: .jpeg, width: layout.width, height: layout.height, orientation: stored, hasAlpha: false,
            isProgressive: hasMultipleScans)
        let status = codec_jpeg_start(
            session, options.pixelFormat.isBGRA ? 1 : 0, UInt32(reduction), scaler?.session)
        guard try isDone(status) else { throw Failure(.badImageData, "the JPEG has no scan that can be decoded") }
        if !hasMultipleScans {
            let pixels = try options.makeCanvas(layout, clock)
            scaler?.begin(on: pixels, conversion, clock)
            canvas = pixels
        }
        stage = found.is_arithmetic != 0 ? .collecting : hasMultipleScans ? .scans : .rows
    }

    /// For pixels; inks are converted where they become colours.
    private var conversion: ColourConversion? {
        codec_jpeg_samples(session) == CODEC_SAMPLES_INKS ? nil : colours.conversion
    }

    private func readProfile(exif: Int) throws(Failure) {
        var metadata = MetadataMeter(options)
        if try metadata.fits(exif) { metadata.hold(exif) }
        var bytes: UnsafePointer<UInt8>?
        var size = 0
        let state = codec_jpeg_profile(session, &bytes, &size)
        defer { codec_jpeg_forget_profile(session) }
        if state == CODEC_PROFILE_TOO_LONG, let most = options.maximumMetadataBytes {
            throw options.metadataFailure(CheckedNumber(most) + 1)
        }
        guard state != CODEC_PROFILE_NONE else { return }
        let isHeld = try metadata.fits(size)
        let samples = codec_jpeg_samples(session)
        try colours.found(
            UnsafeRawBufferPointer(start: bytes, count: isHeld ? size : 0), samples,
            isInverted: codec_jpeg_is_inverted(session) != 0, options, clock)
        if samples == CODEC_SAMPLES_INKS { codec_jpeg_convert_inks_by(session, colours.conversion?.session) }
    }

    /// libjpeg reduces within its transform, which makes decoding cheaper, where enough is left to our own filter. Only by
    /// 2, 4 and 8: for what lies between it has no vector code, and is slower than at full size.
    private func chooseScale(_ stored: OutputSize, _ layout: CanvasLayout) throws(Failure) {
        self.stored = stored
        guard layout.isScaled(width: stored.width, height: stored.height) else { return }
        reduction = Int(codec_jpeg_reduction(session, layout.storedWidth, layout.storedHeight))
        scaler = try RowScaler(
            width: stored.width, height: stored.height, reducedBy: reduction, to: layout, from: CODEC_ALPHA_OPAQUE,
            options.pixelFormat)
    }

    private func isDone(_ status: codec_status) throws(Failure) -> Bool {
        switch status {
        case CODEC_DONE: return true
        case CODEC_SUSPENDED: return false
        case CODEC_ENDED: throw truncated()
        case CODEC_LATE:
            hasBrokenSession = true
            throw clock.failure
        default:
            hasBrokenSession = true
            if codec_jpeg_is_out_of_memory(session) != 0 { throw Failure(.outOfMemory, words()) }
            throw Failure(codec_jpeg_is_too_large(session) != 0 ? .pixelLimit : .badImageData, words())
        }
    }

    private func words() -> String {
        codec_jpeg_message(session).map { "libjpeg: " + String(cString: $0) } ?? "libjpeg gives no reason"
    }

    private func truncated() -> Failure {
        guard layout != nil else { return Failure(.truncated, "the JPEG ends within its header") }
        if hasMultipleScans { return Failure(.truncated, "the JPEG ends in scan \(codec_jpeg_scan(session))") }
        let rows = min(stored.height, codec_jpeg_rows_out(session) * reduction)
        guard rows < stored.height else {
            return Failure(.truncated, "the JPEG ends behind its last row: its end (EOI) is missing")
        }
        return Failure(.truncated, "the JPEG ends after \(rows) of \(stored.height) rows")
    }

    // MARK: Pictures out

    /// On the canvas, in the pass that is running.
    private var finishedRows: Int { scaler?.rows ?? codec_jpeg_rows_out(session) }

    private func image(isComplete: Bool) -> DecodedImage? {
        guard hasMultipleScans else { return image(rows: finishedRows, isComplete: isComplete) }
        return image(rows: layout?.storedHeight ?? 0, pass: codec_jpeg_scan(session), isComplete: isComplete)
    }

    private func image(rows: Int, pass: Int32 = 1, isComplete: Bool) -> DecodedImage? {
        canvas.flatMap { image(on: $0, rows: rows, pass: pass, isComplete: isComplete) }
    }

    private func image(on pixels: PixelBuffer, rows: Int, pass: Int32, isComplete: Bool) -> DecodedImage? {
        guard let header, let layout, rows > 0 else { return nil }
        var image = DecodedImage(
            header: header, pixels: pixels, ready: layout.rectangle(ofRows: rows), isComplete: isComplete,
            pass: Int(pass))
        if hasMultipleScans, rows >= layout.storedHeight, isGoodEnough(scan: Int(pass)) { image.isGoodEnough = true }
        return image
    }

    /// Unless the caller says when: from the scan on with which every component has come (features R26).
    private func isGoodEnough(scan: Int) -> Bool {
        let covering = Int(codec_jpeg_covering_scan(session))
        return scan >= options.goodEnoughScan ?? (covering > 0 ? covering : .max)
    }

    private func putOutLastScan() throws(Failure) {
        guard let layout else { return }
        guard try isDone(codec_jpeg_begin_pass(session, codec_jpeg_scan(session), 1)) else { throw truncated() }
        let pixels = try passCanvas(layout, isLast: true)
        guard try isDone(codec_jpeg_rows(session, layout.placement(on: pixels, conversion, clock), .max)) else {
            throw truncated()
        }
        canvas = pixels
        snapshot = nil
        _ = codec_jpeg_finish(session)  // gives the coefficients' memory back
    }

    /// One pass for each scan. The first scan's goes on as its rows come; the others show the last scan that is whole, with
    /// what has come of the next, unless that is needed for true colours.
    private func partialScan() -> DecodedImage? {
        let scan = max(1, codec_jpeg_scan(session) - 1)
        guard !hasBrokenSession, snapshots.room > 1, let layout else { return nil }
        if scan > shownScan {
            let last = JPEGScan(codec_jpeg_scan_header_of(session, 1))
            if last?.isHalfOfColours(before: JPEGScan(codec_jpeg_scan_header_of(session, 0))) == true { return nil }
            // Only the first is smoothed: the others have detail of their own.
            guard codec_jpeg_begin_pass(session, scan, scan == 1 ? 1 : 0) == CODEC_DONE else { return nil }
            guard let canvas = try? passCanvas(layout, isLast: false) else { return nil }
            snapshot = canvas
            (shownScan, shownRows) = (scan, 0)
        }
        guard let snapshot, shownRows < layout.storedHeight else { return nil }
        let status = codec_jpeg_rows(session, layout.placement(on: snapshot, conversion, clock), .max)
        guard status == CODEC_DONE || status == CODEC_SUSPENDED && scan == 1, finishedRows > shownRows else {
            return nil
        }
        shownRows = finishedRows
        return image(on: snapshot, rows: shownRows, pass: scan, isComplete: false)
    }

    /// For the pass that has begun. What was shown last is written over, unless somebody holds it.
    private func passCanvas(_ layout: CanvasLayout, isLast: Bool) throws(Failure) -> PixelBuffer {
        weak let shown = snapshot
        snapshot = nil
        defer { snapshot = shown }
        let pixels = try makeSnapshot(layout, isLast: isLast)
        scaler?.begin(on: pixels, conversion, clock)
        return pixels
    }

    private func makeSnapshot(_ layout: CanvasLayout, isLast: Bool) throws(Failure) -> PixelBuffer {
        try snapshots.next(Int(codec_jpeg_scan(session)), isLast: isLast) { () throws(Failure) in
            try options.makeCanvas(layout, clock)
        }.pixels
    }

    /// What the coefficients so far show. In the first scan that is the rows which were read; later, the whole picture.
    private func salvagedScans() -> DecodedImage? {
        guard let layout else { return nil }
        if stage == .complete { return image(isComplete: false) }
        guard stage == .scans else { return nil }
        if hasBrokenSession, codec_jpeg_is_out_of_memory(session) != 0 { return nil }
        let scan = codec_jpeg_scan(session)
        let isLeft = leaveInput()
        let rows = scan == 1 ? codec_jpeg_scan_rows(session) : Int.max
        guard isLeft, scan > 0, rows > 0,
            codec_jpeg_begin_pass(session, scan, 1) == CODEC_DONE, let pixels = try? passCanvas(layout, isLast: true)
        else { return nil }
        let status = codec_jpeg_rows(session, layout.placement(on: pixels, conversion, clock), rows)
        return status == CODEC_DONE ? image(on: pixels, rows: finishedRows, pass: scan, isComplete: false) : nil
    }

    /// From here on libjpeg puts out what it has read: to where the bytes end; then what is missing is made up.
    private func leaveInput() -> Bool {
        if !hasBrokenSession, codec_jpeg_scan_is_read(session) == 0 { lend(pending.bytes) }
        codec_jpeg_give_up(session)
        _ = codec_jpeg_consume(session)
        return codec_jpeg_consume(session) == CODEC_DONE
    }

    /// Once, ahead of all that is the picture itself.
    private func thumbnail() -> DecodedImage? {
        guard options.showsThumbnailFirst, !hasShownThumbnail, stage != .header, let header, let layout else {
            return nil
        }
        hasShownThumbnail = true
        guard stage != .trailer, stage != .complete, shownRows == 0, snapshots.room > 1 else { return nil }
        var size = 0
        let exif = codec_jpeg_exif(session, &size)
        let block = UnsafeRawBufferPointer(start: exif, count: size)
        let memory = options.memoryLeft(beside: layout, count: 2, codec: held)
        let small = JPEGThumbnail(
            exif: block, stored: stored, layout, memory: memory, options, conversion, clock
        ) { () throws(Failure) in
            try hasMultipleScans ? makeSnapshot(layout, isLast: false) : options.makeCanvas(layout, clock)
        }
        guard let small else { return nil }
        return DecodedImage(
            header: header, pixels: small.pixels, ready: layout.rectangle(ofRows: layout.storedHeight),
            isComplete: false,
            pass: 0)
    }
}
