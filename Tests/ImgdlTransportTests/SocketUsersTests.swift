import XCTest

@testable import ImgdlTransport

/// Whom a connection was made for that kept the thread busy.
final class SocketUsersTests: XCTestCase {
    private let easy = UnsafeMutableRawPointer(bitPattern: 64)!
    private let other = UnsafeMutableRawPointer(bitPattern: 128)!

    func testALaterTransferOnTheSameHandleIsAnother() throws {
        var users = SocketUsers()
        let first = users.add()
        let second = users.add()
        users.watch(7, for: easy)
        let user = try XCTUnwrap(users[7])
        XCTAssertTrue(user.isOn(easy, addition: first))
        XCTAssertFalse(user.isOn(other, addition: second))
        let later = users.add()
        XCTAssertFalse(user.isOn(easy, addition: later), "it was freed, and this is the next one at its address")
        XCTAssertEqual(users[7]?.isOn(easy, addition: later), false)
        users.watch(7, for: easy)
        XCTAssertEqual(users[7]?.isOn(easy, addition: later), true)
    }

    func testANewSocketHasNoUser() {
        var users = SocketUsers()
        _ = users.add()
        XCTAssertNil(users[3])
        users.watch(3, for: easy)
        XCTAssertNotNil(users[3])
        users.open(3)
        XCTAssertNil(users[3])
        users.watch(3, for: nil)
        XCTAssertNil(users[3])
        XCTAssertNil(users[900])
    }
}
