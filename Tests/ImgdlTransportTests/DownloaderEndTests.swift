import XCTest

@testable import ImgdlCore
@testable import ImgdlTransport

/// The engine and its transport hold each other for as long as the downloader runs, and no longer.
final class DownloaderEndTests: XCTestCase {
    private final class Seen: @unchecked Sendable {
        weak var transport: CurlTransport?
        weak var engine: (any TransportEvents)?
    }

    private final class NoCodec: ImageCodec {
        func makeProbe() -> (any ImageProbe)? { nil }

        func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder {
            preconditionFailure("nothing is decoded")
        }
    }

    func testNothingIsLeftOfADownloaderThatHasEnded() throws {
        let seen = Seen()
        let clock = MonotonicClock()
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (configuration, loop, events) throws(Failure) in
            let transport = try CurlTransport(
                configuration: configuration, loop: loop, events: events, resolver: ThreadedResolver(clock: clock))
            seen.transport = transport
            seen.engine = events
            return transport
        }
        var downloader: Downloader? = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        XCTAssertNotNil(seen.transport)
        try downloader?.replaceSession(DownloaderConfiguration(userAgent: "test"))
        downloader?.destroy()
        downloader = nil
        XCTAssertNil(seen.transport)
        XCTAssertNil(seen.engine)
    }
}
