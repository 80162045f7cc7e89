import XCTest

@testable import ImgdlCore

/// “é” as one character and as two: alike to people, and two users to a server.
final class ExactTextTests: XCTestCase {
    private let one = "jos\u{E9}"
    private let two = "jose\u{301}"

    func testTextsThatLookAlikeAreTwo() {
        XCTAssertEqual(one, two, "for Swift")
        let pairs: [(left: AnyHashable, right: AnyHashable, same: AnyHashable)] = [
            (ExactText(wrappedValue: one), ExactText(wrappedValue: two), ExactText(wrappedValue: one)),
            (
                ExactOptionalText(wrappedValue: one), ExactOptionalText(wrappedValue: two),
                ExactOptionalText(wrappedValue: one)
            ),
            (HeaderField("X-User", one), HeaderField("X-User", two), HeaderField("X-User", one)),
            (
                Credential(user: one, password: "p"), Credential(user: two, password: "p"),
                Credential(user: one, password: "p")
            ),
            (
                Credential(user: "u", password: one), Credential(user: "u", password: two),
                Credential(user: "u", password: one)
            ),
            (RequestTrust(partition: one), RequestTrust(partition: two), RequestTrust(partition: one)),
            (
                trust { $0.clientKeyPassword = one }, trust { $0.clientKeyPassword = two },
                trust { $0.clientKeyPassword = one }
            ),
            (
                trust { $0.clientCertificate = one }, trust { $0.clientCertificate = two },
                trust { $0.clientCertificate = one }
            ),
        ]
        for pair in pairs {
            XCTAssertNotEqual(pair.left, pair.right)
            XCTAssertEqual(pair.left, pair.same)
            XCTAssertEqual(Set([pair.left, pair.right, pair.same]).count, 2)
        }
        XCTAssertNotEqual(ExactOptionalText(wrappedValue: nil), ExactOptionalText(wrappedValue: ""))
        XCTAssertEqual(ExactText(wrappedValue: ""), ExactText(wrappedValue: ""))
    }

    private func trust(_ change: (inout TLSOptions) -> Void) -> RequestTrust {
        var options = TLSOptions()
        change(&options)
        return RequestTrust(tls: options)
    }
}
