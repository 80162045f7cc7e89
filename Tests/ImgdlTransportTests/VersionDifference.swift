import CCurl
import Glibc
import XCTest

/// An entry of docs/versions.md: what differs by the version of a library, and from which on.
struct VersionDifference {
    let library: String
    let version: [Int]

    /// Those of the page.
    static let all: [String: VersionDifference] = {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        guard let page = fopen("/\(root)/docs/versions.md", "r") else { return [:] }
        defer { fclose(page) }
        var entries: [String: VersionDifference] = [:]
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, page) > 0 {
            let cells = String(cString: line!).split(separator: "|").map {
                $0.split(separator: " ").joined(separator: " ")
            }
            guard cells.count >= 5 else { continue }
            let version = numbers(cells[2])
            if !version.isEmpty { entries[cells[0]] = VersionDifference(library: cells[1], version: version) }
        }
        return entries
    }()

    static func named(_ name: String) -> VersionDifference {
        guard let entry = all[name] else {
            XCTFail("docs/versions.md has no entry \(name)")
            return VersionDifference(library: "", version: [])
        }
        return entry
    }

    /// Whether the library here is that version or newer.
    var applies: Bool { !running.lexicographicallyPrecedes(version) }

    private var running: [Int] {
        let info = curl_version_info(CURLVERSION_ELEVENTH)!.pointee
        switch library {
        case "libcurl": return Self.numbers(String(cString: info.version))
        case "nghttp2":
            let number = Int(info.nghttp2_ver_num)
            return [number >> 16, number >> 8 & 0xFF, number & 0xFF]
        default:
            XCTFail("nobody has asked for the version of \(library)")
            return []
        }
    }

    private static func numbers(_ text: String) -> [Int] {
        text.prefix { $0.isNumber || $0 == "." }.split(separator: ".").compactMap { Int($0) }
    }
}

/// Entries are right on the versions that are here.
final class VersionDifferenceTests: TransportTestCase {
    func testEscapesWithAPassword() throws {
        origin.route(prefix: "/") { try $0.respond(text: "a") }
        let record = record(of: try start(origin.url("/%2fa").replacing("http://", with: "http://me:secret@")))
        XCTAssertTrue(record.isFinished)
        let isChanged = VersionDifference.named("credential-escapes").applies
        XCTAssertEqual(origin.log.requests.last?.target, isChanged ? "/%2Fa" : "/%2fa")
    }
}
