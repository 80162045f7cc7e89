import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Who is asked for a name, by the files of /etc.
final class NameSourcesTests: XCTestCase {
    private func answerer(
        _ switches: String?, host: String = "pictures.example", resolving: String? = "nameserver 192.0.2.1\n",
        hostsSize: Int = 100
    ) -> NameSources.Answerer {
        NameSources(switches: switches, resolving: resolving, hostsSize: hostsSize)
            .answerer(of: host, ownName: "camera.example")
    }

    func testFilesAndNameServersNeedNoThread() {
        let table: [(String, String)] = [
            ("", "fb"), ("passwd: files systemd\n", "fb"), ("hosts: files dns\n", "fb"), ("hosts:dns files", "bf"),
            ("\thosts :\tfiles\t dns # as ever\n", "fb"), ("hosts: files", "f"), ("hosts: dns\nnetworks: files", "b"),
            ("# hosts: nis\nhosts: files dns", "fb"), ("hosts: files dns ; more", "fb"),
        ]
        for (text, services) in table { XCTAssertEqual(answerer(text), .ares(services), text) }
    }

    func testWhatElseThereIsIsTheSystems() {
        let lines = [
            "resolve [!UNAVAIL=return] files dns", "files mymachines dns", "files mdns4 dns", "files nis dns",
            "files dns wins", "files ldap", "files [NOTFOUND=return] dns", "files dns [NOTFOUND=return] myhostname",
            "files dns files", "", "nis", "files [ SUCCESS = merge ] dns", "[", "files [", "files dns]",
        ]
        for line in lines { XCTAssertEqual(answerer("hosts: \(line)\n"), .system, line) }
        XCTAssertEqual(answerer("hosts: files dns\nhosts: files dns\n"), .system, "two lines")
        XCTAssertEqual(answerer(nil), .system, "it cannot be read")
    }

    func testServicesForSomeNamesOnly() {
        let desktop = "hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n"
        for host in ["pictures.example", "local.example", "xlocal.example", "a.camera.example", "dotted.example."] {
            XCTAssertEqual(answerer(desktop, host: host), .ares("fb"), host)
        }
        for host in ["printer.local", "local", "a.b.local.", "nas", "_gateway", "camera.example", "camera.example."] {
            XCTAssertEqual(answerer(desktop, host: host), .system, host)
        }
        XCTAssertEqual(answerer("hosts: files dns", host: "nas"), .ares("fb"))
        XCTAssertEqual(answerer("hosts: files dns", host: "printer.local"), .ares("fb"))
    }

    func testWhatCAresWouldReadOtherwiseIsTheSystems() {
        XCTAssertEqual(answerer("", resolving: "nameserver fe80::1%eth0\n"), .system)
        XCTAssertEqual(answerer("", resolving: "# nameserver fe80::1%eth0\nsearch a%b\n"), .ares("fb"))
        XCTAssertEqual(answerer("", resolving: nil), .system)
        XCTAssertEqual(answerer("", resolving: ""), .ares("fb"))
        XCTAssertEqual(answerer("", hostsSize: NameSources.maximumFileSize), .ares("fb"))
        XCTAssertEqual(answerer("", hostsSize: NameSources.maximumFileSize + 1), .system)
    }

    func testFamilies() {
        XCTAssertEqual(NameEnvironment.family(hasIPv4: true, hasIPv6: false), AF_INET)
        XCTAssertEqual(NameEnvironment.family(hasIPv4: false, hasIPv6: true), AF_INET6)
        XCTAssertEqual(NameEnvironment.family(hasIPv4: true, hasIPv6: true), AF_UNSPEC)
        XCTAssertEqual(NameEnvironment.family(hasIPv4: false, hasIPv6: false), AF_UNSPEC, "as getaddrinfo does")
    }

    func testFilesAreReadAnewAfterFiveSeconds() throws {
        let path = NSTemporaryDirectory() + "nsswitch-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { unlink(path) }
        var now = Instant(nanoseconds: 1)
        let environment = NameEnvironment(paths: .init(switches: path, resolving: path, hosts: path)) { now }
        XCTAssertEqual(environment.answerer(of: "a.example"), .ares("fb"), "there is none")
        try "hosts: nis\n".write(toFile: path, atomically: false, encoding: .utf8)
        now = now.advanced(byMilliseconds: 4_999)
        XCTAssertEqual(environment.answerer(of: "a.example"), .ares("fb"))
        now = now.advanced(byMilliseconds: 1)
        XCTAssertEqual(environment.answerer(of: "a.example"), .system)
    }

    func testOnlyFilesOfABoundedSizeAreRead() throws {
        let path = NSTemporaryDirectory() + "resolv-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { unlink(path) }
        let most = String(repeating: "#", count: NameSources.maximumFileSize)
        try most.write(toFile: path, atomically: false, encoding: .utf8)
        XCTAssertEqual(NameEnvironment.text(path), most)
        try (most + "#").write(toFile: path, atomically: false, encoding: .utf8)
        XCTAssertNil(NameEnvironment.text(path))
        XCTAssertNil(NameEnvironment.text("/dev/zero"))
        XCTAssertNil(NameEnvironment.text("/"))
        XCTAssertEqual(NameEnvironment.text(path + ".none"), "")
        unlink(path)
        XCTAssertEqual(mkfifo(path, 0o600), 0)
        XCTAssertNil(NameEnvironment.text(path), "and nobody waits for a writer")
    }
}
