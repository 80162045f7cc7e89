import CSystem

/// Memory for one canvas, the library's own or the host's, zeroed: what no decoder has written yet is transparent.
///
/// A decoder writes it on one thread and hands out `DecodedImage`s that share it; rows it has called ready are never
/// written again. Freed with its last reference, on whichever thread that is.
package final class PixelBuffer: @unchecked Sendable {
    package let width: Int
    package let height: Int
    /// Bytes from one row to the next; in the host's memory there may be padding, which is not touched.
    package let stride: Int
    package let format: PixelFormat
    package let bytes: UnsafeMutableRawPointer
    private let capacity: Int
    private let allocator: CanvasAllocator?

    package var byteCount: Int { stride * height }
    /// Bytes of the pixels in a row.
    package var rowBytes: Int { width * format.bytesPerPixel }
    /// In the host's memory.
    package var isHosts: Bool { allocator != nil }
    package var isPacked: Bool { stride == rowBytes }

    /// Throws `outOfMemory`, and what the allocator does wrong; width and height are positive and have passed the pixel
    /// limit.
    package init(
        width: Int, height: Int, format: PixelFormat, allocator: CanvasAllocator? = nil
    ) throws(Failure) {
        var (stride, strideOverflow) = width.multipliedReportingOverflow(by: format.bytesPerPixel)
        let (size, sizeOverflow) = stride.multipliedReportingOverflow(by: height)
        guard width > 0, height > 0, !strideOverflow, !sizeOverflow else {
            throw Failure(.outOfMemory, "no memory for a canvas of \(width) × \(height) pixels")
        }
        var capacity = 0
        let memory: UnsafeMutableRawPointer
        if let allocator {
            let rowBytes = stride
            memory = try allocator.allocate(
                width: width, height: height, bytesPerPixel: format.bytesPerPixel, stride: &stride)
            for row in 0..<height {
                (memory + row * stride).initializeMemory(as: UInt8.self, repeating: 0, count: rowBytes)
            }
        } else if let own = system_pixels_allocate(size, &capacity) {
            memory = own
        } else {
            throw Failure(.outOfMemory, "no memory for a canvas of \(width) × \(height) pixels")
        }
        self.allocator = allocator
        self.width = width
        self.height = height
        self.stride = stride
        self.format = format
        self.bytes = memory
        self.capacity = capacity
    }

    deinit {
        if let allocator { allocator.deallocate(bytes) } else { system_pixels_free(bytes, capacity) }
    }
}
