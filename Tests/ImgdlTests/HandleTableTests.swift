import XCTest

@testable import imgdl

/// What is told of handles for as long as a process lives.
final class HandleTableTests: XCTestCase {
    private final class Thing {}

    private func slot(_ handle: OpaquePointer?) -> UInt { UInt(bitPattern: handle) & 0xFFFF_FFFF }

    /// A slot that has no generation left retires: the handle after its last would be one that was released long ago.
    func testASlotWithoutGenerationsLeftIsNotUsedAgain() {
        let table = HandleTable(firstGeneration: .max - 1)
        var released: [OpaquePointer] = []
        // A slot rests while 64 others are free.
        for _ in 0..<300 {
            guard let handle = table.insert(Thing(), .data) else { return XCTFail("no handle") }
            XCTAssertFalse(released.contains(handle), "\(handle) is valid again")
            XCTAssertNotNil(table.release(handle, .data))
            XCTAssertNil(table.object(handle, .data))
            released.append(handle)
        }
        let uses = Dictionary(grouping: released, by: slot).mapValues(\.count)
        XCTAssertEqual(uses.values.max(), 2, "each slot had two generations left")
        XCTAssertGreaterThan(uses.count, 150)
        for handle in released { XCTAssertNil(table.release(handle, .data)) }
    }

    func testAKeptReferenceIsNotGivenBack() {
        let table = HandleTable()
        let thing = Thing()
        let handle = table.insert(thing, .downloader, isKept: true)
        XCTAssertTrue(table.retain(handle, .downloader))
        for _ in 0..<10 { XCTAssertNil(table.release(handle, .downloader)) }
        XCTAssertTrue(table.object(handle, .downloader) === thing)
        XCTAssertTrue(table.retain(handle, .downloader))
        XCTAssertNil(table.release(handle, .downloader))
        XCTAssertTrue(table.object(handle, .downloader) === thing)
    }

    /// One reference more would be none: it is refused, and those that there are can be given back.
    func testReferencesStayAtTheLastNumber() {
        let table = HandleTable()
        let thing = Thing()
        let handle = table.insert(thing, .data, references: .max)
        for _ in 0..<2 {
            XCTAssertFalse(table.retain(handle, .data))
            XCTAssertNil(table.release(handle, .data), "not the last one")
            XCTAssertTrue(table.object(handle, .data) === thing)
            XCTAssertTrue(table.retain(handle, .data))
        }
    }
}
