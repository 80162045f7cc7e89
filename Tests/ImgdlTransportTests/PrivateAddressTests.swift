import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Issue 3 "Security": `deniesPrivateAddresses`, in each of the places where an address shows.
final class PrivateAddressTests: TransportTestCase {
    private final class ChangingResolver: Resolver, @unchecked Sendable {
        var answers: [[String]] = []

        func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
            completion(.success(answers.count > 1 ? answers.removeFirst() : answers[0]))
            return nil
        }

        func abandon(_ id: LookUpID) {}
        func close() {}
    }

    private final class Lent<Value> {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    func testAnIPv4AddressWithinAnIPv6OneIsSaidToBeOne() {
        for (address, isWithin) in [
            ("64:ff9b::7f00:1", true), ("2001:db8:1::5efe:a00:1", true), ("::ffff:10.0.0.1", true), ("::1", false),
            ("10.0.0.1", false), ("fe80::1", false),
        ] {
            let failure = AddressGuard().refusal(ofAddress: address, host: "h")
            XCTAssertEqual(failure?.code, .addressRefused, address)
            XCTAssertEqual(failure?.message.contains("IPv4 address within"), isWithin, failure?.message ?? address)
        }
    }

    private let resolver = ChangingResolver()
    private var configuration = TransportConfiguration(proxy: "")

    override func setUpWithError() throws {
        try super.setUpWithError()
        configuration.deniesPrivateAddresses = true
        try makeTransport(configuration, resolver: resolver)
        origin.route("/a") { try $0.respond(text: "a") }
    }

    private func assertRefused(
        _ url: String, _ kind: String, file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let failure = try failure(of: url, file: file, line: line)
        XCTAssertEqual(failure?.code, .addressRefused, "\(url): \(failure?.message ?? "")", file: file, line: line)
        XCTAssertTrue(failure?.message.contains(kind) ?? false, failure?.message ?? "", file: file, line: line)
        XCTAssertFalse(failure?.message.contains("secret") ?? true, file: file, line: line)
        XCTAssertEqual(origin.log.connections.count, 0, file: file, line: line)
    }

    func testLiteralsHoweverTheyAreSpelt() throws {
        let loopback = ["127.0.0.1", "0x7f.1", "2130706433", "017700000001", "127.1", "0177.0.0.01", "[::1]"]
        let disguised = [
            "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]",
        ]
        for host in loopback + disguised { try assertRefused("http://\(host):\(origin.port)/a?k=secret", "loopback") }
        for host in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.localhost."] {
            try assertRefused("http://\(host):\(origin.port)/a?k=secret", "loopback")
        }
        try assertRefused("http://169.254.169.254/latest/?k=secret", "link-local")
        try assertRefused("http://0/?k=secret", "unspecified")
        try assertRefused("http://[fe80::1%25lo]:\(origin.port)/?k=secret", "link-local")
    }

    func testNames() throws {
        resolver.answers = [["127.0.0.1"]]
        try assertRefused("http://inside.example:\(origin.port)/a?k=secret", "loopback")
        resolver.answers = [["::1", "10.0.0.1", "192.168.1.1"]]
        try assertRefused("http://inside.example:\(origin.port)/a?k=secret", "loopback")
        resolver.answers = [["not an address"]]
        try assertRefused("http://inside.example:\(origin.port)/a?k=secret", "unknown")
    }

    /// The public ones of several addresses are used, the others are not tried.
    func testPublicAddressesAreLeft() throws {
        XCTAssertEqual(
            try AddressGuard().publicAddresses(["127.0.0.1", "8.8.8.8", "::1", "2606:4700::1"], host: "h"),
            ["8.8.8.8", "2606:4700::1"])
    }

    /// Whatever was checked before: the address that curl is about to use is looked at once more, and that of a
    /// connection before a request goes out on it.
    func testTheSocketItself() throws {
        for host in ["127.0.0.1", "rebound.example"] {
            let url = try transport.parse("http://\(host):\(origin.port)/a?k=secret")
            let request = TransportRequest(url: url, method: "GET", fields: [], body: nil, maximumHeaderBytes: 10_000)
            let id = TransferID(rawValue: 1000)
            recorder.records[id] = nil
            let transfer = CurlTransfer(id, request, addressGuard: AddressGuard(), transport: transport)
            transport.begin(transfer, addresses: host == "127.0.0.1" ? [] : ["127.0.0.1"])
            run(until: recorder[id].hasEnded)
            XCTAssertEqual(recorder[id].failure?.code, .addressRefused, recorder[id].failure?.message ?? "")
            XCTAssertEqual(origin.log.connections.count, 0)
        }
    }

    func testAConnectionThatStands() throws {
        try makeTransport(TransportConfiguration(proxy: ""))
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
        // The same connections, asked for by a request that may not use them.
        let url = try transport.parse(origin.url("/a"))
        let request = TransportRequest(url: url, method: "GET", fields: [], body: nil, maximumHeaderBytes: 10_000)
        let id = TransferID(rawValue: 1000)
        let transfer = CurlTransfer(id, request, addressGuard: AddressGuard(), transport: transport)
        transport.begin(transfer, addresses: [])
        run(until: recorder[id].hasEnded)
        XCTAssertEqual(recorder[id].failure?.code, .addressRefused)
        XCTAssertEqual(origin.log.requests.count, 1)
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testOwnAddressesAreReadAnewNowAndThen() throws {
        let answers = Lent<[LocalNetworks?]>([nil])
        let time = Lent<Int64>(0)
        let questions = Lent(0)
        let address = [UInt8](arrayLiteral: 8, 8, 4, 1)
        let guarding = AddressGuard(
            readInterfaces: {
                questions.value += 1
                return answers.value[0]
            }, now: { time.value })
        let unknown = guarding.refusal(of: address, host: "h")
        XCTAssertEqual(unknown?.code, .addressRefused, "the kernel says nothing")
        XCTAssertTrue(unknown?.message.contains("the system does not say") ?? false, unknown?.message ?? "")
        var networks = LocalNetworks()
        networks.own = [address]
        answers.value = [networks]
        let failure = guarding.refusal(of: address, host: "h")
        XCTAssertEqual(failure?.code, .addressRefused)
        XCTAssertTrue(failure?.message.contains("(this machine's own)") ?? false, failure?.message ?? "")
        XCTAssertEqual(questions.value, 2)
        answers.value = [LocalNetworks()]
        time.value = AddressGuard.renewalInterval - 1
        XCTAssertNotNil(guarding.refusal(of: address, host: "h"))
        XCTAssertEqual(questions.value, 2)
        time.value += 1
        XCTAssertNil(guarding.refusal(of: address, host: "h"))
        answers.value = [nil]
        time.value += AddressGuard.renewalInterval
        XCTAssertNil(guarding.refusal(of: address, host: "h"), "what was known last")
        XCTAssertEqual(questions.value, 4)
    }

    /// This machine has the loopback at least.
    func testInterfacesOfThisMachine() throws {
        let networks = try XCTUnwrap(NetworkInterfaces.read())
        XCTAssertTrue(networks.own.contains([127, 0, 0, 1]))
        XCTAssertTrue(networks.onLink.contains { $0.length == 8 && $0.contains([127, 1, 2, 3]) })
        for own in networks.own { XCTAssertNotNil(networks.kindOfPrivate(own), "\(own)") }
    }

    /// In a network of the test's own, which a thread may have where it is allowed to.
    func testRoutesOfAnotherNetwork() throws {
        typealias Unshare = @convention(c) (Int32) -> Int32
        let unshare = unsafeBitCast(try XCTUnwrap(dlsym(nil, "unshare")), to: Unshare.self)
        let newNetwork: Int32 = 0x4000_0000
        let outcome = Lent<(failed: String?, networks: LocalNetworks?)>((nil, nil))
        let thread = try ImgdlCore.Thread.start(name: "network") {
            // Nor does every machine have `ip` and tunnels.
            guard unshare(newNetwork) == 0, system("ip tuntap add d0 mode tun 2>/dev/null") == 0 else { return }
            let commands = [
                "ip link set lo up", "ip link set d0 up",
                "ip addr add 11.0.0.1 peer 11.0.0.2/32 dev d0", "ip addr add 12.0.0.5/24 dev d0",
                "ip route add 13.0.0.0/24 dev d0 scope link", "ip route add local 14.0.0.0/24 dev lo",
                "ip addr add 15.0.0.1 peer 15.0.0.77/24 dev d0", "ip addr add 17.0.0.1 peer 17.0.0.2/32 dev lo",
                "ip route add 16.0.0.0/24 via 12.0.0.1", "ip route add default via 12.0.0.1",
                "ip route add 128.0.0.0/1 dev d0", "ip route add local 18.0.0.0/24 dev lo table 7",
                "ip addr add 2a00:1450:9::5/64 dev d0", "ip -6 route add local 2a00:1450:a::/64 dev lo",
                "ip -6 route add 2a00:1450:b::/64 dev d0", "ip -6 route add 2a00:1450:c::/64 via 2a00:1450:9::1",
            ]
            // The child has this thread's network.
            outcome.value.failed = commands.first { system($0) != 0 }
            outcome.value.networks = NetworkInterfaces.read()
        }
        thread.join()
        guard let networks = outcome.value.networks, outcome.value.failed == nil else {
            throw XCTSkip("this machine cannot make a network: \(outcome.value.failed ?? "unshare, or ip tuntap")")
        }
        let own = "this machine's own"
        let near = "on a network of this machine"
        let table: [(String, String?)] = [
            ("11.0.0.1", own), ("11.0.0.2", near), ("12.0.0.5", own), ("12.0.0.77", near), ("13.0.0.9", near),
            ("14.0.0.9", own), ("15.0.0.1", own), ("15.0.0.77", near), ("15.0.0.3", near), ("17.0.0.2", own),
            ("2a00:1450:9::5", own), ("2a00:1450:9::6", near), ("2a00:1450:a::7", own), ("2a00:1450:b::7", near),
            ("2a00:1450:c::7", nil), ("8.8.8.8", nil), ("16.0.0.1", nil), ("18.0.0.1", nil), ("130.1.1.1", nil),
        ]
        for (text, kind) in table {
            XCTAssertEqual(networks.kindOfPrivate(try XCTUnwrap(AddressGuard.bytes(text))), kind, text)
        }
    }

    func testTranslatorsOfTheConfiguration() throws {
        let bytes = [0x2A, 0, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 12)
        configuration.translators = [try XCTUnwrap(LocalNetworks.Prefix(bytes, length: 96))]
        try makeTransport(configuration, resolver: resolver)
        try assertRefused("http://[2a00:db8::7f00:1]:\(origin.port)/?k=secret", "loopback")
        resolver.answers = [["2a00:db8::10.0.0.1"]]
        try assertRefused("http://inside.example/?k=secret", "private")
    }

    func testNotTogetherWithAProxy() throws {
        configuration.proxy = "http://h:1"
        XCTAssertThrowsError(try makeTransport(configuration)) {
            XCTAssertEqual(($0 as? Failure)?.code, .invalidOperation)
        }
    }

    func testOffNothingChanges() throws {
        try makeTransport(resolver: resolver)
        resolver.answers = [["127.0.0.1"]]
        XCTAssertEqual(try fetchSucceeding("http://inside.example:\(origin.port)/a").text, "a")
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
    }
}
