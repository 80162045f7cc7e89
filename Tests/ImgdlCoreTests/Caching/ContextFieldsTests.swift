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

    private func properties(of value: Any) -> Set<String> {
        // Those with a wrapper have its mark.
        Set(Mirror(reflecting: value).children.compactMap { $0.label.map { String($0.drop { $0 == "_" }) } })
    }

    private func context(_ identity: RequestIdentity, cookies: [UInt8]? = nil) -> SecurityContext {
        let sent = TransportRequest(
            url: testURL("https://a.example/"), method: "GET", fields: [], body: nil, maximumHeaderBytes: 1,
            identity: identity)
        return SecurityContext(sent.manner, cookies: cookies)
    }

    /// A new option of a request's must say whether it belongs to the context: here.
    func testEachPropertyOfWhoAsksAndWhomItTrustsMakesAnotherContext() {
        let contents = FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 0, digest: [1])
        let tls: [String: (inout TLSOptions) -> Void] = [
            "certificateAuthorities": { $0.certificateAuthorities = "a" },
            "clientCertificate": { $0.clientCertificate = "a" }, "clientKey": { $0.clientKey = "a" },
            "clientKeyPassword": { $0.clientKeyPassword = "a" }, "pinnedPublicKey": { $0.pinnedPublicKey = "a" },
            "authorities": { $0.authorities = contents }, "certificate": { $0.certificate = contents },
            "key": { $0.key = contents },
            "allowsInvalidCertificates": { $0.allowsInvalidCertificates = true },
        ]
        // Nothing is answered where a file is of no use.
        XCTAssertEqual(properties(of: TLSOptions()), Set(tls.keys).union(["unusable"]))
        let trust: [String: (inout RequestTrust) -> Void] = [
            "tls": { $0.tls.clientKey = "b" }, "partition": { $0.partition = "a" },
        ]
        XCTAssertEqual(properties(of: RequestTrust()), Set(trust.keys))
        let identity: [String: (inout RequestIdentity) -> Void] = [
            "trust": { $0.trust.partition = "b" }, "credential": { $0.credential = Credential(user: "", password: "") },
            "allowsBasicOverHTTP": { $0.allowsBasicOverHTTP = true },
        ]
        // The cookies that are sent come from the transport.
        XCTAssertEqual(
            properties(of: RequestIdentity()), Set(identity.keys).union(["usesCookies", "cookies"]))
        let changes =
            tls.values.map { change in { (all: inout RequestIdentity) in change(&all.trust.tls) } }
            + trust.values.map { change in { (all: inout RequestIdentity) in change(&all.trust) } }
            + identity.values.map { change in { (all: inout RequestIdentity) in change(&all) } }
        var seen = [context(RequestIdentity()), context(RequestIdentity(), cookies: [1])]
        for change in changes {
            var identity = RequestIdentity()
            change(&identity)
            let context = context(identity)
            XCTAssertFalse(seen.contains(context), "\(identity)")
            seen.append(context)
        }
    }
}
