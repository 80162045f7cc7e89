import XCTest

@testable import ImgdlCore
@testable import ImgdlTransport

/// What a header costs grows as the header does, whatever is in it: from the first line to a stored response that is
/// validated and used.
final class HeaderStepsTests: XCTestCase {
    private func repeated(_ text: String, _ count: Int, _ line: (String) -> String = { $0 }) -> [String] {
        let many = (0..<count).map { text.replacing("#", with: "\($0)") }.joined(separator: "")
        return [line(many)]
    }

    /// Of so many pieces. Each is to be read as a header of 200 with a day to live.
    private var shapes: [(String, (Int) -> [String])] {
        [
            ("fields", { n in (0..<n).map { "X-\($0): y" } }),
            ("fields of one name", { n in (0..<n).map { _ in "X: y" } }),
            ("fields of one length", { n in (0..<n).map { "N\(100_000 + $0): y" } }),
            ("lengths", { n in (0..<n).map { _ in "Content-Length: 5" } }),
            ("folded lines", { n in ["X: y"] + (0..<n).map { " \($0)" } }),
            ("Cache-Control", { n in (0..<n).map { _ in "Cache-Control: max-age=86400" } }),
            ("directives", { self.repeated("a#=b,", 10 * $0) { "Cache-Control: \($0)" } }),
            ("quotes that never end", { self.repeated("\\\"", 10 * $0) { "Cache-Control: a=\"\($0)" } }),
            (
                "names of no-cache",
                { n in
                    self.repeated("n#,", 10 * n) { "Cache-Control: no-cache=\"\($0)x\"" } + (0..<n).map { "N\($0): y" }
                }
            ),
            (
                "names of Connection",
                { n in
                    self.repeated("n#,", 10 * n) { "Connection: \($0)x" } + (0..<n).map { "N\($0): y" }
                }
            ),
            ("names of Vary", { self.repeated("n#,", 10 * $0) { "Vary: \($0)x" } }),
            ("codings", { self.repeated("identity,", 10 * $0) { "Content-Encoding: \($0)" } }),
            ("units", { self.repeated("u#,", 10 * $0) { "Accept-Ranges: \($0)" } }),
            ("dates", { n in (0..<n).map { _ in "Expires: Tue, 24 Nov 2026 10:00:00 GMT" } }),
        ]
    }

    private func use(_ lines: [String]) -> ErrorCode {
        var parser = ResponseHeadParser(maximumBytes: 256 << 10)
        for line in ["HTTP/1.1 200 OK", "ETag: \"a\""] + lines + [""] {
            if case .failed(let failure) = Array((line + "\r\n").utf8).withUnsafeBytes({ parser.receive($0) }) {
                return failure.code
            }
        }
        guard let head = try? parser.takeHead() else { return .protocolError }
        let request = CacheRequest(method: "GET", fields: [], mode: .use, context: StoredContext.blank)
        let stored = CacheRules.stored(request, head, requestTime: 1_000, responseTime: 1_000)
        guard let stored else { return .ok }
        let entry = StoredEntry(id: EntryID(rawValue: 1), response: stored, mark: ChangeMark())
        _ = CacheRules.decide(CacheQuestion(request), [entry], wallTime: 2_000)
        _ = CacheRules.updated(stored, with: head.fields, requestTime: 3_000, responseTime: 3_000)
        _ = ResumeRules.beginning(request, head, received: 4, requestTime: 1_000, responseTime: 1_000)
        return .ok
    }

    func testTwiceTheHeaderTakesTwiceTheSteps() {
        for (name, lines) in shapes {
            var steps: [Int] = []
            for count in [400, 800] {
                let before = HeaderSteps.count
                XCTAssertEqual(use(lines(count)), .ok, name)
                steps.append(HeaderSteps.count - before)
            }
            XCTAssertGreaterThan(steps[0], 400, "\(name): nothing was counted")
            XCTAssertLessThanOrEqual(Double(steps[1]), 2.2 * Double(steps[0]), "\(name): \(steps)")
        }
    }
}
