import XCTest

@testable import ImgdlCore

/// Whole pictures that wait for room to be decoded, and others that need less of it (features B20).
final class DecodeLineTests: XCTestCase {
    /// Decoders that have room, and how much of it.
    private struct Room {
        var reserved: [TransferID] = []
        var bytes: [TransferID: Int64] = [:]
        var ended: [SubscriberID] = []

        mutating func look(_ play: inout Play) {
            for action in play.downloads.takeActions() {
                switch action {
                case .reserve(let id, _, let more):
                    reserved.append(id)
                    bytes[id] = more
                case .end(let subscriber, .success): ended.append(subscriber)
                default: break
                }
            }
        }

        /// Its decoder is done, and its terminal callback has returned.
        mutating func finish(_ id: TransferID, _ play: inout Play) {
            play.stepped(id, .finished, header: true)
            look(&play)
            play.downloads.memoryReleased(bytes.removeValue(forKey: id) ?? 0, play.now)
            look(&play)
        }
    }

    private func begin(_ entry: Play.Entry, rows: Int, _ play: inout Play) {
        play.connected(entry.transfer)
        play.head(entry.transfer)
        play.downloads.probed(entry.transfer, .known(width: 25, height: rows, held: 0))
        play.body(entry.transfer, 1)
    }

    /// One row takes 100 bytes.
    private func whole(
        _ path: String, rows: Int, _ play: inout Play, _ options: SubscriberOptions = .image
    ) -> Play.Entry {
        let entry = play.submit(path, options)
        begin(entry, rows: rows, &play)
        play.finished(entry.transfer)
        return entry
    }

    /// Small pictures come without end, each before the one before it has gone, and there is never room for a large one.
    func testALargePictureIsPassedSixteenTimesAtMost() {
        for priority in [Priority.normal, .high] {
            var play = Play { $0.memoryBudget = 1_000 }
            var room = Room()
            let small = SubscriberOptions.with { $0.priority = priority }
            var last = whole("first", rows: 2, &play, small)
            let large = whole("large", rows: 9, &play)
            room.look(&play)
            XCTAssertEqual(room.reserved, [last.transfer])
            var all = [last, large]
            while !room.reserved.contains(large.transfer), all.count < 100 {
                let next = whole("\(all.count)", rows: 2, &play, small)
                room.look(&play)
                room.finish(last.transfer, &play)
                (last, all) = (next, all + [next])
            }
            XCTAssertEqual(room.reserved.last, large.transfer)
            XCTAssertEqual(room.reserved.count, 1 + 16 + 1, "the first one, those that pass it, and itself")
            room.finish(large.transfer, &play)
            room.finish(last.transfer, &play)
            XCTAssertEqual(Set(room.ended), Set(all.map(\.subscriber)))
            play.expectEmpty()
        }
    }

    /// So do pictures that are watched while they come: their decoders begin with their first bytes.
    func testItIsPassedByNoMorePicturesThatAreWatched() {
        var play = Play { $0.memoryBudget = 1_000 }
        var room = Room()
        var last = play.submit("first", .with(.partial))
        begin(last, rows: 2, &play)
        let large = whole("large", rows: 9, &play)
        var all = [last, large]
        while !room.reserved.contains(large.transfer), all.count < 100 {
            let next = play.submit("\(all.count)", .with(.partial))
            begin(next, rows: 2, &play)
            room.look(&play)
            if room.reserved.contains(last.transfer) { play.stepped(last.transfer, .fed, header: true) }
            play.finished(last.transfer)
            room.finish(last.transfer, &play)
            (last, all) = (next, all + [next])
        }
        XCTAssertEqual(room.reserved.last, large.transfer)
        XCTAssertEqual(room.reserved.count, 1 + 16 + 1)
        play.finished(last.transfer)
        room.finish(large.transfer, &play)
        room.finish(last.transfer, &play)
        XCTAssertEqual(Set(room.ended), Set(all.map(\.subscriber)))
        play.expectEmpty()
    }

    /// For as long as another's body comes whose pixels leave it no room it would have none of what others did without.
    func testOthersGoOnWhileABodyComesThatLeavesItNoRoom() {
        var play = Play { $0.memoryBudget = 1_000 }
        var room = Room()
        let slow = play.submit("slow", .with(.partial))
        begin(slow, rows: 5, &play)
        let large = whole("large", rows: 6, &play)
        for number in 0..<40 {
            let small = whole("\(number)", rows: 2, &play)
            room.look(&play)
            XCTAssertEqual(room.reserved.last, small.transfer)
            room.finish(small.transfer, &play)
        }
        let last = whole("last", rows: 2, &play)
        let urgent = whole("urgent", rows: 4, &play, .with { $0.priority = .high })
        room.look(&play)
        XCTAssertEqual(room.reserved.last, last.transfer)
        room.finish(last.transfer, &play)
        XCTAssertEqual(room.reserved.last, urgent.transfer, "it stood in line behind the large one")
        XCTAssertFalse(room.reserved.contains(large.transfer))
        play.stepped(slow.transfer, .fed, header: true)
        play.finished(slow.transfer)
        let late = whole("late", rows: 1, &play)
        room.finish(slow.transfer, &play)
        room.finish(urgent.transfer, &play)
        XCTAssertEqual(Array(room.reserved.suffix(2)), [large.transfer, late.transfer])
    }

    /// Who is the next waits for nobody who stands behind it.
    func testThoseInLineWaitForNoneBehindThem() {
        var play = Play {
            $0.memoryBudget = 1_000
            $0.maximumPasses = 0
        }
        var room = Room()
        let all = (0..<4).map { whole("\($0)", rows: 9, &play).transfer }
        room.look(&play)
        for number in 0..<4 {
            XCTAssertEqual(room.reserved, Array(all[...number]))
            room.finish(all[number], &play)
        }
        play.expectEmpty()
    }

    private func passSixteen(_ room: inout Room, _ play: inout Play) {
        for number in 0..<16 {
            let small = whole("\(number)", rows: 1, &play)
            room.look(&play)
            room.finish(small.transfer, &play)
        }
    }

    /// Once its executor is behind it waits for that, and holds up nobody.
    func testOthersGoOnOnceItWaitsForItsExecutor() {
        var play = Play { $0.memoryBudget = 1_000 }
        var room = Room()
        _ = whole("first", rows: 2, &play)
        let request = TransferRequest(url: testURL("https://a.example/large"))
        let large = play.downloads.submit(request, Boxed(wrappedValue: .image), executor: 1, play.now).transfer
        begin((0, large), rows: 9, &play)
        play.finished(large)
        passSixteen(&room, &play)
        play.downloads.holdMemory(300)
        play.downloads.waits(300, for: 1)
        let late = whole("late", rows: 1, &play)
        room.look(&play)
        XCTAssertEqual(room.reserved.count, 1 + 16 + 1)
        XCTAssertEqual(room.reserved.last, late.transfer)
    }

    /// Those that wait for it go on once nobody wants it any more.
    func testOthersGoOnOnceItIsCancelled() {
        var play = Play { $0.memoryBudget = 1_000 }
        var room = Room()
        let first = whole("first", rows: 2, &play)
        let large = whole("large", rows: 9, &play)
        passSixteen(&room, &play)
        let late = whole("late", rows: 1, &play)
        room.look(&play)
        XCTAssertEqual(room.reserved.count, 17)
        play.cancel(large)
        room.look(&play)
        XCTAssertEqual(room.reserved.last, late.transfer)
        room.finish(first.transfer, &play)
        room.finish(late.transfer, &play)
        play.expectEmpty()
    }
}
