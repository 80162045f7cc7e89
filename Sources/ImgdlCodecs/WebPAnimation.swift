import CCodecs
import ImgdlCore

/// Animated WebP, so far its first frame as it lies on the canvas. libwebp composes whole files only.
enum WebPAnimation {
    struct Frame {
        var pixels: PixelBuffer
        var rows: Int
        /// Of the whole animation; 0 where that is not known.
        var count: Int
    }

    static func firstFrame(
        of body: UnsafeRawBufferPointer, _ features: WebPBitstreamFeatures, _ format: PixelFormat
    ) throws(Failure) -> Frame {
        var settings = WebPAnimDecoderOptions()
        guard WebPAnimDecoderOptionsInit(&settings) != 0 else { throw broken }
        settings.color_mode = format.isBGRA ? MODE_BGRA : MODE_RGBA
        var data = webpData(body)
        var info = WebPAnimInfo()
        guard let decoder = WebPAnimDecoderNew(&data, &settings) else { throw broken }
        defer { WebPAnimDecoderDelete(decoder) }
        var pixels: UnsafeMutablePointer<UInt8>?
        var time: Int32 = 0
        guard WebPAnimDecoderGetInfo(decoder, &info) != 0, info.canvas_width == features.width,
            info.canvas_height == features.height, WebPAnimDecoderGetNext(decoder, &pixels, &time) != 0, let pixels
        else { throw broken }
        let canvas = try PixelBuffer(width: Int(info.canvas_width), height: Int(info.canvas_height), format: format)
        canvas.bytes.copyMemory(from: pixels, byteCount: canvas.byteCount)
        premultiply(canvas)
        return Frame(pixels: canvas, rows: canvas.height, count: Int(info.frame_count))
    }

    /// The first frame of a file that is cut or damaged, as far as it goes; what its frame leaves free is transparent.
    static func salvagedFrame(
        of body: UnsafeRawBufferPointer, _ features: WebPBitstreamFeatures, _ format: PixelFormat
    ) -> Frame? {
        var data = webpData(body)
        var state = WEBP_DEMUX_PARSE_ERROR
        guard let demuxer = WebPDemuxPartial(&data, &state) else { return nil }
        defer { WebPDemuxDelete(demuxer) }
        var frame = WebPIterator()
        guard WebPDemuxGetFrame(demuxer, 1, &frame) != 0 else { return nil }
        defer { WebPDemuxReleaseIterator(&frame) }
        let (width, height) = (Int(features.width), Int(features.height))
        let (x, y) = (Int(frame.x_offset), Int(frame.y_offset))
        guard x >= 0, y >= 0, frame.width > 0, x + Int(frame.width) <= width, y + Int(frame.height) <= height,
            let canvas = try? PixelBuffer(width: width, height: height, format: format),
            let stride = Int32(exactly: canvas.stride)
        else { return nil }
        let offset = y * canvas.stride + x * format.bytesPerPixel
        let target = canvas.bytes.advanced(by: offset).assumingMemoryBound(to: UInt8.self)
        guard let decoder = WebPINewRGB(format.isBGRA ? MODE_BGRA : MODE_RGBA, target, canvas.byteCount - offset, stride)
        else { return nil }
        defer { WebPIDelete(decoder) }
        _ = WebPIUpdate(decoder, frame.fragment.bytes, frame.fragment.size)
        var last: Int32 = 0
        guard WebPIDecGetRGB(decoder, &last, nil, nil, nil) != nil, last > 0 else { return nil }
        premultiply(canvas)
        let isWhole = last == frame.height
        return Frame(pixels: canvas, rows: isWhole ? height : y + Int(last), count: 0)
    }

    private static var broken: Failure { Failure(.badImageData, "libwebp: the animation is broken") }

    private static func webpData(_ body: UnsafeRawBufferPointer) -> WebPData {
        WebPData(bytes: body.baseAddress?.assumingMemoryBound(to: UInt8.self), size: body.count)
    }

    private static func premultiply(_ canvas: PixelBuffer) {
        guard canvas.format.isPremultiplied else { return }
        codec_premultiply(canvas.bytes.assumingMemoryBound(to: UInt8.self), canvas.width * canvas.height)
    }
}
