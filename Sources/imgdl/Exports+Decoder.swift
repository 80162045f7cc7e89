import CImgdl
import ImgdlCore

/// What an imgdl_decoder handle stands for. One call at a time, says the header.
final class DecoderObject {
    let decoder: any ImageDecoder
    let salvages: Bool

    init(_ options: DecodeRequest) {
        Process.makeReady()
        decoder = Process.codec.makeDecoder(options.options)
        salvages = options.salvages
    }

    /// Writes *image: on failure too where salvage was asked for.
    func finish(_ image: UnsafeMutablePointer<OpaquePointer?>) throws(Failure) {
        do {
            image.pointee = ImageObject.handle(try decoder.finish(.whole))
        } catch {
            if salvages, error.code.mayLeavePixels {
                image.pointee = decoder.salvagedImage().flatMap { ImageObject.handle($0) }
            }
            throw error
        }
    }
}

/// imgdl_decode_options, read.
struct DecodeRequest {
    var options = DecodeOptions()
    var salvages = false

    /// NULL gives the defaults.
    init(_ source: UnsafePointer<imgdl_decode_options>?) throws(Failure) {
        guard source != nil else { return }
        let read = try imgdl_decode_options.read(source)
        guard read.reserved == 0, read.reserved2 == 0 else {
            throw Failure(.unsupportedOption, "imgdl_decode_options.reserved or reserved2 is not 0")
        }
        guard read.flags & ~Self.knownFlags == 0 else {
            throw Failure(.unsupportedOption, "imgdl_decode_options has a flag that this version does not know")
        }
        if read.pixel_format != 0 {
            guard let format = PixelFormat(rawValue: read.pixel_format) else {
                throw Failure(.invalidArgument, "\(read.pixel_format) is no pixel format")
            }
            options.pixelFormat = format
        }
        options.appliesOrientation = read.flags & UInt32(IMGDL_DECODE_IGNORE_ORIENTATION) == 0
        salvages = read.flags & UInt32(IMGDL_DECODE_SALVAGE) != 0
        if read.coder != nil { options.coder = try object(read.coder, .coder, as: CoderObject.self).id }
        if read.max_pixels > 0 { options.maximumPixels = read.max_pixels }
        try readSize(read)
        readFrames(read)
        try readLimits(read)
        try readOutput(read)
        guard let hint = ImageFormat(rawValue: read.format_hint) else {
            throw Failure(.invalidArgument, "\(read.format_hint) is no format")
        }
        options.formatHint = hint
    }

    private static var knownFlags: UInt32 {
        UInt32(IMGDL_DECODE_IGNORE_ORIENTATION) | UInt32(IMGDL_DECODE_SALVAGE) | UInt32(IMGDL_DECODE_ALL_FRAMES)
            | UInt32(IMGDL_DECODE_REQUIRE_ANIMATION) | UInt32(IMGDL_DECODE_STRETCH) | UInt32(IMGDL_DECODE_SCALE_DOWN)
            | UInt32(IMGDL_DECODE_THUMBNAIL_FIRST)
    }

    private mutating func readSize(_ read: imgdl_decode_options) throws(Failure) {
        let largest = UInt32(IMGDL_MAX_TARGET)
        guard read.target_width <= largest, read.target_height <= largest else {
            let side = read.target_width > largest ? "target_width" : "target_height"
            throw Failure(.invalidArgument, "\(side) is more than \(largest)")
        }
        options.targetWidth = Int(read.target_width)
        options.targetHeight = Int(read.target_height)
        options.stretches = read.flags & UInt32(IMGDL_DECODE_STRETCH) != 0
        let scalesDown = read.flags & UInt32(IMGDL_DECODE_SCALE_DOWN) != 0
        guard scalesDown || read.max_output_bytes == 0 else {
            throw Failure(.invalidArgument, "max_output_bytes needs IMGDL_DECODE_SCALE_DOWN")
        }
        if scalesDown {
            let most = read.max_output_bytes
            options.maximumOutputBytes = most > 0 ? most : DecodeOptions.defaultScaleDownBytes
        }
    }

    private mutating func readFrames(_ read: imgdl_decode_options) {
        options.decodesAllFrames = read.flags & UInt32(IMGDL_DECODE_ALL_FRAMES) != 0
        options.requiresAnimation = read.flags & UInt32(IMGDL_DECODE_REQUIRE_ANIMATION) != 0
        if read.max_frames > 0 { options.maximumFrames = Int(read.max_frames) }
    }

    private mutating func readLimits(_ read: imgdl_decode_options) throws(Failure) {
        if read.max_side > 0 { options.maximumSide = Int(read.max_side) }
        if read.max_scans > 0 { options.maximumScans = Int(clamping: read.max_scans) }
        if read.max_animation_pixels > 0 { options.maximumAnimationPixels = read.max_animation_pixels }
        if read.max_metadata_bytes > 0 { options.maximumMetadataBytes = Int(clamping: read.max_metadata_bytes) }
        if read.max_memory_bytes > 0 {
            options.maximumMemoryBytes = read.max_memory_bytes == .max ? nil : read.max_memory_bytes
        }
        if read.max_decode_ms > 0 {
            options.maximumMilliseconds = read.max_decode_ms == .max ? nil : Int64(read.max_decode_ms)
        }
        if read.good_enough_scan > 0 { options.goodEnoughScan = Int(read.good_enough_scan) }
    }

    private mutating func readOutput(_ read: imgdl_decode_options) throws(Failure) {
        options.showsThumbnailFirst = read.flags & UInt32(IMGDL_DECODE_THUMBNAIL_FIRST) != 0
        guard read.colour <= UInt32(IMGDL_COLOUR_SRGB) else {
            throw Failure(.invalidArgument, "\(read.colour) is no treatment of colours")
        }
        options.convertsToSRGB = read.colour == UInt32(IMGDL_COLOUR_SRGB)
        switch (read.allocate, read.deallocate) {
        case (let allocate?, let deallocate?):
            options.allocator = CanvasAllocator(
                allocate: allocate, deallocate: deallocate, userData: read.allocator_user_data)
        case (nil, nil): break
        default: throw Failure(.invalidArgument, "allocate and deallocate need each other")
        }
    }
}

func imageInfo(_ header: ImageHeader) -> imgdl_image_info {
    imgdl_image_info(
        struct_size: UInt32(MemoryLayout<imgdl_image_info>.stride), format: header.format.rawValue,
        width: UInt32(clamping: header.width), height: UInt32(clamping: header.height),
        orientation: UInt32(clamping: header.orientation), frame_count: UInt32(clamping: header.frameCount),
        has_alpha: header.hasAlpha ? 1 : 0, is_progressive: header.isProgressive ? 1 : 0)
}

@_cdecl("imgdl_decode_options_init") @implementation
public func imgdl_decode_options_init(_ options: UnsafeMutablePointer<imgdl_decode_options>?, _ size: Int) {
    imgdl_decode_options.initialize(options, size)
}

@_cdecl("imgdl_image_info_init") @implementation
public func imgdl_image_info_init(_ info: UnsafeMutablePointer<imgdl_image_info>?, _ size: Int) {
    imgdl_image_info.initialize(info, size)
}

@_cdecl("imgdl_decode") @implementation
public func imgdl_decode(
    _ bytes: UnsafeRawPointer?, _ length: Int, _ options: UnsafePointer<imgdl_decode_options>?,
    _ image: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let image else { throw Failure(.invalidArgument, "image is NULL") }
        let input = try checkedCount(length, bytes, "bytes")
        let decoder = DecoderObject(try DecodeRequest(options))
        // A failure of feed stays: finish tells it again and salvages.
        do throws(Failure) { try decoder.decoder.feed(input) } catch {}
        try decoder.finish(image)
    }
}

@_cdecl("imgdl_decoder_create") @implementation
public func imgdl_decoder_create(
    _ options: UnsafePointer<imgdl_decode_options>?, _ decoder: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let decoder else { throw Failure(.invalidArgument, "decoder is NULL") }
        decoder.pointee = HandleTable.shared.insert(DecoderObject(try DecodeRequest(options)), .decoder)
    }
}

@_cdecl("imgdl_decoder_feed") @implementation
public func imgdl_decoder_feed(_ decoder: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ length: Int) -> imgdl_status {
    call { () throws(Failure) in
        let decoder = try object(decoder, .decoder, as: DecoderObject.self)
        try decoder.decoder.feed(try checkedCount(length, bytes, "bytes"))
    }
}

@_cdecl("imgdl_decoder_info") @implementation
public func imgdl_decoder_info(_ decoder: OpaquePointer?, _ info: UnsafeMutablePointer<imgdl_image_info>?)
    -> imgdl_status
{
    call { () throws(Failure) in
        let decoder = try object(decoder, .decoder, as: DecoderObject.self)
        try imgdl_image_info.checkSize(of: info)
        guard let header = decoder.decoder.header else { throw Failure(.notReady, "the header is not complete yet") }
        try imageInfo(header).write(to: info)
    }
}

@_cdecl("imgdl_decoder_partial") @implementation
public func imgdl_decoder_partial(_ decoder: OpaquePointer?, _ image: UnsafeMutablePointer<OpaquePointer?>?)
    -> imgdl_status
{
    call { () throws(Failure) in
        let decoder = try object(decoder, .decoder, as: DecoderObject.self)
        guard let image else { throw Failure(.invalidArgument, "image is NULL") }
        guard let partial = decoder.decoder.partialImage() else {
            throw Failure(.notReady, "nothing that the last partial image did not show")
        }
        image.pointee = ImageObject.handle(partial)
    }
}

@_cdecl("imgdl_decoder_finish") @implementation
public func imgdl_decoder_finish(_ decoder: OpaquePointer?, _ image: UnsafeMutablePointer<OpaquePointer?>?)
    -> imgdl_status
{
    call { () throws(Failure) in
        let decoder = try object(decoder, .decoder, as: DecoderObject.self)
        guard let image else { throw Failure(.invalidArgument, "image is NULL") }
        try decoder.finish(image)
    }
}

@_cdecl("imgdl_decoder_destroy") @implementation
public func imgdl_decoder_destroy(_ decoder: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(decoder, .decoder) }
}
