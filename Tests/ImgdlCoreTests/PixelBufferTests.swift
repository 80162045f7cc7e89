import CSystem
import Dispatch
import XCTest

@testable import ImgdlCore

/// Memory of pictures is used again; nobody sees what was in it before.
final class PixelBufferTests: XCTestCase {
    private static let header = ImageHeader(
        format: .png, width: 1024, height: 1024, hasAlpha: true, isProgressive: false)

    /// Large enough to be kept when it is freed.
    private func usedCanvas(_ width: Int = 1024, _ height: Int = 1024) throws -> PixelBuffer {
        for _ in 0..<2 {
            let used = try PixelBuffer(width: width, height: height, format: .rgba8)
            memset(used.bytes, 0xAB, used.byteCount)
        }
        let canvas = try PixelBuffer(width: width, height: height, format: .rgba8, isCleared: false)
        memset(canvas.bytes, 0xAB, canvas.byteCount)
        return canvas
    }

    private func pixel(_ canvas: PixelBuffer, _ x: Int, _ y: Int) -> UInt32 {
        canvas.bytes.loadUnaligned(fromByteOffset: y * canvas.stride + 4 * x, as: UInt32.self)
    }

    private func show(_ canvas: PixelBuffer, _ ready: PixelRectangle) -> DecodedImage {
        DecodedImage(header: Self.header, pixels: canvas, ready: ready, isComplete: false)
    }

    /// A hundred megabytes, in a small part of the time that writing them takes.
    func testMuchIsClearedAtOnce() throws {
        let size = 128 << 20
        var capacity = 0
        var isZero: Int32 = 0
        let memory = try XCTUnwrap(system_pixels_allocate(size, &capacity, &isZero))
        defer { system_pixels_free(memory, capacity) }
        memset(memory, 0xAB, size)
        var (start, end) = (timespec(), timespec())
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        system_pixels_clear(memory + 5, size - 8, capacity)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        XCTAssertLessThan((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1_000_000, 50)
        let bytes = UnsafeRawBufferPointer(start: memory, count: size)
        for at in [0, 4, size - 3, size - 1] { XCTAssertEqual(bytes[at], 0xAB, "\(at)") }
        for at in [5, 4096, 2 << 20, 70_000_001, size - (2 << 20), size - 4] { XCTAssertEqual(bytes[at], 0, "\(at)") }
    }

    /// R27: an early picture is transparent where its pixels have not come, also in memory that held another picture.
    func testWhatIsNotReadyIsTransparentInUsedMemory() throws {
        let ready = PixelRectangle(x: 100, y: 200, width: 300, height: 400)
        for height in [32, 256, 1024] {
            let canvas = try usedCanvas(1024, height)
            let ready = height == 1024 ? ready : PixelRectangle(x: 7, y: 3, width: 1000, height: 20)
            _ = show(canvas, ready)
            for y in 0..<height {
                for x in [0, ready.x - 1, ready.x, ready.x + ready.width - 1, ready.x + ready.width, 1023] {
                    let isReady =
                        (ready.x..<ready.x + ready.width).contains(x) && (ready.y..<ready.y + ready.height).contains(y)
                    XCTAssertEqual(pixel(canvas, x, y), isReady ? 0xABAB_ABAB : 0, "\(x), \(y)")
                }
            }
        }
    }

    /// What has been written since the first look stays, ready or not.
    func testOnlyTheFirstLookClears() throws {
        let canvas = try usedCanvas()
        _ = show(canvas, PixelRectangle(x: 0, y: 0, width: 1024, height: 10))
        memset(canvas.bytes, 0xCD, canvas.byteCount)
        _ = show(canvas, PixelRectangle(x: 0, y: 0, width: 1024, height: 20))
        XCTAssertEqual(pixel(canvas, 1023, 1023), 0xCDCD_CDCD)
    }

    /// A canvas that is drawn on is transparent from the beginning.
    func testClearedCanvasInUsedMemory() throws {
        for height in [16, 256, 1024] {
            _ = try usedCanvas(1024, height)
            let canvas = try PixelBuffer(width: 1024, height: height, format: .rgba8)
            let bytes = UnsafeRawBufferPointer(start: canvas.bytes, count: canvas.byteCount)
            XCTAssert(bytes.allSatisfy { $0 == 0 })
        }
    }

    /// Memory for so many bytes, and whether it is fresh from the system.
    private func takeMemory(_ size: Int) throws -> (memory: UnsafeMutableRawPointer, capacity: Int, isFresh: Bool) {
        var capacity = 0
        var isZero: Int32 = 0
        let memory = try XCTUnwrap(system_pixels_allocate(size, &capacity, &isZero))
        return (memory, capacity, isZero != 0)
    }

    /// The same, freed again.
    @discardableResult
    private func useMemory(_ size: Int) throws -> (memory: UnsafeMutableRawPointer, isMapped: Bool, isFresh: Bool) {
        let used = try takeMemory(size)
        memset(used.memory, 0xAB, size)
        system_pixels_free(used.memory, used.capacity)
        return (used.memory, used.capacity > 0, used.isFresh)
    }

    /// Whatever their size: what was used last is still in the processor's caches.
    func testPicturesOfOrdinarySizeTakeTurns() throws {
        let first = try useMemory(360_000)
        // The address sanitizer is to see each picture's end.
        try XCTSkipUnless(first.isMapped, "built with the address sanitizer")
        for size in [1_960_000, 131_072, 2 << 20] {
            let next = try useMemory(size)
            XCTAssertEqual(next.memory, first.memory, "\(size)")
            XCTAssertFalse(next.isFresh, "\(size)")
        }
        XCTAssertFalse(try useMemory(131_071).isMapped)
    }

    /// Once, when nobody has it any more and nothing keeps it.
    func testMemoryCountsAsGivenBackWhereItGoes() throws {
        func givenBack(_ body: () -> Void) -> Int {
            let before = system_bytes_given_back()
            body()
            return system_bytes_given_back() - before
        }
        system_pixels_release_kept()
        for height in [16, 1_500] {
            var first: PixelBuffer? = try PixelBuffer(width: 1024, height: height, format: .rgba8)
            var second = first
            let size = try XCTUnwrap(first).byteCount
            XCTAssertEqual(givenBack { first = nil }, 0)
            XCTAssertEqual(givenBack { system_pixels_release_kept() }, 0)
            let given = givenBack {
                second = nil
                system_pixels_release_kept()
            }
            XCTAssertNil(second)
            XCTAssertGreaterThanOrEqual(given, size)
            XCTAssertLessThan(given, size + (2 << 20))
            XCTAssertEqual(givenBack { system_pixels_release_kept() }, 0)
        }
    }

    /// Where pictures of several sizes come, those that serve most of them stay.
    func testLargestMemoryIsKept() throws {
        system_pixels_release_kept()
        try useMemory(12 << 20)
        var held: [PixelBuffer] = []
        for _ in 0..<40 { held.append(try PixelBuffer(width: 1024, height: 600, format: .rgba8, isCleared: false)) }
        held = []
        XCTAssertFalse(try useMemory(12 << 20).isFresh)
        XCTAssertFalse(try useMemory(4 << 20).isFresh)
    }

    /// One that is smaller than all that are kept takes nobody's place.
    func testSmallerMemoryTakesNoPlaceOfLarger() throws {
        system_pixels_release_kept()
        let kept = min(3, sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 1)
        let large = try (0..<kept).map { _ in try takeMemory(12 << 20) }
        let small = try takeMemory(3 << 20)
        for used in large + [small] { system_pixels_free(used.memory, used.capacity) }
        let again = try (0..<kept).map { _ in try takeMemory(12 << 20) }
        for used in again { system_pixels_free(used.memory, used.capacity) }
        XCTAssert(again.allSatisfy { !$0.isFresh })
    }

    /// Pictures of 24 megapixels, one after the other: more is kept while there is work, and not after it.
    func testTheLargestMemoryIsKeptWhileThereIsWork() throws {
        let size = 96 << 20
        try useMemory(size)
        XCTAssert(try useMemory(size).isFresh)
        system_pixels_begin_work()
        try useMemory(size)
        XCTAssertFalse(try useMemory(size).isFresh)
        system_pixels_end_work()
        XCTAssert(try useMemory(size).isFresh)
    }

    /// Pictures of 12 and 24 megapixels in turn, more of them than are kept: those stay that serve both.
    func testTheLargestStaysWhereThereIsNoRoomForAll() throws {
        system_pixels_release_kept()
        system_pixels_begin_work()
        defer { system_pixels_end_work() }
        let size = 92 << 20
        let pictures = try [size, size / 2, size / 2, size].map { try takeMemory($0) }
        for (index, picture) in pictures.enumerated() {
            picture.memory.storeBytes(of: UInt8(index + 1), toByteOffset: picture.capacity - 1, as: UInt8.self)
        }
        for picture in pictures { system_pixels_free(picture.memory, picture.capacity) }
        let next = try (0..<2).map { _ in try takeMemory(size) }
        let ends = next.map { $0.memory.load(fromByteOffset: size - 1, as: UInt8.self) }
        for picture in next { system_pixels_free(picture.memory, picture.capacity) }
        XCTAssertEqual(Set(ends), [1, 4], "as they were, and none made larger")
    }

    /// A larger picture gets the pages of a smaller one, and the system clears what it has more.
    func testMemoryThatIsTooSmallIsMadeLarger() throws {
        system_pixels_release_kept()
        system_pixels_begin_work()
        defer { system_pixels_end_work() }
        try useMemory(46 << 20)
        let (memory, capacity, isFresh) = try takeMemory(92 << 20)
        defer { system_pixels_free(memory, capacity) }
        XCTAssertFalse(isFresh)
        XCTAssertEqual(capacity, 92 << 20)
        XCTAssertEqual(UInt(bitPattern: memory) % (2 << 20), 0, "where huge pages fit")
        let bytes = UnsafeRawBufferPointer(start: memory, count: capacity)
        XCTAssertEqual(bytes[(46 << 20) - 1], 0xAB)
        XCTAssert(stride(from: 46 << 20, to: capacity, by: 1_021).allSatisfy { bytes[$0] == 0 })
        memset(memory, 0xCD, capacity)
    }

    /// Not while there is work, when the next picture needs it.
    func testTheSystemMayTakeWhatIsKeptWhenTheWorkIsOver() throws {
        func lazyBytes() throws -> Int {
            let rollup = try String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)
            let line = try XCTUnwrap(rollup.split(separator: "\n").first { $0.hasPrefix("LazyFree:") })
            return 1024 * (try XCTUnwrap(line.split(separator: " ").compactMap { Int($0) }.first))
        }
        system_pixels_release_kept()
        let before = try lazyBytes()
        system_pixels_begin_work()
        try useMemory(46 << 20)
        XCTAssertLessThan(try lazyBytes() - before, 1 << 20)
        system_pixels_end_work()
        XCTAssertGreaterThan(try lazyBytes() - before, 40 << 20)
    }

    func testThreadsThatDecodeAreAtWork() throws {
        let size = 96 << 20
        let pool = WorkerPool(width: 1)
        let (mayEnd, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        XCTAssert(pool.submit(.normal) { mayEnd.wait() })
        try useMemory(size)
        XCTAssertFalse(try useMemory(size).isFresh)
        XCTAssert(pool.submit(.normal) { isDone.signal() })
        mayEnd.signal()
        isDone.wait()
        pool.close()
        try useMemory(size)
        XCTAssert(try useMemory(size).isFresh)
    }

    /// A program that has done with pictures gets their memory back.
    func testMemoryGoesBackWithTheThreadsThatDecode() throws {
        for size in [500_000, 3 << 20] {
            try useMemory(size)
            guard try useMemory(size).isMapped else { continue }
            XCTAssertFalse(try useMemory(size).isFresh, "\(size)")
            WorkerPool(width: 1).close()
            XCTAssert(try useMemory(size).isFresh, "\(size)")
        }
    }

    /// Whoever keeps pictures keeps a few of these places; the others have memory of their own.
    func testPicturesThatAreKeptShareNothing() throws {
        for count in [524_287, 40_000] {
            let canvases = try (0..<100).map { _ in
                try PixelBuffer(width: count, height: 1, format: .rgba8, isCleared: false)
            }
            for (number, canvas) in canvases.enumerated() { memset(canvas.bytes, Int32(number), canvas.byteCount) }
            for (number, canvas) in canvases.enumerated() {
                for place in stride(from: 0, to: canvas.byteCount, by: 4_000) {
                    XCTAssertEqual(canvas.bytes.load(fromByteOffset: place, as: UInt8.self), UInt8(number))
                }
            }
        }
    }

    func testManyThreadsShareNothing() {
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<2_000 {
                guard let canvas = try? PixelBuffer(width: 200, height: 200, format: .rgba8, isCleared: false) else {
                    return XCTFail("no memory")
                }
                let mark = UInt32(thread * 2_000 + round)
                for row in stride(from: 0, to: 200, by: 40) {
                    canvas.bytes.storeBytes(of: mark, toByteOffset: row * canvas.stride, as: UInt32.self)
                }
                for row in stride(from: 0, to: 200, by: 40) where pixel(canvas, 0, row) != mark {
                    XCTFail("another thread wrote row \(row)")
                }
            }
        }
    }
}
