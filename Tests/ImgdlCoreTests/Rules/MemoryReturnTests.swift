import XCTest

@testable import ImgdlCore

/// Memory that comes back from a host that was behind: it is given out once.
final class MemoryReturnTests: XCTestCase {
    /// Three pictures wait for room, of which two fit into what comes back.
    func testTheBudgetIsHeldWhenAHostTakesAll() {
        var play = Play { $0.memoryBudget = 1_000 }
        let entries = ["a", "b", "c"].map { play.submit($0, .image) }
        play.downloads.holdMemory(600)
        // A quarter is the share of an executor: this one is behind.
        play.downloads.waits(600, for: 1)
        // It is on its way to others, who give it back.
        play.downloads.holdMemory(900)
        play.downloads.reviewBacklogs(play.now)
        for entry in entries {
            play.connected(entry.transfer)
            play.head(entry.transfer, length: 1)
            play.downloads.probed(entry.transfer, .known(width: 10, height: 10, held: 0))
            play.body(entry.transfer, 1)
            play.finished(entry.transfer)
        }
        XCTAssertFalse(play.take().contains { if case .decode = $0 { true } else { false } }, "400 bytes do not fit")
        play.downloads.memoryCameBack(600, taken: [(executor: 1, bytes: 600)], play.now)
        play.downloads.reviewBacklogs(play.now)
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 1_000)
        XCTAssertGreaterThanOrEqual(play.downloads.memoryInUse, 900)
    }

    /// Whichever way a result is let go of, the engine hears that it was taken no later than that its memory has come back.
    func testWhatComesBackHasBeenTaken() {
        final class Seen: @unchecked Sendable {
            var ledger: MemoryLedger!
            var returned: Int64 = 0
            var taken: Int64 = 0
            func look() {
                returned += ledger.take()
                taken += (ledger.takeTaken() ?? []).reduce(0) { $0 + $1.bytes }
                XCTAssertLessThanOrEqual(returned, taken)
                _ = ledger.wakeOnReturn()
            }
        }
        for letGo in [{ $0.letGoOfCharges() }, { $0.letGoOfContent() }, { _ in }] as [(DownloadResult) -> Void] {
            let seen = Seen()
            seen.ledger = MemoryLedger { seen.look() }
            do {
                let result = DownloadResult(
                    failure: nil,
                    content: DownloadResult.Content(
                        imageCharge: MemoryCharge(100, seen.ledger), bodyCharge: MemoryCharge(20, seen.ledger),
                        imageWaits: WaitingCharge(100, for: 1, seen.ledger),
                        bodyWaits: WaitingCharge(20, for: 1, seen.ledger)))
                _ = seen.ledger.wakeOnReturn()
                letGo(result)
            }
            seen.look()
            XCTAssertEqual(seen.returned, 120)
            XCTAssertEqual(seen.taken, 120)
            seen.ledger = nil
        }
    }
}
