import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// The option dns_servers.
final class NameServersTests: XCTestCase {
    func testAddressesWithAndWithoutPorts() throws {
        let table = [
            "192.0.2.1": "192.0.2.1:53", "127.0.0.1:5353": "127.0.0.1:5353", "[::1]:53": "[::1]:53",
            "[2001:db8::1]": "[2001:db8::1]:53", "2001:db8::1": "[2001:db8::1]:53",
            "192.0.2.1, [::1]:5353 ,192.0.2.2:65535": "192.0.2.1:53,[::1]:5353,192.0.2.2:65535",
        ]
        for (text, expected) in table { XCTAssertEqual(try NameServers(text).text, expected, text) }
    }

    func testWhatIsNoAddressIsRefused() {
        let bad = [
            " ", ",", "::1:5353", " 2001:db8::1:53 ", "fe80::1:2", "192.0.2.1,", "192.0.2", "192.0.2.256",
            "dns.example", "192.0.2.1:", "192.0.2.1:0",
            "192.0.2.1:65536", "192.0.2.1:+53", "192.0.2.1:5 3", "[::1", "[::1]53", "[::1]:", "[192.0.2.1]:53",
            "::1]:53",
            "fe80::1%eth0", "[fe80::1%eth0]:53", "192.0.2.1\n", "192.0.2.1;192.0.2.2", "[]", "0x7f000001",
        ]
        for text in bad {
            XCTAssertThrowsError(try NameServers(text), text) { error in
                let failure = error as? Failure
                XCTAssertEqual(failure?.code, .invalidArgument, text)
                XCTAssertTrue(failure?.message.hasPrefix("dns_servers: number ") == true, failure?.message ?? "")
            }
        }
        XCTAssertThrowsError(try NameServers("192.0.2.1,secret.example")) { error in
            let message = (error as? Failure)?.message ?? ""
            XCTAssertTrue(message.hasPrefix("dns_servers: number 2 is no address"), message)
            XCTAssertFalse(message.contains("secret"), message)
        }
    }

    func testWhatMayEndInAPort() throws {
        for text in ["::1:5353", "2001:db8::1:53"] {
            XCTAssertThrowsError(try NameServers(text), text) { error in
                XCTAssertEqual((error as? Failure)?.message.contains("brackets"), true, "\(error)")
            }
        }
        // No front of these is an address.
        for text in ["1:2:3:4:5:6:7:8", "2001:db8::53", "::1:ab", "[::1:5353]"] {
            XCTAssertNoThrow(try NameServers(text), text)
        }
        XCTAssertThrowsError(try NameServers("")) { error in
            let failure = error as? Failure
            XCTAssertEqual(failure?.code, .invalidArgument)
            XCTAssertEqual(failure?.message.contains("empty"), true, "\(error)")
        }
    }

    func testNoMoreThanEight() throws {
        let eight = Array(repeating: "192.0.2.1", count: 8).joined(separator: ",")
        XCTAssertEqual(try NameServers(eight).text.split(separator: ",").count, 8)
        XCTAssertThrowsError(try NameServers(eight + ",192.0.2.1")) { error in
            XCTAssertEqual(error as? Failure, Failure(.invalidArgument, "dns_servers has more than 8 servers"))
        }
    }
}
