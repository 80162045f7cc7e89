import XCTest

@testable import ImgdlCore

/// The fields that say nothing of who asks: docs/caching.md promises that there are no others.
final class ContextFieldsTests: XCTestCase {
    func testTheTableOfTheDocumentationIsTheList() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appendingPathComponent("docs/caching.md"), encoding: .utf8)
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let rows = lines.filter { line in
            ["| Accept, ", "| Cache-Control, ", "| User-Agent, ", "| traceparent, "].contains { line.hasPrefix($0) }
        }
        XCTAssertEqual(rows.count, 4)
        let names = rows.flatMap { row in
            row.split(separator: "|")[0].split(separator: ",").map {
                $0.trimmingCharacters(in: .whitespaces).lowercased()
            }
        }
        XCTAssertEqual(names.sorted(), ContextFields.forAll.sorted())
        XCTAssertFalse(ContextFields.forAll.contains { ContextFields.areCredentials($0) })
    }
}
