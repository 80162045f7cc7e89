import XCTest

@testable import ImgdlCore

/// The end of a request as a value: what it costs, and that nothing which holds it may go while it is in there.
final class RequestEndTests: XCTestCase {
    private var downloader: Downloader!

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
    }

    override func tearDown() { downloader.destroy() }

    private func accepted(_ executor: (any Executor)? = nil, _ sink: (any EventSink)? = nil) -> RequestEnd {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(),
            recipient: Recipient(downloader, executor: executor, sink: sink))
        return downloader.outstanding.accept(
            Subscription(
                id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
                submitted: Instant(nanoseconds: 0)))
    }

    /// A million of them may wait.
    func testItTakesNoRoomBesidesItsSubscription() throws {
        XCTAssertEqual(MemoryLayout<Obligation>.size, 0)
        XCTAssertEqual(MemoryLayout<RequestEnd?>.size, MemoryLayout<Subscription>.size)
        XCTAssertEqual(MemoryLayout<Terminal?>.size, MemoryLayout<DownloadResult>.size)
        let end = accepted()
        let subscription = end.subscription
        defer { withExtendedLifetime(subscription) {} }
        let block = Unmanaged.passUnretained(subscription).toOpaque()
        end.post(nil)
        // Of the allocator's <malloc.h>, which no module has.
        let size = unsafeBitCast(
            try XCTUnwrap(dlsym(nil, "malloc_usable_size")), to: (@convention(c) (UnsafeRawPointer) -> Int).self)
        XCTAssertLessThanOrEqual(size(block) + MemoryLayout<Int>.size, 128)
    }

    func testTheEngineHasOneInEachSlot() {
        var table = OwedEnds()
        var subscriptions: [Subscription] = []
        for slot in [3, 200, 0] {
            let end = accepted()
            subscriptions.append(end.subscription)
            table.put(end, at: slot)
        }
        for (slot, subscription) in zip([3, 200, 0], subscriptions) {
            XCTAssertTrue(table[slot] === subscription)
            XCTAssertEqual(table.look(at: slot) { $0 === subscription }, true)
        }
        for slot in [1, 199, 201] {
            XCTAssertNil(table[slot])
            XCTAssertNil(table.look(at: slot) { $0 })
            if let end = table.take(slot) {
                XCTFail("nothing was put at \(slot)")
                end.post(nil)
            }
        }
        for slot in [200, 3, 0] {
            guard let end = table.take(slot) else { return XCTFail("nothing at \(slot)") }
            XCTAssertNil(table[slot])
            end.post(nil)
        }
        XCTAssertEqual(subscriptions.filter { downloader.result(of: $0)?.code == .ok }.count, 3)
    }

    #if DEBUG
        private func assertTraps(line: UInt = #line, _ act: () -> Void) throws {
            let end = try ChildEnd(of: act)
            XCTAssertTrue(end.isTrap, "it ended with \(end)", line: line)
            XCTAssertTrue(end.words.contains("let go of without its end"), "it said: \(end.words)", line: line)
        }

        func testATableThatGoesWithOneInItTraps() throws {
            try assertTraps {
                var table = OwedEnds()
                table.put(accepted(), at: 7)
            }
        }

        func testAMailboxThatGoesWithOneInItTraps() throws {
            try assertTraps { try? Mailbox {}.submit { accepted() } }
            try assertTraps {
                var ends = Queue<RequestEnd>()
                ends.append(accepted())
                _ = Mailbox {}.end(UnsubmittedRequests(ends, nil))
            }
        }

        /// There it lies in its subscription, alone or with others.
        func testAnExecutorThatGoesWithOneInItTraps() throws {
            for events in [[], [.started]] as [[DownloadEvent]] {
                try assertTraps {
                    let end = accepted(ForgetfulExecutor(), Deaf())
                    for event in events { end.subscription.post(event) }
                    end.post(nil)
                }
            }
        }
    #endif
}

/// Takes what waits, and forgets it.
private final class ForgetfulExecutor: Executor, @unchecked Sendable {
    private var queue = DeliveryQueue()

    func post(_ subscription: Subscription, _ event: DownloadEvent) { _ = queue.add(subscription, event) }

    func post(_ subscription: Subscription, _ terminal: consuming Terminal) {
        _ = queue.add(subscription, terminal)
        _ = queue.takeAll()
    }
}

private final class Deaf: EventSink {
    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool { true }
    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool { true }
    func close(_ subscription: Subscription) {}
}
