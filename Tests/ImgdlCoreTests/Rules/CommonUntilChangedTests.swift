import XCTest

@testable import ImgdlCore

final class CommonUntilChangedTests: XCTestCase {
    private final class Held {}

    func testEachChangesItsOwn() {
        let common = CommonUntilChanged.Common([1])
        var first = CommonUntilChanged(common)
        let second = CommonUntilChanged(common)
        first.value.append(2)
        first.value.append(3)
        XCTAssertEqual(first.value, [1, 2, 3])
        XCTAssertEqual(second.value, [1])
        XCTAssertEqual(CommonUntilChanged(common).value, [1], "nor does it change for those who come later")
    }

    func testWhatAValueHoldsGoesWithItsOwner() {
        weak var own: Held?
        weak var shared: Held?
        do {
            let common = CommonUntilChanged.Common(Optional(Held()))
            shared = CommonUntilChanged(common).value
            do {
                var changed = CommonUntilChanged(common)
                let unchanged = CommonUntilChanged(common)
                changed.value = Held()
                own = changed.value
                XCTAssertNotNil(own)
                XCTAssertNotNil(unchanged.value)
            }
            XCTAssertNil(own)
            XCTAssertNotNil(shared, "it is the others', too")
        }
        XCTAssertNil(shared)
    }
}
