import XCTest

@testable import ImgdlCore

final class OnceMadeTests: XCTestCase {
    private final class Made: Sendable {}

    private final class Holder: Sendable {
        let made = OnceMade<Made>()
    }

    func testIsMadeOnceAndLetGo() {
        weak var seen: Made?
        do {
            let holder = Holder()
            let first = holder.made.value { Made() }
            seen = first
            XCTAssert(holder.made.value { fatalError("it is there") } === first)
            XCTAssertNotNil(seen)
        }
        XCTAssertNil(seen)
    }

    func testAllThreadsGetTheSame() throws {
        for _ in 0..<200 {
            let holder = Holder()
            let lock = Lock()
            var got: [Made] = []
            let threads = try (0..<4).map { _ in
                try ImgdlCore.Thread.start(name: "ask") {
                    let value = holder.made.value { Made() }
                    lock.withLock { got.append(value) }
                }
            }
            for thread in threads { thread.join() }
            XCTAssertEqual(Set(got.map(ObjectIdentifier.init)).count, 1)
        }
    }
}
