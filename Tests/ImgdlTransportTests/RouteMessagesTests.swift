import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// What the kernel says of its routes, and what it never would.
final class RouteMessagesTests: XCTestCase {
    private static let sequence: UInt32 = 9

    private func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number) { Array($0) }
    }

    private func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    private func message(
        _ type: UInt16, _ body: [UInt8], flags: UInt16 = 2, sequence: UInt32 = sequence, length: Int? = nil
    ) -> [UInt8] {
        padded(
            bytes(UInt32(length ?? 16 + body.count)) + bytes(type) + bytes(flags) + bytes(sequence)
                + bytes(UInt32(0)) + body)
    }

    private func attribute(_ type: UInt16, _ value: [UInt8], length: Int? = nil) -> [UInt8] {
        padded(bytes(UInt16(length ?? 4 + value.count)) + bytes(type) + value)
    }

    private struct Route {
        var family: UInt8 = 2
        var length: UInt8 = 24
        var table: UInt8 = 254
        var scope: UInt8 = 253
        var type: UInt8 = 1
        var flags: UInt32 = 0
    }

    private func body(_ route: Route) -> [UInt8] {
        [route.family, route.length, 0, 0, route.table, 2, route.scope, route.type] + bytes(route.flags)
    }

    private func read(_ datagrams: [UInt8]...) -> (step: RouteMessages.Step, own: [String], onLink: [String]) {
        var messages = RouteMessages(sequence: Self.sequence)
        var step = RouteMessages.Step.more
        for datagram in datagrams { step = datagram.withUnsafeBytes { messages.read($0) } }
        func text(_ prefixes: Set<LocalNetworks.Prefix>) -> [String] {
            prefixes.map { "\($0.bytes.prefix(4))/\($0.length)" }.sorted()
        }
        return (step, text(messages.own), text(messages.onLink))
    }

    private var done: [UInt8] { message(3, bytes(Int32(0))) }

    private func destination(_ address: [UInt8]) -> [UInt8] { attribute(1, address) }

    func testWhichRoutesCount() {
        let near: [UInt8] = [13, 0, 0, 0]
        let six: [UInt8] = [0x2A, 0, 0x14, 0x50] + [UInt8](repeating: 0, count: 12)
        let router = attribute(5, [12, 0, 0, 1])
        let sixRouter = attribute(5, [UInt8](repeating: 1, count: 16))
        let table: [(String, [UInt8], own: [String], onLink: [String])] = [
            ("scope link", body(Route()) + destination(near), [], ["[13, 0, 0, 0]/24"]),
            ("by a router", body(Route(scope: 0)) + destination(near) + router, [], []),
            ("local", body(Route(table: 255, scope: 254, type: 2)) + destination(near), ["[13, 0, 0, 0]/24"], []),
            ("all are local", body(Route(length: 0, table: 255, scope: 254, type: 2)), ["[0, 0, 0, 0]/0"], []),
            ("broadcast", body(Route(length: 32, table: 255, type: 3)) + destination(near), [], ["[13, 0, 0, 0]/32"]),
            ("a tunnel for half the internet", body(Route(length: 1)) + destination([128, 0, 0, 0]), [], []),
            ("default", body(Route(length: 0)), [], []),
            ("a large network", body(Route(length: 8)) + destination(near), [], ["[13, 0, 0, 0]/8"]),
            ("unreachable", body(Route(type: 7)) + destination(near), [], []),
            ("another table", body(Route(table: 7)) + destination(near), [], []),
            (
                "another table by its attribute",
                body(Route()) + destination(near) + attribute(15, bytes(UInt32(1000))), [], []
            ),
            (
                "main by its attribute",
                body(Route(table: 252)) + attribute(15, bytes(UInt32(254))) + destination(near), [],
                ["[13, 0, 0, 0]/24"]
            ),
            ("a clone", body(Route(flags: 0x200)) + destination(near), [], []),
            ("IPv6", body(Route(family: 10, length: 64, scope: 0)) + destination(six), [], ["[42, 0, 20, 80]/64"]),
            ("IPv6 by a router", body(Route(family: 10, length: 64, scope: 0)) + destination(six) + sixRouter, [], []),
            (
                "IPv6 anycast", body(Route(family: 10, length: 128, table: 255, type: 4)) + destination(six),
                ["[42, 0, 20, 80]/128"], []
            ),
            ("IPv6 through a tunnel", body(Route(family: 10, length: 3, scope: 0)) + destination(six), [], []),
            ("another family", body(Route(family: 28)), [], []),
        ]
        for (name, route, own, onLink) in table {
            let seen = read(message(24, route), done)
            XCTAssertEqual(seen.step, .complete, name)
            XCTAssertEqual(seen.own, own, name)
            XCTAssertEqual(seen.onLink, onLink, name)
        }
    }

    func testSeveralMessagesInADatagram() {
        let routes = (1...3).flatMap { message(24, body(Route()) + destination([$0, 0, 0, 0])) }
        XCTAssertEqual(read(routes).step, .more)
        let seen = read(routes + message(1, []) + done)
        XCTAssertEqual(seen.step, .complete)
        XCTAssertEqual(seen.onLink, ["[1, 0, 0, 0]/24", "[2, 0, 0, 0]/24", "[3, 0, 0, 0]/24"])
        XCTAssertEqual(
            read(message(24, body(Route()) + destination([1, 0, 0, 0]), flags: 0x12), done).step, .interrupted)
    }

    func testForgedMessages() {
        let route = body(Route()) + destination([13, 0, 0, 0])
        let table: [(String, [UInt8])] = [
            ("nothing", []), ("half a header", Array(message(24, route).prefix(12))),
            ("half a second header", message(24, route) + [1, 2, 3, 4]),
            ("a length of 0", message(24, route, length: 0)), ("less than a header", message(24, route, length: 15)),
            ("more than there is", message(24, route, length: 16 + route.count + 1)),
            ("the longest", message(24, route, length: Int(UInt32.max))),
            ("another's answer", message(24, route, sequence: 8)), ("an error", message(2, bytes(Int32(-1)))),
            ("an error at the end", message(3, bytes(Int32(-12)))), ("not asked for", message(16, route)),
            ("half a route", message(24, Array(route.prefix(11)))),
            ("an attribute of 0", message(24, body(Route()) + attribute(1, [1, 2, 3, 4], length: 0))),
            ("an attribute of 3", message(24, body(Route()) + attribute(1, [1, 2, 3, 4], length: 3))),
            ("an attribute that is too long", message(24, body(Route()) + attribute(1, [1, 2, 3, 4], length: 9))),
            ("a short address", message(24, body(Route()) + destination([1, 2, 3]))),
            ("a long address", message(24, body(Route()) + destination([UInt8](repeating: 1, count: 16)))),
            ("a short table", message(24, route + attribute(15, [1, 2]))), ("no address", message(24, body(Route()))),
            ("33 bits", message(24, body(Route(length: 33)) + destination([1, 2, 3, 4]))),
            (
                "129 bits",
                message(24, body(Route(family: 10, length: 129)) + destination([UInt8](repeating: 1, count: 16)))
            ),
        ]
        for (name, datagram) in table { XCTAssertEqual(read(datagram).step, .failed, name) }
    }

    /// Each byte of a good answer set to each value, and the answer cut off at each place: none reads beyond its end.
    func testAnyByteMayBeAny() {
        let good = message(24, body(Route()) + destination([13, 0, 0, 0]) + attribute(15, bytes(UInt32(254)))) + done
        for place in good.indices {
            for value in UInt8.min...UInt8.max {
                var forged = good
                forged[place] = value
                _ = read(forged)
            }
            XCTAssertNotEqual(read(Array(good[..<place])).step, .complete)
        }
    }

    func testTooMuch() {
        func routes(_ count: Int) -> [UInt8] {
            (0..<count).flatMap { number -> [UInt8] in
                let address = [13, UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)]
                return message(24, body(Route(length: 32)) + destination(address))
            }
        }
        XCTAssertEqual(read(routes(RouteMessages.maximumNetworks)).step, .more)
        XCTAssertEqual(read(routes(RouteMessages.maximumNetworks + 1)).step, .failed)
        var messages = RouteMessages(sequence: Self.sequence)
        let many = routes(1_000)
        let byRouters = many.count
        var steps = 0
        while many.withUnsafeBytes({ messages.read($0) }) == .more { steps += 1 }
        XCTAssertEqual(steps, RouteMessages.maximumBytes / byRouters)
    }

    func testTheQuestion() {
        let question = RouteMessages.request(sequence: 7)
        XCTAssertEqual(question.count, 28)
        XCTAssertEqual(
            Array(question.prefix(12)), bytes(UInt32(28)) + bytes(UInt16(26)) + bytes(UInt16(0x301)) + bytes(UInt32(7)))
    }
}
