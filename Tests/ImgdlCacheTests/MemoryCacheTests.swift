import ImgdlCore
import XCTest

@testable import ImgdlCache

/// A cache without directory: issue 5, the memory tier.
final class MemoryCacheTests: XCTestCase {
    func testGivesTheSlicesThatWereStored() throws {
        let cache = try Cache(CacheConfiguration(), clock: MonotonicClock()) { _ in XCTFail("no event is due") }
        let body = Body(expected: 5)
        XCTAssertTrue("hello".utf8.withContiguousStorageIfAvailable { body.append(UnsafeRawBufferPointer($0)) } ?? false)
        let response = StoredResponse(status: 200, httpVersion: 11, fields: [], requestTime: 1, responseTime: 2)
        let writer = try XCTUnwrap(cache.write("http://a/", response))
        writer.append(body.slices(from: 0))
        XCTAssertNil(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
        writer.finish(response)
        let found = try XCTUnwrap(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
        XCTAssertEqual(found.body.map(\.start), body.slices(from: 0).map(\.start))
        XCTAssertEqual(found.entry.response.bodyLength, 5)
        cache.close()
        XCTAssertNil(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
    }
}
