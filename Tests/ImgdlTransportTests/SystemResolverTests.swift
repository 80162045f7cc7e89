import Glibc
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Who looks a name up, by what nsswitch.conf says.
final class SystemResolverTests: TransportTestCase {
    /// What getaddrinfo would be asked, and would not answer before it is told to.
    private final class System: @unchecked Sendable {
        private let lock = Lock()
        private let changed: Condition
        private var asked: [String] = []
        private var isOpen = false

        init() { changed = Condition(lock) }

        var names: [String] { lock.withLock { asked } }

        func lookUp(_ host: String) -> Result<[String], Failure> {
            lock.withLock {
                asked.append(host)
                changed.broadcast()
                while host.hasPrefix("stuck"), !isOpen { changed.wait() }
            }
            return .success(["127.0.0.1"])
        }

        func open() {
            lock.withLock {
                isOpen = true
                changed.broadcast()
            }
        }
    }

    private let system = System()
    private var server: NameServer!
    private let path = NSTemporaryDirectory() + "switches-\(getpid())-\(UInt32.random(in: 0 ... .max))"

    override func setUpWithError() throws {
        try super.setUpWithError()
        server = try NameServer { _ in .addresses(["127.0.0.1"], seconds: 60) }
        origin.route("/a") { try $0.respond(text: "a") }
    }

    override func tearDown() {
        system.open()
        super.tearDown()
        server.stop()
        unlink(path)
    }

    private func use(_ switches: String) throws {
        try switches.write(toFile: path, atomically: false, encoding: .utf8)
        try makeTransport(resolver: { [system, path, server] loop in
            let paths = NameEnvironment.Paths(switches: path, resolving: "/nowhere", hosts: "/nowhere")
            let environment = NameEnvironment(paths: paths) { loop.now }
            let ares = try AresResolver(
                loop: loop, environment: environment, servers: try NameServers(server!.address))
            return SystemResolver(environment, ares, ThreadedResolver(lookUp: { system.lookUp($0) }))
        })
    }

    private func named(_ host: String) -> String { "http://\(host):\(origin.port)/a" }

    func testFilesAndNameServersNeedNoThread() throws {
        try use("hosts: files dns\n")
        XCTAssertEqual(try fetchSucceeding(named("pictures.test")).text, "a")
        XCTAssertEqual(system.names, [])
        XCTAssertTrue(server.names.contains("pictures.test"))
    }

    func testWhatElseThereIsIsTheSystems() throws {
        try use("hosts: files resolve [!UNAVAIL=return] dns\n")
        XCTAssertEqual(try fetchSucceeding(named("pictures.test")).text, "a")
        XCTAssertEqual(system.names, ["pictures.test"])
        XCTAssertEqual(server.names, [])
    }

    func testBothAtOnceAndEachIsAbandonedWhereItIs() throws {
        try use("hosts: files mdns4_minimal [NOTFOUND=return] dns\n")
        let stuck = try start(named("stuck.local"))
        let other = try start(named("pictures.test"))
        XCTAssertEqual(record(of: other).text, "a")
        transport.cancel(stuck)
        system.open()
        XCTAssertEqual(try fetchSucceeding(named("live.local")).text, "a")
        XCTAssertNil(recorder.records[stuck])
        XCTAssertFalse(server.names.contains { $0.hasSuffix(".local") }, "\(server.names)")
        XCTAssertTrue(system.names.allSatisfy { $0.hasSuffix(".local") }, "\(system.names)")
    }
}
