import XCTest

@testable import ImgdlCore

#if DEBUG
    /// What debug builds do not let pass: a request that nobody ends, and a function of the host's that is called with a lock
    /// held. Children of this process do it, and the same as it should be done.
    final class TrapTests: XCTestCase {
        private var downloader: Downloader!
        private var template: RequestTemplate!
        private var outstanding: Outstanding { downloader.outstanding }

        override func setUpWithError() throws {
            let factory = StillTransportFactory()
            let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
                (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
            }
            downloader = try Downloader(
                DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
            template = RequestTemplate(
                options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(),
                recipient: Recipient(downloader, executor: nil, sink: nil))
        }

        override func tearDown() { downloader.destroy() }

        private func subscription() -> Subscription {
            Subscription(
                id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
                submitted: Instant(nanoseconds: 0))
        }

        private func assertTraps(_ words: String, line: UInt = #line, _ act: () -> Void) throws {
            let end = try ChildEnd(of: act)
            XCTAssertTrue(end.isTrap, "it ended with \(end)", line: line)
            XCTAssertTrue(end.words.contains(words), "it said: \(end.words)", line: line)
        }

        private func assertEndsWell(line: UInt = #line, _ act: () -> Void) throws {
            let end = try ChildEnd(of: act)
            XCTAssertEqual(end.status, 0, "it ended with \(end)", line: line)
            XCTAssertEqual(end.words, "", line: line)
        }

        func testARequestThatIsLetGoOfWithoutItsEndTraps() throws {
            try assertTraps("let go of without its end") { _ = outstanding.accept(subscription()) }
            try assertEndsWell { outstanding.accept(subscription()).post(nil) }
        }

        func testARequestOfABatchThatIsLetGoOfBeforeItIsBegunTraps() throws {
            try assertTraps("let go of without its end") { _ = outstanding.hold(subscription()) }
            try assertEndsWell { outstanding.hold(subscription()).post(Failure(.cancelled, "cancelled")) }
        }

        func testARequestThatWasRefusedNeedsNoEnd() throws {
            try assertEndsWell { _ = subscription() }
        }

        /// What is there once is told once: that the compiler sees to.
        func testASecondEndOfARequestTraps() throws {
            for accept in [Outstanding.accept, Outstanding.hold] as [(Outstanding) -> (Subscription) -> RequestEnd] {
                try assertTraps("owed two ends") {
                    let subscription = subscription()
                    accept(outstanding)(subscription).post(nil)
                    accept(outstanding)(subscription).post(nil)
                }
            }
        }

        /// Nobody would ever tell it.
        func testAnEndThatTheEngineOwesAndTheRulesDoNotKnowOfTraps() throws {
            try assertTraps("the engine owes other ends") {
                downloader.engine.subscriptions.put(outstanding.accept(subscription()), at: 0)
                downloader.engine.performActions()
            }
            try assertEndsWell { downloader.engine.performActions() }
        }

        func testAFunctionOfTheHostsThatIsCalledWithALockHeldTraps() throws {
            let lock = Lock()
            try assertTraps("called with a lock held") { lock.withLock { _ = HostCode.run {} } }
            try assertTraps("called with a lock held") { _ = lock.withLock { HostCode.ask { 1 } } }
            try assertEndsWell {
                lock.withLock {}
                // What the host calls of the library has locks of its own.
                HostCode.run { lock.withLock {} }
                HostCode.run {}
            }
        }

        /// One that is thrown out of leaves no lock behind, as far as that is counted.
        func testALockThatWasHeldIsForgotten() throws {
            let lock = Lock()
            try assertEndsWell {
                try? lock.withLock { () throws(Failure) in throw Failure(.internal, "thrown") }
                HostCode.run {}
            }
        }
    }
#endif
