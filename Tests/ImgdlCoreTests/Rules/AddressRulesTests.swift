import Glibc
import ImgdlCore
import XCTest

/// Issue 3 "Security": which addresses nobody may be led to, whatever they are dressed up as.
final class AddressRulesTests: XCTestCase {
    private func bytes(_ text: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
        XCTAssertEqual(inet_pton(AF_INET6, text, &bytes), 1, text)
        return bytes
    }

    func testPrivateIPv4() {
        let table: [(String, String)] = [
            ("0.0.0.0", "unspecified"), ("0.255.255.255", "unspecified"), ("10.0.0.1", "private"),
            ("10.255.255.255", "private"), ("172.16.0.1", "private"), ("172.31.255.255", "private"),
            ("192.168.0.1", "private"), ("192.168.255.255", "private"), ("100.64.0.0", "shared"),
            ("100.127.255.255", "shared"), ("127.0.0.1", "loopback"), ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"), ("192.0.0.8", "protocol"), ("192.0.2.1", "documentation"),
            ("198.51.100.7", "documentation"), ("203.0.113.9", "documentation"), ("192.88.99.1", "relay"),
            ("198.18.0.1", "benchmark"), ("198.19.255.255", "benchmark"), ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"), ("240.0.0.1", "reserved"), ("255.255.255.254", "reserved"),
            ("255.255.255.255", "broadcast"),
        ]
        for (address, kind) in table {
            let four = bytes(address)
            XCTAssertEqual(AddressRules.kindOfPrivate(four), kind, address)
            // The same in each of the forms that IPv6 has for it.
            let zeros = [UInt8](repeating: 0, count: 12)
            let forms: [[UInt8]] = [
                zeros[..<10] + [0xFF, 0xFF] + four, zeros[..<8] + [0xFF, 0xFF, 0, 0] + four,
                [0, 0x64, 0xFF, 0x9B] + zeros[..<8] + four, [0x20, 0x02] + four + zeros[..<10],
                [0x20, 0x01, 0, 0] + four + zeros[..<4] + [0xF7, 0xF7, 0xF7, 0xF7],
                [0x20, 0x01, 0, 0, 8, 8, 8, 8] + zeros[..<4] + four.map { ~$0 },
            ]
            for form in forms { XCTAssertEqual(AddressRules.kindOfPrivate(form), kind, "\(address) in \(form)") }
            XCTAssertNotNil(AddressRules.kindOfPrivate(zeros + four), "compatible with \(address)")
        }
    }

    func testPrivateIPv6() {
        let table: [(String, String)] = [
            ("::", "unspecified"), ("::1", "loopback"), ("fe80::1", "link-local"), ("febf::1", "link-local"),
            ("fec0::1", "site-local"), ("feff::1", "site-local"), ("fc00::1", "unique-local"),
            ("fdff::1", "unique-local"),
            ("ff02::1", "multicast"), ("2001:db8::1", "documentation"), ("3fff:fff::1", "documentation"),
            ("2001:2::1", "benchmark"), ("100::1", "discard"), ("64:ff9b:1::808:808", "local translation"),
            ("64:ff9b:1:ffff::1", "local translation"), ("4000::1", "reserved"), ("5f00::1", "reserved"),
            ("::2", "unspecified"), ("2001:1::", "protocol"), ("2001:1::4", "protocol"), ("2001:1:0:1::1", "protocol"),
            ("2001:4::1", "protocol"), ("2001:4:113::1", "protocol"), ("2001:5::1", "protocol"),
            ("2001:10::1", "protocol"), ("2001:1f::1", "protocol"), ("2001:40::1", "protocol"),
            ("2001:ff::1", "protocol"), ("2001:100::1", "protocol"), ("2001:1ff:ffff::1", "protocol"),
            ("2606:4700::5efe:a00:1", "private"), ("2606:4700::200:5efe:7f00:1", "loopback"),
            ("2a00:1450::5efe:169.254.169.254", "link-local"), ("2002:808:808::5efe:10.0.0.1", "private"),
            ("2001:0:808:808:0:5efe:127.0.0.1", "loopback"),
        ]
        for (address, kind) in table { XCTAssertEqual(AddressRules.kindOfPrivate(bytes(address)), kind, address) }
    }

    func testPublic() {
        let addresses = [
            "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
            "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
            "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1",
            "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:4860::8888", "3ffe::1", "3fff:1000::1",
            "2001:1::1", "2001:1::2", "2001:1::3", "2001:3::1", "2001:4:112::1", "2001:20::1", "2001:3f:ffff::1",
            "2001:200::1", "2606:4700::5efe:808:808", "2606:4700::100:5efe:a00:1", "2606:4700::5efe:0:0:1",
        ]
        for address in addresses { XCTAssertNil(AddressRules.kindOfPrivate(bytes(address)), address) }
    }

    private func prefix(_ text: String, _ length: Int) -> LocalNetworks.Prefix {
        LocalNetworks.Prefix(bytes(text), length: length)!
    }

    /// Public by every registry, and this machine's or its neighbours' all the same, in each form.
    func testOwnAddressesAndNetworks() {
        var networks = LocalNetworks()
        networks.own = [bytes("8.8.4.1"), bytes("2a00:1450::1")]
        networks.onLink = [
            prefix("9.9.128.0", 17), prefix("2606:4700:0:1::", 64), prefix("0.0.0.0", 0), prefix("::", 0),
        ]
        networks.ownNetworks = [prefix("14.0.0.0", 24), prefix("2a00:1450:a::", 64)]
        let own = "this machine's own"
        let near = "on a network of this machine"
        let table: [(String, String?)] = [
            ("8.8.4.1", own), ("::ffff:8.8.4.1", own), ("64:ff9b::8.8.4.1", own), ("2002:808:401::1", own),
            ("2001:0:808:808::f7f7:fbfe", own), ("2a00:1451::5efe:8.8.4.1", own), ("2a00:1450::1", own),
            ("2002:808:401::5efe:101:101", own), ("2001:0:808:401::f7f7:f7f7", own),
            ("2002:808:808::5efe:8.8.4.1", own), ("2002:101:101::5efe:9.9.200.7", near),
            ("14.0.0.255", own), ("14.0.1.0", nil), ("::ffff:14.0.0.9", own), ("2a00:1450:a::9", own),
            ("9.9.128.1", near), ("9.9.255.255", near), ("::ffff:9.9.200.7", near), ("2606:4700:0:1:2::3", near),
            ("8.8.4.2", nil), ("9.9.127.255", nil), ("9.10.128.1", nil), ("2a00:1450::2", nil),
            ("2606:4700:0:2::1", nil), ("::ffff:8.8.4.2", nil), ("10.0.0.1", "private"),
        ]
        for (address, kind) in table { XCTAssertEqual(networks.kindOfPrivate(bytes(address)), kind, address) }
    }

    /// The examples of RFC 6052 section 2.4, with an address that is none of the public internet, and one that is.
    func testTranslatorsOfTheNetwork() {
        let table = [
            ("2a00:db8::", 32, "2a00:db8:a00:221::", "2a00:db8:808:808::"),
            ("2a00:db8:100::", 40, "2a00:db8:10a:2:21::", "2a00:db8:108:808:8::"),
            ("2a00:db8:122::", 48, "2a00:db8:122:a00:2:2100::", "2a00:db8:122:808:8:800::"),
            ("2a00:db8:122:300::", 56, "2a00:db8:122:30a:0:221::", "2a00:db8:122:308:8:808::"),
            ("2a00:db8:122:344::", 64, "2a00:db8:122:344:a:2:2100::", "2a00:db8:122:344:8:808:800::"),
            ("2a00:db8:122:344::", 96, "2a00:db8:122:344::a00:221", "2a00:db8:122:344::808:808"),
        ]
        for (text, length, inside, outside) in table {
            var networks = LocalNetworks()
            XCTAssertNil(networks.kindOfPrivate(bytes(inside)))
            networks.translators = [prefix(text, length)]
            XCTAssertEqual(networks.kindOfPrivate(bytes(inside)), "private", "\(text)/\(length)")
            XCTAssertNil(networks.kindOfPrivate(bytes(outside)), "\(text)/\(length)")
        }
    }

    func testPrefixes() {
        for (count, length) in [(0, 0), (3, 8), (4, 33), (16, 129), (4, -1)] {
            XCTAssertNil(LocalNetworks.Prefix([UInt8](repeating: 0, count: count), length: length))
        }
        for length in 0...32 {
            let prefix = prefix("255.255.255.255", length)
            XCTAssertTrue(prefix.contains([255, 255, 255, 255]))
            for bit in 0..<32 {
                var other: [UInt8] = [255, 255, 255, 255]
                other[bit / 8] ^= 0x80 >> UInt8(bit % 8)
                XCTAssertEqual(prefix.contains(other), bit >= length, "\(length) \(bit)")
            }
            XCTAssertFalse(prefix.contains([UInt8](repeating: 255, count: 16)))
        }
    }

    func testWhatIsNoAddress() {
        for count in [0, 3, 5, 15, 17] {
            XCTAssertEqual(AddressRules.kindOfPrivate([UInt8](repeating: 8, count: count)), "unknown")
        }
    }
}
