import CImgdl
import ImgdlCodecs
import ImgdlCore

/// The functions of an imgdl_coder_table (features X5, T22). Its end is the table's: when it was taken out and none of its
/// decoders is left.
final class HostCodec: CodecPlugin, @unchecked Sendable {
    let canDecodeFunction: (UnsafeRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32
    let createFunction: (UnsafePointer<imgdl_decode_options>?, UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    let feedFunction: (UnsafeMutableRawPointer?, UnsafeRawPointer?, Int) -> imgdl_status
    let infoFunction: (UnsafeMutableRawPointer?, UnsafeMutablePointer<imgdl_image_info>?) -> imgdl_status
    let partialFunction: ((UnsafeMutableRawPointer?, UnsafeMutablePointer<OpaquePointer?>?) -> imgdl_status)?
    let finishFunction: (UnsafeMutableRawPointer?, UnsafeMutablePointer<OpaquePointer?>?) -> imgdl_status
    let destroyFunction: (UnsafeMutableRawPointer?) -> Void
    private let table: imgdl_coder_table

    init(_ table: imgdl_coder_table) throws(Failure) {
        guard let canDecode = table.can_decode, let create = table.create, let feed = table.feed, let info = table.info,
            let finish = table.finish, let destroy = table.destroy
        else { throw Failure(.invalidArgument, "a function of imgdl_coder_table but partial is NULL") }
        guard table.reserved == 0 else { throw Failure(.unsupportedOption, "imgdl_coder_table.reserved is not 0") }
        canDecodeFunction = canDecode
        createFunction = create
        feedFunction = feed
        infoFunction = info
        partialFunction = table.partial
        finishFunction = finish
        destroyFunction = destroy
        self.table = table
    }

    deinit { dispose(table.destructor, table.user_data) }

    func canDecode(_ prefix: UnsafeRawBufferPointer) -> Bool? {
        let answer = HostCode.ask { canDecodeFunction(prefix.baseAddress, prefix.count, table.user_data) } ?? 0
        return answer < 0 ? nil : answer > 0
    }

    func makeDecoder(_ options: DecodeOptions) throws(Failure) -> any ImageDecoder {
        let decoder = withUnsafePointer(to: Self.options(options)) { options in
            HostCode.ask { createFunction(options, table.user_data) }
        }
        guard let decoder = decoder ?? nil else { throw Failure(.outOfMemory, "the codec made no decoder") }
        return HostDecoder(self, decoder, options)
    }

    private static func options(_ options: DecodeOptions) -> imgdl_decode_options {
        var result = imgdl_decode_options()
        result.struct_size = UInt32(MemoryLayout<imgdl_decode_options>.stride)
        result.pixel_format = options.pixelFormat.rawValue
        var flags: UInt32 = 0
        if !options.appliesOrientation { flags |= UInt32(IMGDL_DECODE_IGNORE_ORIENTATION) }
        if options.decodesAllFrames { flags |= UInt32(IMGDL_DECODE_ALL_FRAMES) }
        if options.requiresAnimation { flags |= UInt32(IMGDL_DECODE_REQUIRE_ANIMATION) }
        if options.stretches { flags |= UInt32(IMGDL_DECODE_STRETCH) }
        if options.showsThumbnailFirst { flags |= UInt32(IMGDL_DECODE_THUMBNAIL_FIRST) }
        if options.maximumOutputBytes != nil { flags |= UInt32(IMGDL_DECODE_SCALE_DOWN) }
        result.flags = flags
        result.max_pixels = options.maximumPixels
        result.target_width = UInt32(clamping: options.targetWidth)
        result.target_height = UInt32(clamping: options.targetHeight)
        result.max_output_bytes = options.maximumOutputBytes ?? 0
        result.max_frames = UInt32(clamping: options.maximumFrames)
        result.format_hint = options.formatHint.rawValue
        result.max_side = UInt32(clamping: options.maximumSide ?? 0)
        result.max_scans = UInt32(clamping: options.maximumScans)
        result.max_animation_pixels = options.maximumAnimationPixels ?? 0
        result.max_metadata_bytes = UInt64(options.maximumMetadataBytes ?? 0)
        result.max_memory_bytes = options.maximumMemoryBytes ?? .max
        result.max_decode_ms = UInt32(clamping: options.maximumMilliseconds ?? .max)
        result.colour = options.convertsToSRGB ? 1 : 0
        result.good_enough_scan = UInt32(clamping: options.goodEnoughScan ?? 0)
        return result
    }
}

/// One picture that a codec of the host's decodes. What its functions do wrong is an error, and nothing of it is used.
/// `ChoosingDecoder` keeps the rest of the decoder's contract.
private final class HostDecoder: ImageDecoder {
    private let codec: HostCodec
    private let decoder: UnsafeMutableRawPointer
    private let options: DecodeOptions
    private(set) var header: ImageHeader?
    private var lastPartial: DecodedImage?

    init(_ codec: HostCodec, _ decoder: UnsafeMutableRawPointer, _ options: DecodeOptions) {
        self.codec = codec
        self.decoder = decoder
        self.options = options
    }

    deinit { HostCode.run { codec.destroyFunction(decoder) } }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        try check(ask { codec.feedFunction(decoder, bytes.baseAddress, bytes.count) })
        try readHeader()
    }

    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
        var handle: OpaquePointer?
        let status = ask { codec.finishFunction(decoder, &handle) }
        let image = take(handle)
        try check(status)
        guard let image else { throw Failure(.internal, "the codec says that it is done, and gave no image") }
        try readHeader()
        if options.requiresAnimation, header?.frameCount ?? 1 == 1 {
            throw Failure(.badImageData, "the picture is no animation")
        }
        return try adapt(image, isComplete: true)
    }

    func partialImage() -> DecodedImage? {
        guard let function = codec.partialFunction else { return nil }
        var handle: OpaquePointer?
        let status = ask { function(decoder, &handle) }
        guard let image = take(handle), status == ErrorCode.ok.rawValue,
            let partial = try? adapt(image, isComplete: false)
        else { return nil }
        lastPartial = partial
        return partial
    }

    func salvagedImage() -> DecodedImage? { partialImage() ?? lastPartial }

    /// The picture behind a handle that the codec gave; its reference is ours.
    private func take(_ handle: OpaquePointer?) -> DecodedImage? {
        let image = (HandleTable.shared.object(handle, .image) as? ImageObject)?.image
        _ = HandleTable.shared.release(handle, .image)
        return image
    }

    private func adapt(_ image: DecodedImage, isComplete: Bool) throws(Failure) -> DecodedImage {
        let adapted = try image.adapted(
            to: options,
            header ?? ImageHeader(format: .other, width: 0, height: 0, hasAlpha: true, isProgressive: false),
            isComplete: isComplete)
        if isComplete || header == nil { header = adapted.header }
        return adapted
    }

    private func readHeader() throws(Failure) {
        guard header == nil else { return }
        var info = imgdl_image_info()
        info.struct_size = UInt32(MemoryLayout<imgdl_image_info>.stride)
        let status = ask { codec.infoFunction(decoder, &info) }
        if status == ErrorCode.notReady.rawValue { return }
        try check(status)
        guard info.width > 0, info.height > 0, info.width <= Int32.max, info.height <= Int32.max else {
            throw Failure(.internal, "the codec says that the picture is \(info.width) × \(info.height) pixels")
        }
        try options.checkSize(width: Int(info.width), height: Int(info.height))
        let orientation = (1...8).contains(info.orientation) ? Int(info.orientation) : 1
        let isTurnedBack = orientation >= 5 && !options.appliesOrientation
        let size = OutputSize(
            width: Int(isTurnedBack ? info.height : info.width), height: Int(isTurnedBack ? info.width : info.height),
            options)
        header = ImageHeader(
            format: .other, width: size.width, height: size.height, orientation: orientation,
            frameCount: Int(info.frame_count), hasAlpha: info.has_alpha != 0, isProgressive: info.is_progressive != 0)
    }

    private func ask(_ function: () -> imgdl_status) -> imgdl_status {
        HostCode.ask(function) ?? ErrorCode.shutDown.rawValue
    }

    private func check(_ status: imgdl_status) throws(Failure) {
        guard status != ErrorCode.ok.rawValue else { return }
        guard let code = ErrorCode(rawValue: status), code != .notReady else {
            throw Failure(.internal, "the codec answered \(status), which is no error of a picture")
        }
        throw Failure(code, "the codec answered: \(code.sentence)")
    }
}
