import XCTest

@testable import ImgdlCore
@testable import ImgdlTransport

/// What all requests of a transport have in common in their security contexts: whatever changes who answers them, or how
/// far the answer is trusted, makes another one.
final class TrustTests: TransportTestCase {
    private func trust(_ change: (inout TransportConfiguration) -> Void) throws -> [UInt8] {
        var configuration = TransportConfiguration(proxy: "")
        change(&configuration)
        try makeTransport(configuration)
        return transport.trust
    }

    func testEachItemMakesAnother() throws {
        let file = NSTemporaryDirectory() + "imgdl-trust-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        let prefix = try XCTUnwrap(
            LocalNetworks.Prefix([0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 12), length: 96))
        let changes: [(String, (inout TransportConfiguration) -> Void)] = [
            ("nothing", { _ in }),
            ("authorities", { $0.certificateAuthorities = file }),
            ("revocation lists", { $0.revocationLists = file }),
            ("TLS 1.3", { $0.requiresTLS13 = true }),
            ("proxy", { $0.proxy = "http://127.0.0.1:3128" }),
            ("another proxy", { $0.proxy = "http://127.0.0.1:3129" }),
            ("its user", { $0.proxy = "http://u:p@127.0.0.1:3128" }),
            ("its password", { $0.proxy = "http://u:q@127.0.0.1:3128" }),
            ("name servers", { $0.nameServers = "127.0.0.1" }),
            ("denied addresses", { $0.deniesPrivateAddresses = true }),
            ("prefixes", { $0.translators = [prefix] }),
        ]
        // A new one must say whether it belongs to the context: here.
        let named: Set = [
            "certificateAuthorities", "revocationLists", "requiresTLS13", "proxy", "nameServers",
            "deniesPrivateAddresses", "translators",
        ]
        let others: Set = [
            "cookieFile", "cookiePartition", "allowsFileURLs", "allowsDataURLs", "maximumIdleConnections",
        ]
        let properties = Mirror(reflecting: TransportConfiguration()).children.compactMap(\.label)
        XCTAssertEqual(Set(properties), named.union(others))
        var seen: [[UInt8]: String] = [:]
        // Another file under the same name is another one.
        for content in ["1", "2"] {
            XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data(content.utf8)))
            for (name, change) in changes {
                let trust = try trust(change)
                XCTAssertEqual(trust, try self.trust(change), "\(name) is the same again")
                let isOfTheFile = ["authorities", "revocation lists"].contains(name)
                let known = seen.updateValue(name, forKey: trust)
                XCTAssertEqual(known, isOfTheFile || content == "1" ? nil : name)
            }
        }
    }

    /// Of the environment's proxies; a list of exceptions without one changes nothing.
    func testTheEnvironmentsProxies() throws {
        func described(_ variables: [String: String]) throws -> ContextMessage {
            var message = ContextMessage()
            try ProxyRules(configured: nil) { variables[$0] }.describe(to: &message)
            return message
        }
        let none = try described([:])
        XCTAssertEqual(try described(["no_proxy": "a.example"]), none)
        let ways = [
            ["https_proxy": "http://p.example"], ["http_proxy": "http://p.example"],
            ["https_proxy": "http://p.example", "no_proxy": "a.example"],
            ["https_proxy": "http://p.example", "no_proxy": "b.example"], ["https_proxy": "http://u:p@p.example"],
        ]
        let messages = try ways.map(described) + [none]
        for (index, message) in messages.enumerated() { XCTAssertEqual(messages.firstIndex(of: message), index) }
    }

    /// What says nothing of whom it trusts, or as whom it asks.
    func testOtherItemsDoNot() throws {
        let plain = try trust { _ in }
        XCTAssertEqual(plain, try trust { $0.maximumIdleConnections = 1 })
        XCTAssertEqual(plain, try trust { $0.allowsDataURLs = true })
    }
}
