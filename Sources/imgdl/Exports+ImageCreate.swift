import CImgdl
import ImgdlCore

@_cdecl("imgdl_image_create") @implementation
public func imgdl_image_create(
    _ width: UInt32, _ height: UInt32, _ format: imgdl_pixel_format, _ pixels: UnsafeRawPointer?, _ stride: Int,
    _ image: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let image else { throw Failure(.invalidArgument, "image is NULL") }
        guard let pixels else { throw Failure(.invalidArgument, "pixels is NULL") }
        guard (1...UInt32(Int32.max)).contains(width), (1...UInt32(Int32.max)).contains(height) else {
            throw Failure(.invalidArgument, "an image of \(width) × \(height) pixels")
        }
        guard let format = format == 0 ? .rgba8 : PixelFormat(rawValue: format) else {
            throw Failure(.invalidArgument, "\(format) is no pixel format")
        }
        guard stride >= format.bytesPerPixel * Int(width), !stride.multipliedReportingOverflow(by: Int(height)).overflow
        else {
            throw Failure(.invalidArgument, "a stride of \(stride) bytes for \(width) pixels")
        }
        let canvas = try PixelBuffer(width: Int(width), height: Int(height), format: format, isCleared: false)
        for row in 0..<canvas.height {
            canvas.bytes.advanced(by: row * canvas.stride)
                .copyMemory(from: pixels + row * stride, byteCount: canvas.stride)
        }
        let header = ImageHeader(
            format: .other, width: canvas.width, height: canvas.height, hasAlpha: true, isProgressive: false)
        image.pointee = ImageObject.handle(
            DecodedImage(
                header: header, pixels: canvas,
                ready: PixelRectangle(x: 0, y: 0, width: canvas.width, height: canvas.height), isComplete: true))
    }
}
