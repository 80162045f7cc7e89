import Foundation
import XCTest

/// Whatever happens in whatever order, the promises hold (features B1–B3, B12, B13, B16).
///
/// Played are requests of all kinds, those that join others, cancels, priorities and new settings; the transport, the cache,
/// hooks and decoders, with whatever they may report, late reports among it; turns that are late, and a process that is
/// stopped; the background; a network that changes; memory that is full, bodies that wait and hosts that take nothing;
/// executors that are released; threads that are refused.
///
/// IMGDL_SEEDS: how many sequences, from IMGDL_FIRST_SEED on; IMGDL_SEED: the one to look at.
final class RandomPlayTests: XCTestCase {
    private static let onceFailed: [UInt64] = [1510, 1717, 2012, 3007, 4602, 5015, 5463, 20120, 61418]

    func testPromisesHoldForAnySequenceOfEvents() {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["IMGDL_SEEDS"].flatMap(UInt64.init) ?? 300
        let first = environment["IMGDL_FIRST_SEED"].flatMap(UInt64.init) ?? 1
        let only = environment["IMGDL_SEED"].flatMap(UInt64.init)
        for seed in only.map({ [$0] }) ?? Array(first..<first + max(1, count)) + Self.onceFailed {
            var play = RandomPlay(seed: seed)
            do {
                try play.run(steps: 300)
            } catch {
                XCTFail("seed \(seed): \(error)\n" + play.transcript.suffix(80).joined(separator: "\n"))
                return
            }
        }
    }
}
