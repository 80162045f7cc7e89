import XCTest

@testable import ImgdlCore

/// A request whose options name a file that cannot be used ends at once, whatever else would have become of it.
final class UnusableFilesTests: XCTestCase {
    private func request(
        _ unusable: String?, hooks: (any Hooks)? = nil, cacheMode: CacheMode = .off
    ) -> TransferRequest {
        var tls = TLSOptions()
        tls.certificateAuthorities = "/none"
        tls.unusable = unusable
        return TransferRequest(
            url: testURL("http://a.example/a"), identity: RequestIdentity(trust: RequestTrust(tls: tls)),
            cacheMode: cacheMode, hooks: hooks)
    }

    func testNothingIsAskedForIt() {
        let failure = Failure(.tlsFailed, "ca_file “/none” cannot be read")
        for kinds in [HookKinds?.none, .modifyRequest] {
            for cacheMode in [CacheMode.off, .use, .only] {
                var play = Play(width: 1)
                play.downloads.hasStore = true
                play.downloads.setSuspended(true, play.now)
                let refused = play.submit(
                    request(failure.message, hooks: kinds.map { SilentHooks($0) }, cacheMode: cacheMode))
                play.expect([.end(refused.subscriber, .failure(failure)), .forget(refused.transfer)])
                play.expectEmpty()
            }
        }
    }

    /// Whatever runs for the same name.
    func testItJoinsNobody() {
        var play = Play()
        let usable = play.submit(request(nil))
        let refused = play.submit(request("broken"))
        play.expect([
            .start(usable.transfer), .end(refused.subscriber, .failure(Failure(.tlsFailed, "broken"))),
            .forget(refused.transfer),
        ])
    }

    /// Nobody joins it, and it is not remembered as a URL that failed.
    func testTheNextOneIsAskedFor() {
        var play = Play { $0.failureLifetime = 1_000 }
        let refused = play.submit(request("broken"))
        let next = play.submit(request(nil))
        XCTAssertNotEqual(refused.transfer, next.transfer)
        play.expect([
            .end(refused.subscriber, .failure(Failure(.tlsFailed, "broken"))), .forget(refused.transfer),
            .start(next.transfer),
        ])
    }
}
