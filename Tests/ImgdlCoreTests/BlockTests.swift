import CSystem
import XCTest

/// Memory of bodies: large blocks are used again, by one at a time.
final class BlockTests: XCTestCase {
    private struct Block {
        let bytes: UnsafeMutableRawPointer
        let capacity: Int

        init?(_ size: Int) {
            var found = 0
            guard let bytes = system_block_allocate(size, &found) else { return nil }
            self.bytes = bytes
            capacity = found
        }

        func free() { system_block_free(bytes, capacity) }
    }

    /// What other tests have left goes first.
    override func setUpWithError() throws { try XCTUnwrap(Block(64 << 20)).free() }

    func testOneThatWasFreedIsTakenAgain() throws {
        let first = try XCTUnwrap(Block(400_000))
        XCTAssertGreaterThanOrEqual(first.capacity, 400_000)
        memset(first.bytes, 1, first.capacity)
        first.free()
        let second = try XCTUnwrap(Block(300_000))
        XCTAssertEqual(second.bytes, first.bytes)
        XCTAssertEqual(second.capacity, first.capacity)
        second.free()
    }

    func testTheOneThatFitsBestIsTaken() throws {
        let blocks = try [900_000, 700_000, 800_000].map { try XCTUnwrap(Block($0)) }
        for block in blocks { block.free() }
        let found = try XCTUnwrap(Block(650_000))
        XCTAssertEqual(found.bytes, blocks[1].bytes)
        found.free()
    }

    func testNobodyGetsMoreThanHalfAsMuchAgain() throws {
        let large = try XCTUnwrap(Block(900_000))
        large.free()
        let small = try XCTUnwrap(Block(500_000))
        XCTAssertLessThanOrEqual(small.capacity, 750_000)
        small.free()
    }

    func testWhatIsTooLargeForTheSystemIsRefused() {
        XCTAssertNil(Block(.max))
        XCTAssertNil(Block(1 << 60))
    }

    func testEmptyAndSmallOnesAreMemory() throws {
        for size in [0, 1, 1_000, 262_143, 262_144, 262_145] {
            let block = try XCTUnwrap(Block(size))
            XCTAssertGreaterThanOrEqual(block.capacity, size)
            memset(block.bytes, 7, size)
            block.free()
        }
    }

    func testNoTwoThreadsHaveTheSameOne() {
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<300 {
                let size = 262_144 + (thread * 37 + round) % 9 * 65_536
                guard let block = Block(size) else { return XCTFail("no memory") }
                let mark = UInt64(thread << 32 | round)
                let ends = [0, block.capacity - 8]
                for end in ends { block.bytes.storeBytes(of: mark, toByteOffset: end, as: UInt64.self) }
                sched_yield()
                for end in ends { XCTAssertEqual(block.bytes.load(fromByteOffset: end, as: UInt64.self), mark) }
                block.free()
            }
        }
    }
}
