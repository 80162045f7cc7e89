import CImgdl

/// What a program gets through the C interface: the verdict, and a sum over every pixel of the picture and its frames, so
/// that each of them is read.
struct Outcome: Equatable {
    var code: imgdl_status = 0
    var format: imgdl_format = 0
    var width: UInt32 = 0
    var height: UInt32 = 0
    var frames: UInt32 = 0
    var notes: imgdl_colour_notes = 0
    var sum: UInt64 = 0

    /// Releases the image. `seenAs`: see `Sum`.
    init(_ code: imgdl_status, _ image: OpaquePointer?, seenAs: Sum.View = .stored) {
        self.code = code
        guard let image else { return }
        (width, height) = (imgdl_image_width(image), imgdl_image_height(image))
        format = imgdl_image_format(image)
        frames = imgdl_image_frame_count(image)
        notes = imgdl_image_colour_notes(image)
        var sum = Sum(seenAs)
        sum.add(image)
        for index in 1..<max(1, frames) {
            var frame: OpaquePointer?
            guard imgdl_image_frame(image, index, &frame) == 0 else { break }
            sum.add(frame)
            sum.add(UInt64(imgdl_image_frame_duration_ms(image, index)))
            imgdl_image_release(frame)
        }
        var length = 0
        let profile = imgdl_image_icc_profile(image, &length)
        for byte in UnsafeRawBufferPointer(start: profile, count: length) { sum.add(UInt64(byte)) }
        self.sum = sum.value
        imgdl_image_release(image)
    }
}

/// A number for pixels.
struct Sum {
    /// How they are looked at: so that pictures in formats that say the same have the same sum.
    enum View: Equatable {
        /// Byte by byte.
        case stored
        /// R, G, B and, if wanted, A in 8 bits; alpha multiplied or not, as it is.
        case channels(alpha: Bool)
    }

    private let view: View
    private(set) var value: UInt64 = 0

    init(_ view: View) { self.view = view }

    mutating func add(_ number: UInt64) { value = value &* 31 &+ number }

    /// The part of the image that holds pixels: the whole one if it is complete.
    mutating func add(_ image: OpaquePointer?) {
        let ready = imgdl_image_ready(image)
        let stride = imgdl_image_stride(image)
        let format = imgdl_image_pixel_format(image)
        let pixel = bytesPerPixel(format)
        guard let pixels = imgdl_image_pixels(image), ready.height > 0 else { return }
        for y in Int(ready.y)..<Int(ready.y + ready.height) {
            let start = pixels + y * stride + Int(ready.x) * pixel
            let row = UnsafeRawBufferPointer(start: start, count: Int(ready.width) * pixel)
            switch view {
            case .stored: for byte in row { add(UInt64(byte)) }
            case .channels(let alpha): addChannels(row, format, pixel, alpha: alpha)
            }
        }
    }

    private mutating func addChannels(
        _ row: UnsafeRawBufferPointer, _ format: imgdl_pixel_format, _ pixel: Int, alpha: Bool
    ) {
        let isBGRA =
            format == UInt32(IMGDL_PIXEL_FORMAT_BGRA8) || format == UInt32(IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED)
        let channels = alpha ? 4 : 3
        for start in Swift.stride(from: 0, to: row.count, by: pixel) {
            for channel in 0..<channels {
                let place = isBGRA && channel < 3 ? 2 - channel : channel
                // Both bytes of a word are the same where it is 257 times a byte.
                add(UInt64(row[start + (pixel == 8 ? 2 * place : place)]))
                if pixel == 8 { value &+= UInt64(row[start + 2 * place]) ^ UInt64(row[start + 2 * place + 1]) }
            }
        }
    }

    private func bytesPerPixel(_ format: imgdl_pixel_format) -> Int {
        switch format {
        case UInt32(IMGDL_PIXEL_FORMAT_RGB8): 3
        case UInt32(IMGDL_PIXEL_FORMAT_RGBA16): 8
        default: 4
        }
    }
}
