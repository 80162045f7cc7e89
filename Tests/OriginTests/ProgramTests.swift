import Origin
import XCTest

/// The origin as a program.
final class ProgramTests: XCTestCase {
    /// The program is built beside the test bundle.
    private var program: String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = max(0, readlink("/proc/self/exe", &path, path.count - 1))
        let bundle = String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return bundle.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/imgdl-origin"
    }

    private func port(from line: String) throws -> Int {
        XCTAssertTrue(line.hasPrefix("listening on http://127.0.0.1:"), line)
        return try XCTUnwrap(line.split(separator: ":").last.flatMap { Int($0) })
    }

    func testServesADirectoryUntilItIsTold() throws {
        let scratch = try ScratchDirectory()
        try scratch.write("a.png", [1, 2, 3])
        let command = try Command(
            program, "--root", scratch.path, "--port-file", scratch.path + "/port", "--segment", "1", "--latency", "1")
        let port = try port(from: command.readLine())
        XCTAssertEqual(String(decoding: try scratch.read("port"), as: UTF8.self), "\(port)\n")
        let client = try RawClient(port: port)
        for path in ["/files/a.png", "/pictures/a.png"] {
            client.get(path)
            let response = client.readResponse()
            XCTAssertEqual(response.body, [1, 2, 3])
            XCTAssertEqual(client.header("Content-Type", in: response.head), "image/png")
        }
        client.get("/files/../\(scratch.path)/a.png")
        XCTAssertEqual(client.readResponse().status, 404)
        client.get("/files/")
        XCTAssertEqual(client.readResponse().status, 404)
        client.get("/pictures/a.png?stall_after=1")
        _ = client.readHead()
        command.signal(SIGTERM)
        XCTAssertEqual(command.wait(), 0)
        _ = client.readToEnd()
    }

    func testEndsWithItsInput() throws {
        let command = try Command(program, "--until-eof")
        _ = try port(from: command.readLine())
        command.closeInput()
        XCTAssertEqual(command.wait(), 0)
        let told = try Command(program, "--until-eof")
        _ = try port(from: told.readLine())
        told.signal(SIGTERM)
        XCTAssertEqual(told.wait(), 0)
    }

    func testTellsWhatTLSAndProxyNeed() throws {
        let scratch = try ScratchDirectory()
        let command = try Command(
            program, "--tls", "self-signed", "--client-certificate", "required", "--tls12", "--proxy", "--proxy-user",
            "me", "--proxy-password", "secret", "--info-file", scratch.path + "/info")
        let base = command.readLine().dropFirst("listening on ".count)
        XCTAssertTrue(base.hasPrefix("https://127.0.0.1:"))
        var facts: [String: String] = [:]
        for _ in 0..<9 {
            let parts = command.readLine().split(separator: "=", maxSplits: 1).map(String.init)
            facts[parts[0]] = parts[1]
        }
        let info = String(decoding: try scratch.read("info"), as: UTF8.self)
        for (name, value) in facts { XCTAssertTrue(info.contains("\"\(name)\":\"\(value)\""), "\(name) in \(info)") }
        XCTAssertTrue(info.contains("\"base\":\"\(base)\",\"port\":"), info)
        let result = try startCurl([
            "--insecure", "--pinnedpubkey", try XCTUnwrap(facts["pin"]), "--proxy", try XCTUnwrap(facts["proxy"]),
            "--proxy-user", "me:secret", "--cert", try XCTUnwrap(facts["client_certificate"]),
            "--key", try XCTUnwrap(facts["client_encrypted_key"]), "--pass", try XCTUnwrap(facts["client_passphrase"]),
            base + "/_log",
        ]).result()
        XCTAssertEqual(result.exitCode, 0)
        command.signal(SIGTERM)
        XCTAssertEqual(command.wait(), 0)
        XCTAssertNotEqual(access(try XCTUnwrap(facts["ca_file"]), R_OK), 0)
    }

    func testSaysWhatIsWrong() throws {
        XCTAssertEqual(try Command(program, "--prot", "80").wait(), 2)
        let first = try Command(program)
        let port = try port(from: first.readLine())
        XCTAssertEqual(try Command(program, "--port", "\(port)").wait(), 1, "the port is taken")
        first.signal(SIGINT)
        XCTAssertEqual(first.wait(), 0)
    }
}
