import CImgdl

/// Small enough that a run takes milliseconds.
let fuzzedPixels: UInt64 = 1 << 18

/// `imgdl_decode`: the last bytes are the options. Limits and the host's memory change no pixel, another order of channels
/// changes their order alone; what comes with an error is a picture too.
func fuzzDecode(_ input: UnsafeRawBufferPointer) throws {
    var bytes = input
    guard var chosen = FuzzedOptions(input, &bytes) else { return }
    let view = chosen.comparableView
    let outcome = decode(bytes, chosen.all, seenAs: view)
    try chosen.host?.check()
    try require(outcome.code != 0 || outcome.width > 0, "a picture without pixels")
    try require(UInt64(outcome.width) * UInt64(outcome.height) <= fuzzedPixels, "a picture larger than the limit")

    chosen.useComparableFormat()
    let plain = decode(bytes, chosen.plain, seenAs: view)
    if chosen.host?.wasFaulty == true {
        return try require(outcome.code != 0, "a picture, but no memory for it")
    }
    guard outcome.code == plain.code else {
        return try require(chosen.isLimit(outcome.code), "\(outcome.code) with limits, \(plain.code) without")
    }
    guard outcome.code == 0, chosen.isComparable(outcome) else { return }
    try require(outcome == plain, "\(outcome), and as usual \(plain)")
}

private func decode(
    _ bytes: UnsafeRawBufferPointer, _ options: imgdl_decode_options, seenAs view: Sum.View
) -> Outcome {
    var options = options
    var image: OpaquePointer?
    let code = imgdl_decode(bytes.baseAddress, bytes.count, &options, &image)
    return Outcome(code, image, seenAs: view)
}

/// `imgdl_decoder_…`: the last bytes are the options and how the rest is cut; what comes out is what `imgdl_decode` gives
/// with the same options (features B7).
func fuzzDecoder(_ input: UnsafeRawBufferPointer) throws {
    var bytes = input
    guard let chosen = FuzzedOptions(input, &bytes) else { return }
    let whole = decode(bytes, chosen.all, seenAs: .stored)
    try chosen.host?.check()
    // The calls are counted anew.
    guard let again = FuzzedOptions(input, &bytes) else { return }
    let pieces = try decodeInPieces(bytes, again)
    try again.host?.check()
    // Partial images have canvases that decoding as a whole does not ask for.
    if chosen.host?.wasFaulty == true || again.host?.wasFaulty == true { return }
    try require(pieces.code == whole.code, "in pieces \(pieces.code), as a whole \(whole.code)")
    // How much can be salvaged may depend on how far a codec could look ahead.
    if whole.code == 0 { try require(pieces == whole, "in pieces \(pieces), as a whole \(whole)") }
}

private func decodeInPieces(_ bytes: UnsafeRawBufferPointer, _ chosen: FuzzedOptions) throws -> Outcome {
    var options = chosen.all
    var decoder: OpaquePointer?
    let created = imgdl_decoder_create(&options, &decoder)
    guard created == 0 else { return Outcome(created, nil) }
    defer { imgdl_decoder_destroy(decoder) }
    var failed: imgdl_status = 0
    try bytes.forEachPiece(seed: chosen.seed) { piece in
        let status = imgdl_decoder_feed(decoder, piece.baseAddress, piece.count)
        if failed == 0 { failed = status }
        if chosen.showsPartials { try lookAtPartial(of: decoder) }
    }
    var image: OpaquePointer?
    let ended = imgdl_decoder_finish(decoder, &image)
    let isGoodEnough = image == nil || ended != 0 || imgdl_image_is_good_enough(image) == 1
    let outcome = Outcome(ended, image)
    try require(failed == 0 || ended == failed, "feed said \(failed), finish says \(ended)")
    try require(isGoodEnough, "a whole picture is not good enough")
    return outcome
}

private func lookAtPartial(of decoder: OpaquePointer?) throws {
    var partial: OpaquePointer?
    let hasPartial = imgdl_decoder_partial(decoder, &partial) == 0
    defer { imgdl_image_release(partial) }
    var info = imgdl_image_info()
    imgdl_image_info_init(&info, MemoryLayout<imgdl_image_info>.stride)
    let hasInfo = imgdl_decoder_info(decoder, &info) == 0
    guard hasPartial else { return }
    try require(hasInfo, "a partial image ahead of the header")
    var sum = Sum(.stored)
    sum.add(partial)
    let (width, height) = (imgdl_image_width(partial), imgdl_image_height(partial))
    try require(
        width == info.width && height == info.height,
        "a partial image of \(width) × \(height) of a picture of \(info.width) × \(info.height)")
}

extension FuzzedOptions {
    private var format: UInt32 { all.pixel_format }
    private var isDeep: Bool { format == UInt32(IMGDL_PIXEL_FORMAT_RGBA16) }

    fileprivate var comparableView: Sum.View { .channels(alpha: format != UInt32(IMGDL_PIXEL_FORMAT_RGB8)) }

    /// RGBA with alpha as in the format that was chosen. How many bytes a pixel has decides how large pictures may be that
    /// have to fit into so many.
    fileprivate mutating func useComparableFormat() {
        guard plain.flags & UInt32(IMGDL_DECODE_SCALE_DOWN) == 0 else { return }
        let isPremultiplied =
            format == UInt32(IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED)
            || format == UInt32(IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED)
        plain.pixel_format =
            isPremultiplied ? UInt32(IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED) : UInt32(IMGDL_PIXEL_FORMAT_RGBA8)
    }

    /// Words of a PNG, and words that were converted, are more than bytes times 257.
    fileprivate func isComparable(_ outcome: Outcome) -> Bool {
        !isDeep || plain.pixel_format == format || (plain.colour == 0 && outcome.format != UInt32(IMGDL_FORMAT_PNG))
    }
}
