import Dispatch
import Synchronization
import XCTest

@testable import ImgdlCore

/// When the engine's thread is woken: as often as it must, and no more.
final class MailboxTests: XCTestCase {
    private final class Wakes: Sendable {
        let count = Atomic<Int>(0)
        var now: Int { count.load(ordering: .relaxed) }
    }

    private let wakes = Wakes()
    private var mailbox: Mailbox!

    override func setUp() {
        mailbox = Mailbox { [wakes] in wakes.count.add(1, ordering: .relaxed) }
    }

    private func submit() throws {
        try Self.submit(to: mailbox)
    }

    private static func submit(to mailbox: Mailbox) throws {
        let recipient = try XCTUnwrap(recipient)
        try mailbox.submit { recipient.outstanding.accept(Subscription(announcingTo: recipient)) }
    }

    /// How many were taken. Nobody listens to those that were submitted.
    private static func takeAll(from mailbox: Mailbox) -> Int {
        var messages = mailbox.takeAll()
        let count = messages.count
        while let message = messages.popFirst() { if case .submit(let end) = consume message { end.post(nil) } }
        return count
    }

    private func takeAll() -> Int { Self.takeAll(from: mailbox) }

    /// Any will do: nothing is ever delivered.
    private static let recipient: Recipient? = {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        let configuration = DownloaderConfiguration(userAgent: "test")
        let downloader = try? Downloader(configuration, ports: ports, executor: InlineExecutor.shared)
        return downloader.map { Recipient($0, executor: nil, sink: nil) }
    }()

    func testOneWakeUpForManyCommands() throws {
        try submit()
        XCTAssertEqual(wakes.now, 0, "it has not looked yet")
        XCTAssertEqual(mailbox.letRest(naps: false), .awake)
        XCTAssertEqual(takeAll(), 1)
        XCTAssertEqual(mailbox.letRest(naps: false), .sleeps)
        for _ in 0..<3 { try submit() }
        mailbox.post(.cancelAll)
        XCTAssertEqual(wakes.now, 1)
        XCTAssertEqual(takeAll(), 4)
    }

    func testRequestsAloneDoNotEndANap() throws {
        try submit()
        XCTAssertEqual(mailbox.letRest(naps: true), .naps, "what waits already can wait a moment longer")
        try submit()
        XCTAssertEqual(wakes.now, 0)
        mailbox.post(.cancelAll)
        mailbox.post(.cancelAll)
        XCTAssertEqual(wakes.now, 1)
        XCTAssertEqual(takeAll(), 4)
    }

    func testOtherCommandsAllowNoNap() throws {
        mailbox.post(.cancelAll)
        try submit()
        XCTAssertEqual(mailbox.letRest(naps: true), .awake)
        _ = takeAll()
        XCTAssertEqual(mailbox.letRest(naps: true), .naps, "it is forgotten once it is taken")
    }

    func testNobodyIsWokenAfterTheEnd() throws {
        XCTAssertEqual(mailbox.letRest(naps: false), .sleeps)
        XCTAssertEqual(mailbox.close().count, 0)
        XCTAssertFalse(mailbox.post(.cancelAll))
        XCTAssertThrowsError(try submit()) { XCTAssertEqual(($0 as? Failure)?.code, .shutDown) }
        XCTAssertEqual(wakes.now, 0)
    }

    /// The engine's side as it is, beside four threads: what is posted is taken, whoever sleeps when.
    func testNothingIsLeftInAMailboxWhoseEngineSleeps() throws {
        let bell = DispatchSemaphore(value: 0)
        let mailbox = Mailbox { bell.signal() }
        let each = 500
        let senders = (0..<4).map { sender in
            try! Thread.start(name: "sender") {
                for number in 0..<each {
                    if sender == 0, number % 50 == 0 {
                        mailbox.post(.cancelAll)
                    } else {
                        try? Self.submit(to: mailbox)
                    }
                }
                mailbox.post(.cancelAll)
            }
        }
        let total = 4 * (each + 1)
        var taken = 0
        while true {
            let count = Self.takeAll(from: mailbox)
            taken += count
            if taken >= total { break }
            // A nap ends by itself.
            if mailbox.letRest(naps: count >= 8) == .sleeps { bell.wait() }
        }
        XCTAssertEqual(taken, total)
        for sender in senders { sender.join() }
    }
}
