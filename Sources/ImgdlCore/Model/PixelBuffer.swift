import CSystem

/// Memory for one canvas, zeroed: what no decoder has written yet is transparent.
///
/// A decoder writes it on one thread and hands out `DecodedImage`s that share it; rows it has called ready are never
/// written again. Freed with its last reference, on whichever thread that is.
package final class PixelBuffer: @unchecked Sendable {
    package let width: Int
    package let height: Int
    /// Bytes from one row to the next; there is no padding.
    package let stride: Int
    package let format: PixelFormat
    package let bytes: UnsafeMutableRawPointer
    private let capacity: Int

    package var byteCount: Int { stride * height }

    /// Throws `outOfMemory`; width and height are positive and have passed the pixel limit.
    package init(width: Int, height: Int, format: PixelFormat) throws(Failure) {
        let (stride, strideOverflow) = width.multipliedReportingOverflow(by: format.bytesPerPixel)
        let (size, sizeOverflow) = stride.multipliedReportingOverflow(by: height)
        var capacity = 0
        guard width > 0, height > 0, !strideOverflow, !sizeOverflow,
            let memory = system_pixels_allocate(size, &capacity)
        else {
            throw Failure(.outOfMemory, "no memory for a canvas of \(width) × \(height) pixels")
        }
        self.width = width
        self.height = height
        self.stride = stride
        self.format = format
        self.bytes = memory
        self.capacity = capacity
    }

    deinit { system_pixels_free(bytes, capacity) }
}
