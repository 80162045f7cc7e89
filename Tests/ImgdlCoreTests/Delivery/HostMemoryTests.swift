import CSystem
import XCTest

@testable import ImgdlCore

/// No lock is held while memory of the host's is given back to it (issue 21, 10).
final class HostMemoryTests: XCTestCase {
    private var downloader: Downloader!
    private let host = Host()

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
    }

    override func tearDown() { downloader.destroy() }

    private func accepted(_ executor: any Executor, _ sink: any EventSink = Deaf()) -> RequestEnd {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(),
            recipient: Recipient(downloader, executor: executor, sink: sink))
        let subscription = Subscription(
            id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
            submitted: Instant(nanoseconds: 0))
        return downloader.outstanding.accept(subscription)
    }

    private func result(_ image: DecodedImage) -> DownloadResult {
        DownloadResult(failure: nil, content: .init(image: Boxed(wrappedValue: image)))
    }

    private func check(given count: Int, _ message: String = "", file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertEqual(host.returned, [Int32](repeating: 0, count: count), message, file: file, line: line)
    }

    /// A newer partial picture, another attempt and the end each take the place of one that waits.
    func testAPictureThatIsDisplacedWhileItWaits() throws {
        let executor = try PumpedExecutor()
        let end = accepted(executor)
        let subscription = end.subscription
        subscription.post(.partial(try host.picture(), ImgdlCore.Progress()))
        subscription.post(.partial(try host.picture(), ImgdlCore.Progress()))
        check(given: 1, "a newer one")
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: nil, isEncoded: false)
        subscription.post(
            .response(Response(url: subscription.url, head: head, hops: []), ImgdlCore.Progress()))
        check(given: 2, "another attempt")
        subscription.post(.partial(try host.picture(), ImgdlCore.Progress()))
        end.post(result(try host.picture()))
        check(given: 3, "the end")
        _ = try executor.dispatch(maximum: 0)
        check(given: 4, "a callback has had it")
    }

    /// While one callback of a token runs, its next events wait.
    func testAPictureThatIsDisplacedDuringACallback() throws {
        let executor = try ThreadExecutor()
        let entered = DispatchSemaphore(value: 0)
        let left = DispatchSemaphore(value: 0)
        let ended = expectation(description: "the terminal is delivered")
        let sink = Hearing { event in
            if case .started = event {
                entered.signal()
                left.wait()
            }
        } atEnd: {
            ended.fulfill()
        }
        let end = accepted(executor, sink)
        let subscription = end.subscription
        subscription.post(.started)
        entered.wait()
        subscription.post(.partial(try host.picture(), ImgdlCore.Progress()))
        subscription.post(.partial(try host.picture(), ImgdlCore.Progress()))
        check(given: 1)
        end.post(DownloadResult(failure: nil))
        check(given: 2)
        left.signal()
        wait(for: [ended], timeout: 20)
        try downloader.outstanding.waitUntilNone(until: MonotonicClock().now().advanced(byMilliseconds: 20_000))
        executor.close()
    }

    /// Its host has let go of the executor: nobody will take what waits there, also where a token lives on.
    func testPicturesThatWaitForAReleasedExecutor() throws {
        let executor = try PumpedExecutor()
        let first = accepted(executor)
        let second = accepted(executor)
        let (ended, running) = (first.subscription, second.subscription)
        ended.post(.partial(try host.picture(), ImgdlCore.Progress()))
        first.post(result(try host.picture()))
        running.post(.partial(try host.picture(), ImgdlCore.Progress()))
        check(given: 1)
        executor.close()
        check(given: 3)
        XCTAssertEqual(downloader.result(of: ended)?.code, .cancelled)
        second.post(result(try host.picture()))
        check(given: 4)
        XCTAssertEqual(downloader.result(of: running)?.code, .cancelled)
        withExtendedLifetime([ended, running]) {}
    }

    /// Memory's place is taken at once by whoever hears that it has come back.
    func testMemoryIsFreeWhenItIsToldToHaveComeBack() throws {
        for (index, letGo) in ([{ $0.letGoOfContent() }, { _ in }] as [(DownloadResult) -> Void]).enumerated() {
            let told = expectation(description: "told")
            let ledger = MemoryLedger { [self] in
                check(given: index + 1)
                told.fulfill()
            }
            _ = ledger.wakeOnReturn()
            do {
                let result = DownloadResult(
                    failure: nil,
                    content: .init(
                        image: Boxed(wrappedValue: try host.picture()), imageCharge: MemoryCharge(64, ledger)))
                letGo(result)
            }
            wait(for: [told], timeout: 0)
        }
    }

    private func submitWork(with makePicture: () throws -> DecodedImage, to pool: WorkerPool) throws {
        let picture = try makePicture()
        XCTAssertTrue(pool.submit(.normal) { withExtendedLifetime(picture) {} })
    }

    /// What waits for a decoder's thread when the downloader ends.
    func testWorkThatIsDropped() throws {
        let pool = WorkerPool(width: 1)
        let entered = DispatchSemaphore(value: 0)
        let left = DispatchSemaphore(value: 0)
        XCTAssertTrue(
            pool.submit(.normal) {
                entered.signal()
                left.wait()
            })
        entered.wait()
        try submitWork(with: { try host.picture() }, to: pool)
        host.onReturn = { left.signal() }
        pool.close()
        check(given: 1)
    }
}

private final class Deaf: EventSink {
    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool { true }
    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool { true }
    func close(_ subscription: Subscription) {}
}

private final class Hearing: EventSink, @unchecked Sendable {
    private let hear: (DownloadEvent) -> Void
    private let atEnd: () -> Void

    init(_ hear: @escaping (DownloadEvent) -> Void, atEnd: @escaping () -> Void) {
        self.hear = hear
        self.atEnd = atEnd
    }

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool {
        hear(event)
        return true
    }

    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool {
        atEnd()
        return true
    }

    func close(_ subscription: Subscription) {}
}

/// Gives memory for pictures, and writes down how many locks its thread held each time that it got it back.
private final class Host: @unchecked Sendable {
    private let lock = Lock()
    private var locksHeld: [Int32] = []
    var onReturn: () -> Void = {}

    var returned: [Int32] { lock.withLock { locksHeld } }

    func picture() throws -> DecodedImage {
        let allocator = CanvasAllocator(
            allocate: { _, height, _, stride, _ in malloc(stride!.pointee * Int(height)) },
            deallocate: { memory, userData in
                free(memory)
                Unmanaged<Host>.fromOpaque(userData!).takeUnretainedValue().take()
            }, userData: Unmanaged.passUnretained(self).toOpaque())
        let canvas = try PixelBuffer(width: 4, height: 4, format: .rgba8, allocator: allocator)
        return DecodedImage(
            header: ImageHeader(format: .png, width: 4, height: 4, hasAlpha: true, isProgressive: false),
            pixels: canvas, ready: PixelRectangle(x: 0, y: 0, width: 4, height: 4), isComplete: true)
    }

    private func take() {
        let held = system_locks_held()
        lock.withLock { locksHeld.append(held) }
        onReturn()
    }
}
