import CSystem
import XCTest

@testable import ImgdlCore

/// Memory of bodies, used again (features B20, I11).
final class BodyMemoryTests: XCTestCase {
    private let memory = BodyMemory()

    /// Bytes that went to malloc or the system meanwhile.
    private func givenBack(_ body: () -> Void) -> Int {
        let before = system_bytes_given_back()
        body()
        return system_bytes_given_back() - before
    }

    func testTheNextBodyGetsWhatOneHasLeft() throws {
        var body: BodySlice? = filled(100_000, with: 1)
        let start = try XCTUnwrap(body).start
        XCTAssertEqual(memory.keptBytes, 0)
        body = nil
        XCTAssertEqual(memory.keptBytes, 100_000)

        let slice = filled(70_000, with: 2)
        XCTAssertEqual(slice.start, start)
        XCTAssertEqual(slice.count, 70_000)
        XCTAssertTrue(slice.withBytes { $0.allSatisfy { $0 == 2 } })
        XCTAssertEqual(memory.keptBytes, 0)
    }

    /// What they have too much is bounded, all together: they may be kept for long.
    func testBodiesHaveNoMoreTooMuchThanTheLimit() {
        var bodies: [BodySlice] = []
        let most = BodyMemory.mostExcess / 180_000
        for _ in 0..<most {
            _ = filled(200_000, with: 1)
            bodies.append(filled(20_000, with: 2))
            XCTAssertEqual(memory.keptBytes, 0)
        }
        _ = filled(200_000, with: 1)
        bodies.append(filled(20_000, with: 2))
        XCTAssertEqual(memory.keptBytes, 200_000)
        // What is free again is the next one's.
        bodies.removeFirst()
        bodies.append(filled(20_000, with: 2))
        XCTAssertEqual(memory.keptBytes, 200_000)
        XCTAssertEqual(bodies.count, most + 1)
    }

    /// Half as much again is not counted.
    func testABodyMayHaveHalfAsMuchAgain() {
        var bodies: [BodySlice] = []
        for _ in 0..<BodyMemory.mostExcess / 20_000 + 1 {
            _ = filled(120_000, with: 1)
            bodies.append(filled(100_000, with: 2))
            XCTAssertEqual(memory.keptBytes, 0)
        }
        XCTAssertFalse(bodies.isEmpty)
    }

    func testTheLastThatIsLargeEnoughIsTaken() {
        var bodies = [90_000, 100_000, 200_000, 80_000].map { filled($0, with: 1) }
        let start = bodies[2].start
        while !bodies.isEmpty { bodies.removeFirst() }
        XCTAssertEqual(filled(85_000, with: 4).start, start)
    }

    func testNoMoreIsKeptThanTheLimit() {
        var bodies = (0..<40).map { _ in filled(100_000, with: 1) }
        bodies = []
        XCTAssertEqual(memory.keptBytes, BodyMemory.mostKeptBytes / 100_000 * 100_000)
        bodies = (0..<60).map { _ in filled(20_000, with: 1) }
        XCTAssertEqual(bodies.count, 60)
        bodies = []
        XCTAssertLessThanOrEqual(memory.keptBytes, BodyMemory.mostKeptBytes)
    }

    func testWhatIsKeptCanBeTakenFromIt() {
        var bodies = (0..<3).map { _ in filled(100_000, with: 1) }
        bodies.removeLast()
        XCTAssertEqual(bodies.count, 2)
        XCTAssertEqual(givenBack { memory.releaseKept() }, 100_000)
        XCTAssertEqual(memory.keptBytes, 0)
        XCTAssertEqual(givenBack { memory.releaseKept() }, 0)
        XCTAssertEqual(givenBack { bodies = [] }, 0)
        XCTAssertEqual(givenBack { memory.releaseKept() }, 200_000)
        _ = filled(100_000, with: 2)
        XCTAssertEqual(memory.keptBytes, 100_000)
    }

    func testTheSmallestBodiesAreNotKept() {
        _ = filled(1_000, with: 1)
        XCTAssertEqual(memory.keptBytes, 0)
    }

    func testSmallBodiesTakeNoRoomOfLargeOnes() {
        _ = filled(3_000, with: 1)
        _ = filled(20_000, with: 1)
        XCTAssertEqual(memory.keptBytes, 23_000)
        let small = filled(2_000, with: 2)
        XCTAssertEqual(memory.keptBytes, 20_000)
        let another = filled(2_000, with: 3)
        XCTAssertEqual(memory.keptBytes, 20_000)
        XCTAssertEqual(small.count + another.count, 4_000)
    }

    /// Whoever holds a slice holds its memory, whatever has become of the downloader.
    func testASliceOutlivesItsBodyAndTheMemory() throws {
        var memory: BodyMemory? = BodyMemory()
        weak let held = memory
        var body = Body(expected: 100_000, memory: memory)
        let bytes = [UInt8](repeating: 7, count: 100_000)
        XCTAssertTrue(bytes.withUnsafeBytes { body.append($0) })
        var slice = body.contiguous()
        body = Body()
        memory = nil
        XCTAssertEqual(slice?.withBytes { $0.allSatisfy { $0 == 7 } }, true)
        XCTAssertNotNil(held)
        slice = nil
        XCTAssertNil(held)
    }

    func testBodiesOfManyThreadsDoNotMeet() {
        let memory = memory
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<500 {
                let value = UInt8(truncatingIfNeeded: thread * 31 + round)
                var body = Body(expected: 20_000, memory: memory)
                let bytes = [UInt8](repeating: value, count: 20_000)
                XCTAssertTrue(bytes.withUnsafeBytes { body.append($0) })
                XCTAssertEqual(body.contiguous()?.withBytes { $0.allSatisfy { $0 == value } }, true)
            }
        }
        XCTAssertLessThanOrEqual(memory.keptBytes, BodyMemory.mostKeptBytes)
    }

    /// All of a body: whoever has it, has its memory.
    private func filled(_ count: Int, with value: UInt8) -> BodySlice {
        var body = Body(expected: Int64(count), memory: memory)
        let bytes = [UInt8](repeating: value, count: count)
        XCTAssertTrue(bytes.withUnsafeBytes { body.append($0) })
        return body.contiguous()!
    }
}
