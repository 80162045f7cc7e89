import Glibc
import XCTest

@testable import ImgdlCore

/// Traps of debug builds, each in a process of its own: a promise that is broken anywhere is not broken in silence.
final class TrapTests: XCTestCase {
    /// Swift does not let programs call it by its name.
    private static let fork = unsafeBitCast(dlsym(nil, "fork"), to: (@convention(c) () -> pid_t).self)

    /// The signal by which a child that does so ends; 0 where it comes to the end. `body` has been run here before, if it may be.
    private func signal(_ body: () -> Void) -> Int32 {
        let child = Self.fork()
        if child == 0 {
            // Nobody hears of it twice, and it does not take its time.
            for number in [SIGILL, SIGTRAP, SIGABRT] { Glibc.signal(number, SIG_DFL) }
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO)
            alarm(20)
            body()
            _exit(0)
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        return status & 0x7F
    }

    private let traps: [Int32] = [SIGILL, SIGTRAP]

    private var recipient: Recipient!

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        recipient = Recipient(downloader, executor: nil, sink: nil)
    }

    override func tearDown() { recipient.downloader.destroy() }

    private func subscription(isAccepted: Bool) -> Subscription {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(), recipient: recipient)
        let subscription = Subscription(
            id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
            submitted: Instant(nanoseconds: 0))
        if isAccepted { recipient.outstanding.accept(subscription) }
        return subscription
    }

    /// Accepted, and let go of by everybody before it has ended.
    func testARequestThatIsLost() {
        let refused = { _ = self.subscription(isAccepted: false) }
        let ended = { self.subscription(isAccepted: true).end(nil) }
        let lost = { _ = self.subscription(isAccepted: true) }
        refused()
        ended()
        XCTAssertEqual(signal(refused), 0)
        XCTAssertEqual(signal(ended), 0)
        XCTAssertTrue(traps.contains(signal(lost)))
    }

    /// Or one of its functions is called with a lock of ours held.
    func testAFunctionOfTheHostsUnderALock() {
        let lock = Lock()
        let free = { _ = HostCode.run {} }
        let under = { lock.withLock { _ = HostCode.run {} } }
        free()
        XCTAssertEqual(signal(free), 0)
        XCTAssertTrue(traps.contains(signal(under)))
    }
}
