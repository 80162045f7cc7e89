import Glibc
import ImgdlCore
import XCTest

/// Gives out memory with padding behind each row and odd alignment, filled with a pattern, and counts.
final class TestAllocator {
    static let pattern: UInt8 = 0xA5

    private(set) var given = 0
    private(set) var taken = 0
    var padding = 13
    var misalignment = 1
    var refuses = false
    private var blocks: [UnsafeMutableRawPointer: (stride: Int, row: Int, height: Int)] = [:]
    /// A byte of padding was written.
    private(set) var hasOverrun = false

    var allocator: CanvasAllocator {
        CanvasAllocator(
            allocate: { width, height, pixel, stride, userData in
                TestAllocator.from(userData).allocate(Int(width), Int(height), Int(pixel), stride)
            },
            deallocate: { memory, userData in TestAllocator.from(userData).deallocate(memory) },
            userData: Unmanaged.passUnretained(self).toOpaque())
    }

    private static func from(_ userData: UnsafeMutableRawPointer?) -> TestAllocator {
        Unmanaged<TestAllocator>.fromOpaque(userData!).takeUnretainedValue()
    }

    private func allocate(
        _ width: Int, _ height: Int, _ pixel: Int, _ stride: UnsafeMutablePointer<Int>?
    ) -> UnsafeMutableRawPointer? {
        XCTAssertEqual(stride?.pointee, width * pixel)
        if refuses { return nil }
        stride?.pointee = width * pixel + padding
        let size = (width * pixel + max(0, padding)) * height
        guard let memory = malloc(size + misalignment) else { return nil }
        memset(memory, Int32(Self.pattern), size + misalignment)
        given += 1
        blocks[memory + misalignment] = (width * pixel + padding, width * pixel, height)
        return memory + misalignment
    }

    private func deallocate(_ memory: UnsafeMutableRawPointer?) {
        guard let memory, let block = blocks.removeValue(forKey: memory) else { return XCTFail("not given, or twice") }
        for row in 0..<block.height {
            for at in block.row..<max(block.row, block.stride)
            where (memory + row * block.stride + at).load(as: UInt8.self) != Self.pattern { hasOverrun = true }
        }
        taken += 1
        free(memory - misalignment)
    }
}
