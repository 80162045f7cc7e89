import CImgdl

/// What a program gets through the C interface: the verdict, and a sum over every pixel of the picture and its frames, so
/// that each of them is read.
struct Outcome: Equatable {
    var code: imgdl_status = 0
    var width: UInt32 = 0
    var height: UInt32 = 0
    var frames: UInt32 = 0
    var sum: UInt64 = 0

    init(_ code: imgdl_status, _ image: OpaquePointer?) {
        self.code = code
        guard let image else { return }
        (width, height) = (imgdl_image_width(image), imgdl_image_height(image))
        frames = imgdl_image_frame_count(image)
        sum = Self.sum(of: image)
        for index in 1..<max(1, frames) {
            var frame: OpaquePointer?
            guard imgdl_image_frame(image, index, &frame) == 0 else { break }
            sum = sum &* 31 &+ Self.sum(of: frame) &+ UInt64(imgdl_image_frame_duration_ms(image, index))
            imgdl_image_release(frame)
        }
        imgdl_image_release(image)
    }

    static func sum(of image: OpaquePointer?) -> UInt64 {
        let length = imgdl_image_stride(image) * Int(imgdl_image_height(image))
        var sum: UInt64 = 0
        for byte in UnsafeRawBufferPointer(start: imgdl_image_pixels(image), count: length) {
            sum = sum &* 31 &+ UInt64(byte)
        }
        return sum
    }
}

/// Small enough that a run takes milliseconds.
let fuzzedPixels: UInt64 = 1 << 18

/// `imgdl_decode`, with and without all frames. What comes with an error is a picture too.
func fuzzDecode(_ bytes: UnsafeRawBufferPointer) throws {
    for flags in [IMGDL_DECODE_SALVAGE, IMGDL_DECODE_SALVAGE | IMGDL_DECODE_ALL_FRAMES] {
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
        options.flags = UInt32(flags)
        options.max_pixels = fuzzedPixels
        var image: OpaquePointer?
        let outcome = Outcome(imgdl_decode(bytes.baseAddress, bytes.count, &options, &image), image)
        try require(outcome.code != 0 || outcome.width > 0, "a picture without pixels")
        try require(
            UInt64(outcome.width) * UInt64(outcome.height) <= fuzzedPixels, "a picture larger than the limit")
    }
}

/// `imgdl_decoder_…`: the last eight bytes are the options and how the rest is cut; what comes out is what
/// `imgdl_decode` gives with the same options (features B7).
func fuzzDecoder(_ input: UnsafeRawBufferPointer) throws {
    guard input.count > 8 else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input.dropLast(8))
    let tail = Array(input.suffix(8))
    var options = imgdl_decode_options()
    imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
    options.flags = UInt32(tail[0]) & 0x1F | UInt32(IMGDL_DECODE_SALVAGE)
    options.pixel_format = UInt32(tail[1] % 5)
    options.max_pixels = fuzzedPixels
    options.target_width = UInt32(tail[2])
    options.target_height = UInt32(tail[3])
    options.max_frames = 50
    if tail[0] & 0x20 != 0 {
        options.flags |= UInt32(IMGDL_DECODE_SCALE_DOWN)
        options.max_output_bytes = 1 + UInt64(tail[2]) << 8
    }
    let seed = UInt32(tail[5]) | UInt32(tail[6]) << 8 | UInt32(tail[7]) << 16

    var image: OpaquePointer?
    let code = imgdl_decode(bytes.baseAddress, bytes.count, &options, &image)
    let whole = Outcome(code, image)
    var decoder: OpaquePointer?
    let created = imgdl_decoder_create(&options, &decoder)
    guard created == 0 else { return try require(created == code, "create says \(created), decode \(code)") }
    defer { imgdl_decoder_destroy(decoder) }
    let partials = tail[4] & 1 != 0
    var failed: imgdl_status = 0
    bytes.forEachPiece(seed: seed) { piece in
        let status = imgdl_decoder_feed(decoder, piece.baseAddress, piece.count)
        if failed == 0 { failed = status }
        guard partials else { return }
        var info = imgdl_image_info()
        imgdl_image_info_init(&info, MemoryLayout<imgdl_image_info>.stride)
        _ = imgdl_decoder_info(decoder, &info)
        var partial: OpaquePointer?
        guard imgdl_decoder_partial(decoder, &partial) == 0 else { return }
        _ = Outcome.sum(of: partial)
        imgdl_image_release(partial)
    }
    image = nil
    let ended = imgdl_decoder_finish(decoder, &image)
    let pieces = Outcome(ended, image)
    try require(failed == 0 || ended == failed, "feed said \(failed), finish says \(ended)")
    try require(pieces.code == whole.code, "in pieces \(pieces.code), as a whole \(whole.code)")
    // How much can be salvaged may depend on how far a codec could look ahead.
    if whole.code == 0 { try require(pieces == whole, "in pieces \(pieces), as a whole \(whole)") }
}
