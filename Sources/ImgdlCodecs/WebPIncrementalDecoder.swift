import CCodecs
import ImgdlCore

/// libwebp's own incremental decoder, and where it writes.
final class WebPIncrementalDecoder {
    /// Memory of the caller's that lives as long as the decoder.
    struct Output {
        var start: UnsafeMutableRawPointer
        /// Bytes from one row to the next, and of all.
        var stride: Int
        var byteCount: Int
        /// libwebp scales to these where they are not the picture's own.
        var width: Int
        var height: Int
        var isBGRA: Bool
    }

    private let decoder: OpaquePointer
    /// libwebp looks at it until the end.
    private let configuration: UnsafeMutablePointer<WebPDecoderConfig>
    /// Bytes of the beginning that were given.
    private var begun = 0

    init(_ features: WebPBitstreamFeatures, _ output: Output) throws(Failure) {
        let configuration = UnsafeMutablePointer<WebPDecoderConfig>.allocate(capacity: 1)
        guard WebPInitDecoderConfig(configuration) != 0, let stride = Int32(exactly: output.stride),
            let width = Int32(exactly: output.width), let height = Int32(exactly: output.height)
        else {
            configuration.deallocate()
            throw Failure(.outOfMemory, "no memory for a WebP decoder")
        }
        configuration.pointee.options.use_scaling = width != features.width || height != features.height ? 1 : 0
        configuration.pointee.options.scaled_width = width
        configuration.pointee.options.scaled_height = height
        configuration.pointee.output.colorspace = output.isBGRA ? MODE_BGRA : MODE_RGBA
        configuration.pointee.output.is_external_memory = 1
        configuration.pointee.output.u.RGBA.rgba = output.start.assumingMemoryBound(to: UInt8.self)
        configuration.pointee.output.u.RGBA.stride = stride
        configuration.pointee.output.u.RGBA.size = output.byteCount
        guard let decoder = WebPIDecode(nil, 0, configuration) else {
            configuration.deallocate()
            throw Failure(.outOfMemory, "no memory for a WebP decoder")
        }
        self.decoder = decoder
        self.configuration = configuration
    }

    deinit {
        WebPIDelete(decoder)
        configuration.deallocate()
    }

    /// libwebp looks at what it has made at its first use, each time a picture begins, and has a lock for that: fork() waits
    /// for so much of each picture.
    private static let beginning = 16 * 1024

    /// `body` begins with the file's first byte, each time; it may have moved.
    func update(_ body: UnsafeRawBufferPointer) -> VP8StatusCode {
        let start = body.baseAddress?.assumingMemoryBound(to: UInt8.self)
        if begun < Self.beginning {
            begun = min(body.count, Self.beginning)
            let status = Thread.working { WebPIUpdate(decoder, start, begun) }
            if begun == body.count || status != VP8_STATUS_SUSPENDED { return status }
        }
        return WebPIUpdate(decoder, start, body.count)
    }

    /// Rows that are written. Of a lossless picture none that the last call wrote, if that failed.
    var rows: Int? {
        var last: Int32 = 0
        return WebPIDecGetRGB(decoder, &last, nil, nil, nil) != nil ? Int(last) : nil
    }
}
