import XCTest

@testable import ImgdlCore

final class OnceReferenceTests: XCTestCase {
    private final class Made: Sendable {}

    private final class Holder: Sendable {
        let made = OnceReference<Made>()
    }

    func testIsMadeOnceAndLetGo() {
        weak var seen: Made?
        do {
            let holder = Holder()
            let first = holder.made.object { Made() }
            seen = first
            XCTAssert(holder.made.object { fatalError("it is there") } === first)
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
                    let value = holder.made.object { Made() }
                    lock.withLock { got.append(value) }
                }
            }
            for thread in threads { thread.join() }
            XCTAssertEqual(Set(got.map(ObjectIdentifier.init)).count, 1)
        }
    }
}
