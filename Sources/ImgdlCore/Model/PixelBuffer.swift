import CSystem

/// Memory for one canvas, the library's own or the host's.
///
/// A decoder writes it on one thread and hands out `DecodedImage`s that share it; rows it has called ready are never
/// written again, and what it has not written yet is transparent to whoever is handed one. Freed with its last reference,
/// on whichever thread that is.
package final class PixelBuffer: @unchecked Sendable {
    package let width: Int
    package let height: Int
    /// Bytes from one row to the next; in the host's memory there may be padding, which is not touched.
    package let stride: Int
    package let format: PixelFormat
    /// Where no decoder has written: zeros, or until `showOnly` what was there before.
    package let bytes: UnsafeMutableRawPointer
    private let capacity: Int
    private let allocator: CanvasAllocator?
    /// What was in this memory before is still there, where no decoder has written.
    private var holdsOldBytes: Bool

    package var byteCount: Int { stride * height }
    /// Bytes of the pixels in a row.
    package var rowBytes: Int { width * format.bytesPerPixel }
    /// In the host's memory.
    package var isHosts: Bool { allocator != nil }
    package var isPacked: Bool { stride == rowBytes }

    /// Throws `outOfMemory`, and what the allocator does wrong; width and height are positive and have passed the pixel
    /// limit. Transparent, unless `isCleared` is false: for a decoder that writes every pixel, in most cases before anybody
    /// looks.
    package init(
        width: Int, height: Int, format: PixelFormat, allocator: CanvasAllocator? = nil, isCleared: Bool = true
    ) throws(Failure) {
        var (stride, strideOverflow) = width.multipliedReportingOverflow(by: format.bytesPerPixel)
        let (size, sizeOverflow) = stride.multipliedReportingOverflow(by: height)
        guard width > 0, height > 0, !strideOverflow, !sizeOverflow else {
            throw Failure(.outOfMemory, "no memory for a canvas of \(width) × \(height) pixels")
        }
        var capacity = 0
        var isZero: Int32 = 0
        let memory: UnsafeMutableRawPointer
        if let allocator {
            memory = try allocator.allocate(
                width: width, height: height, bytesPerPixel: format.bytesPerPixel, stride: &stride)
        } else if let own = system_pixels_allocate(size, &capacity, &isZero) {
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
        holdsOldBytes = isZero == 0
        if isCleared { showOnly(PixelRectangle(x: 0, y: 0, width: 0, height: 0)) }
    }

    /// The first call makes everything outside `ready` transparent: before anybody sees the canvas, and on the thread that
    /// writes it.
    package func showOnly(_ ready: PixelRectangle) {
        guard holdsOldBytes else { return }
        holdsOldBytes = false
        clear(rows: 0..<ready.y, from: 0, to: width)
        clear(rows: ready.y..<ready.y + ready.height, from: 0, to: ready.x)
        clear(rows: ready.y..<ready.y + ready.height, from: ready.x + ready.width, to: width)
        clear(rows: ready.y + ready.height..<height, from: 0, to: width)
    }

    /// Is told how many pixels will be written next, and throws to have that left.
    package typealias Step = (_ pixels: Int) throws(Failure) -> Void

    /// Makes all of it transparent that is not yet; in the host's memory, which may be of any size, a part at a time.
    package func clear(_ step: Step) throws(Failure) {
        guard holdsOldBytes else { return }
        let rows = isHosts ? max(1, Self.part / stride) : height
        for first in Swift.stride(from: 0, to: height, by: rows) {
            let part = first..<min(height, first + rows)
            try step(part.count * width)
            clear(rows: part, from: 0, to: width)
        }
        holdsOldBytes = false
    }

    /// Has the system bring its pages, of which it clears each, a part at a time: for a decoder whose first pixels lie on
    /// all of them. Of what is not written yet.
    package func bringPages(_ step: Step) throws(Failure) {
        for first in Swift.stride(from: 0, to: byteCount, by: Self.part) {
            try step(.max)
            system_pixels_touch(bytes + first, min(Self.part, byteCount - first))
        }
    }

    /// A huge page, which takes a few tenths of a millisecond.
    private static var part: Int { 2 << 20 }

    private func clear(rows: Range<Int>, from first: Int, to end: Int) {
        guard first < end, !rows.isEmpty else { return }
        let pixel = format.bytesPerPixel
        if first == 0, end == width, isPacked {
            return system_pixels_clear(bytes + rows.lowerBound * stride, rows.count * stride, capacity)
        }
        for row in rows {
            (bytes + row * stride + first * pixel).initializeMemory(
                as: UInt8.self, repeating: 0, count: (end - first) * pixel)
        }
    }

    deinit {
        if let allocator { allocator.deallocate(bytes) } else { system_pixels_free(bytes, capacity) }
    }
}
