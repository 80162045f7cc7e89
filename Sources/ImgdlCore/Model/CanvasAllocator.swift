/// Where the host wants canvases: its own memory, so that no pixel is copied. Its functions may be called on any thread.
package struct CanvasAllocator: Hashable, @unchecked Sendable {
    package typealias Allocate =
        @convention(c) (
            UInt32, UInt32, UInt32, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?
        ) -> UnsafeMutableRawPointer?
    package typealias Deallocate = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void

    private let allocateFunction: Allocate
    private let deallocateFunction: Deallocate
    private let userData: UnsafeMutableRawPointer?

    package init(allocate: Allocate, deallocate: Deallocate, userData: UnsafeMutableRawPointer?) {
        (allocateFunction, deallocateFunction, self.userData) = (allocate, deallocate, userData)
    }

    /// `stride` goes in as the least and comes out as the host wants it. Throws `outOfMemory` for NULL, and
    /// `invalidArgument` for a stride that is too small.
    func allocate(
        width: Int, height: Int, bytesPerPixel: Int, stride: inout Int
    ) throws(Failure) -> UnsafeMutableRawPointer {
        guard let columns = UInt32(exactly: width), let rows = UInt32(exactly: height) else {
            throw Failure(.outOfMemory, "no memory for a canvas of \(width) × \(height) pixels")
        }
        let least = stride
        let memory = HostCode.ask { allocateFunction(columns, rows, UInt32(bytesPerPixel), &stride, userData) }
        guard let memory = memory ?? nil else {
            throw Failure(.outOfMemory, "the allocator gave no memory for a canvas of \(width) × \(height) pixels")
        }
        guard stride >= least, !stride.multipliedReportingOverflow(by: height).overflow else {
            deallocate(memory)
            throw Failure(.invalidArgument, "the allocator's stride is \(stride), and a row has \(least) bytes")
        }
        return memory
    }

    func deallocate(_ memory: UnsafeMutableRawPointer) { HostCode.run { deallocateFunction(memory, userData) } }

    private var identity: [UnsafeRawPointer?] {
        [
            unsafeBitCast(allocateFunction, to: UnsafeRawPointer?.self),
            unsafeBitCast(deallocateFunction, to: UnsafeRawPointer?.self), UnsafeRawPointer(userData),
        ]
    }

    package static func == (left: CanvasAllocator, right: CanvasAllocator) -> Bool { left.identity == right.identity }
    package func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}
