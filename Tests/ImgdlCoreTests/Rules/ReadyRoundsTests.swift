import XCTest

@testable import ImgdlCore

final class ReadyRoundsTests: XCTestCase {
    private typealias Round = ReadyRounds.Round

    /// The places that have a turn, each of which takes so many tenths of the round's time.
    private func turns(_ round: inout Round, tenths: (Int) -> Int64) -> [Int] {
        var now = Instant(nanoseconds: 5_000_000_000)
        var turns: [Int] = []
        while let place = round.next(now) {
            turns.append(place)
            now = Instant(nanoseconds: now.nanoseconds + tenths(place) * ReadyRounds.longest / 10)
        }
        return turns
    }

    func testARound() {
        let table: [(String, ready: Int, light: Int, isCrowded: Bool, tenths: Int64, turns: [Int])] = [
            ("none", 0, 0, false, 1, []),
            ("all in time", 4, 4, false, 1, [0, 1, 2, 3]),
            ("in no time", 4, 2, false, 0, [0, 1, 2, 3]),
            ("one that takes long", 1, 1, false, 400, [0]),
            ("many that take long", 4, 4, false, 400, [0]),
            ("its time is over", 6, 6, false, 4, [0, 1, 2]),
            ("one with much to read has its turn all the same", 9, 6, false, 4, [0, 1, 2, 6]),
            ("all with little to read, and a part of the others", 9, 2, false, 3, [0, 1, 2, 3]),
            ("those with much to read only", 9, 0, false, 4, [0, 1, 2]),
            ("a crowd", 9, 3, true, 1, [0, 1, 2, 3]),
            ("a crowd without time", 9, 3, true, 10, [0, 3]),
            ("a crowd of those with much to read", 9, 0, true, 0, [0]),
            ("a crowd of those with little", 3, 3, true, 0, [0, 1, 2]),
        ]
        for (name, ready, light, isCrowded, tenths, expected) in table {
            var round = Round(ready: ready, light: light, isCrowded: isCrowded)
            XCTAssertEqual(turns(&round) { _ in tenths }, expected, name)
            XCTAssertEqual(Set(round.left), Set(0..<ready).subtracting(expected), name)
            XCTAssertEqual(round.isComplete, expected.count == ready, name)
        }
    }

    /// A clock that does not go on ends no round, and neither does one that goes back.
    func testAClockThatGoesBack() {
        var round = Round(ready: 5, light: 5, isCrowded: false)
        XCTAssertEqual(turns(&round) { _ in -3 }, [0, 1, 2, 3, 4])
    }

    /// Any crowd, ready at any time, with anything to read and turns of any length: the time between two looks at the
    /// deadlines is bounded, and whoever is ready at one look has had its turn before that look counts as heard.
    func testAnyCrowd() {
        var random = SeededGenerator(19)
        for _ in 0..<300 {
            var rounds = ReadyRounds()
            let sockets = (0..<Int.random(in: 1...40, using: &random)).map(Int32.init)
            var unread: [Int32: Int32] = [:]
            var readySince: [Int32: Instant] = [:]
            var now = Instant(nanoseconds: 1)
            let longestTurn = Int64.random(in: 0...30, using: &random)
            for _ in 0..<60 {
                for socket in sockets where readySince[socket] == nil && Bool.random(using: &random) {
                    readySince[socket] = now
                    unread[socket] = Int32.random(in: 1...(2 * ReadyRounds.heavyBytes), using: &random)
                }
                rounds.looks(now)
                let ready = readySince.keys.sorted().shuffled(using: &random)
                let (places, light) = rounds.order(ready, now) { unread[$0]! }
                XCTAssertEqual(places.sorted(), Array(ready.indices))
                XCTAssertTrue(places[..<light].allSatisfy { unread[ready[$0]]! < ReadyRounds.heavyBytes })
                XCTAssertTrue(places[light...].allSatisfy { unread[ready[$0]]! >= ReadyRounds.heavyBytes })
                var round = Round(
                    ready: ready.count, light: light, isCrowded: Int.random(in: 0..<4, using: &random) == 0)
                let began = now
                while let place = round.next(now) {
                    let socket = ready[places[place]]
                    readySince[socket] = nil
                    let time = Int64.random(in: 0...longestTurn, using: &random)
                    now = now.advanced(byMilliseconds: time)
                    if Bool.random(using: &random) {
                        rounds.took(socket, time * 1_000_000)
                    } else {
                        rounds.closed(socket)
                    }
                }
                XCTAssertLessThanOrEqual(
                    now.nanoseconds - began.nanoseconds, ReadyRounds.longest + 2 * longestTurn * 1_000_000)
                XCTAssertFalse(round.left.count == ready.count && !ready.isEmpty, "somebody has a turn")
                rounds.ends(round) { ready[places[$0]] }
                for (socket, since) in readySince {
                    XCTAssertGreaterThanOrEqual(since, rounds.heardUntil, "\(socket) has had no turn")
                }
                now = now.advanced(byMilliseconds: 1)
            }
        }
    }

    /// Of a crowd each has little to read whenever it is looked at, and its turn takes half of a round: a request that comes
    /// anew waits for no more than the round after the next, each time that something comes for it, until it has had its lead.
    func testACrowdThatHasLittleToReadHoldsNobodyUp() {
        for size in [8, 24, 256] {
            var rounds = ReadyRounds()
            let crowd = (0..<size).map(Int32.init)
            let newcomer = Int32(size)
            var now = Instant(nanoseconds: 0)
            var waits: [Int] = []
            var waited: Int?
            var number = 0
            while waits.count < Int(TurnShares.lead / 100_000), number < 10_000 {
                number += 1
                // It answers at once, and something comes again two rounds later.
                if number >= 2 * size, number % 2 == 0, waited == nil { waited = 0 }
                let ready = crowd + (waited == nil ? [] : [newcomer])
                rounds.looks(now)
                let (places, light) = rounds.order(ready, now) { _ in 1_000 }
                var round = Round(ready: ready.count, light: light, isCrowded: true)
                while let place = round.next(now) {
                    let socket = ready[places[place]]
                    let time: Int64 = socket == newcomer ? 100_000 : ReadyRounds.longest / 2
                    rounds.took(socket, time)
                    now = Instant(nanoseconds: now.nanoseconds + time)
                    guard socket == newcomer else { continue }
                    waits.append(waited ?? 0)
                    waited = nil
                }
                rounds.ends(round) { ready[places[$0]] }
                if let rounds = waited { waited = rounds + 1 }
            }
            XCTAssertEqual(waits.count, Int(TurnShares.lead / 100_000), "of \(size)")
            XCTAssertLessThanOrEqual(waits.max() ?? .max, 1, "of \(size)")
        }
    }

    /// However many there are, whose turns take all of a round, and though others come anew in each and go first in every other
    /// one.
    func testWhoWaitsHasItsTurnWithinTwoRoundsForEachThatWaits() {
        var rounds = ReadyRounds()
        let sockets = (0..<50).map(Int32.init)
        var turns: Set<Int32> = []
        var number = 0
        while rounds.heardUntil < Instant(nanoseconds: 0), number < 1_000 {
            let now = Instant(nanoseconds: Int64(number) * ReadyRounds.longest)
            rounds.looks(now)
            let ready = sockets + [Int32(100 + number)]
            let (places, light) = rounds.order(ready, now) { _ in ReadyRounds.heavyBytes }
            var round = Round(ready: places.count, light: light, isCrowded: false)
            let place = round.next(now)!
            turns.insert(ready[places[place]])
            rounds.took(ready[places[place]], ReadyRounds.longest)
            XCTAssertNil(round.next(now.advanced(byMilliseconds: ReadyRounds.longest / 1_000_000)))
            rounds.ends(round) { ready[places[$0]] }
            number += 1
        }
        XCTAssertTrue(turns.isSuperset(of: sockets))
        XCTAssertGreaterThan(turns.count, sockets.count, "some came anew")
        XCTAssertLessThanOrEqual(number, 2 * (sockets.count + 1))
    }
}
