import CacheTesting
import Glibc
import ImgdlCore

/// imgdl-cache-bench [ENTRIES]: what a hit costs. CPU time of the whole process, so with every thread that takes part.
/// Each is compared with what a cache by hand takes in the same round, and the program fails beyond its bounds.
/// `docs/performance.md` has the figures.
@main
enum CacheBench {
    static func main() {
        let argument = CommandLine.arguments.dropFirst().first
        guard let entries = argument.map({ Int($0) }) ?? 1_000_000, entries >= 1_000 else {
            fail("ENTRIES is \(argument ?? ""), and is to be a number of at least 1000")
        }
        var template = Array("/tmp/imgdl-bench-XXXXXX".utf8CString)
        guard let folder = mkdtemp(&template).map({ String(cString: $0) }) else { exit(1) }
        let counts = [1_000, entries]
        let caches = counts.map { StoredEntries("\(folder)/\($0)", $0) }
        let byHand = counts.map { ByHand("\(folder)/by-hand-\($0)", $0) }
        let ways = zip(caches, byHand).flatMap { [$0.cost, $1.cost] as [(Part) -> Double] }
        // All of them in each round: a machine is at times twice as fast as a moment before.
        let costs = Part.allCases.map { part in (0..<rounds).map { _ in ways.map { $0(part) } } }
        removeFolder(folder)

        print("| entries | opening and first hit, ms | disk, 2 KB, µs of CPU | disk, 100 KB | memory, 100 KB |")
        print("|--------:|--------------------------:|----------------------:|-------------:|---------------:|")
        for way in ways.indices {
            let opening = way % 2 == 0 ? text(caches[way / 2].openingMilliseconds) : ""
            let parts = costs.map { rounds in text(median(rounds.map { $0[way] })) }.joined(separator: " | ")
            print("| \(counts[way / 2])\(way % 2 == 0 ? "" : ", by hand") | \(opening) | \(parts) |")
        }
        var isWithin = true
        for (place, count) in counts.enumerated() {
            let opening = caches[place].openingMilliseconds
            isWithin = check("\(count) entries, opening, ms", opening, Bounds.openingMilliseconds) && isWithin
            for (part, rounds) in zip(Part.allCases, costs) {
                let times = median(rounds.map { $0[2 * place] / $0[2 * place + 1] })
                isWithin =
                    check("\(count) entries, \(part), times by hand", times, Bounds.timesByHand(part)) && isWithin
            }
        }
        for (part, rounds) in zip(Part.allCases, costs) {
            let times = median(rounds.map { $0[2] / $0[0] })
            isWithin = check("\(part), times among 1000", times, Bounds.timesAmongFew) && isWithin
        }
        if !isWithin { exit(1) }
    }

    static let rounds = 9

    /// What is measured, in microseconds of CPU.
    enum Part: String, CaseIterable, CustomStringConvertible {
        case small = "disk, 2 KB"
        case large = "disk, 100 KB"
        case memory = "memory, 100 KB"

        var description: String { rawValue }
        /// Of the body.
        var bytes: Int { self == .small ? 2_000 : 100_000 }
    }

    /// What is allowed.
    enum Bounds {
        static let openingMilliseconds = 100.0
        static let timesAmongFew = 1.5

        /// For memory `ByHand` copies as many bytes as a hit has, of which it copies none.
        static func timesByHand(_ part: Part) -> Double { part == .memory ? 0.5 : 2 }
    }

    static func check(_ what: String, _ value: Double, _ bound: Double) -> Bool {
        print("\(what): \(text(value)); \(text(bound)) are allowed\(value > bound ? ": too much" : "")")
        return value <= bound
    }

    /// So many entries of each size have a body, all over the store; the others are there to be passed over.
    static let bodies = 500

    /// The number of an entry that has such a body.
    static func number(_ body: Int, _ part: Part, among count: Int) -> Int {
        body * (count / bodies) + (part == .small ? 1 : 0)
    }

    static func key(_ number: Int) -> String { "https://images.example.org/pictures/of/some/kind/\(number).jpg" }

    static func fields(_ count: Int) -> [HeaderField] {
        [
            HeaderField("Content-Type", "image/jpeg"), HeaderField("Content-Length", "\(count)"),
            HeaderField("ETag", "\"6f3a-5d1e0c9b8a7f6\""), HeaderField("Cache-Control", "public, max-age=86400"),
            HeaderField("Last-Modified", "Tue, 01 Sep 2026 10:00:00 GMT"),
            HeaderField("Date", "Wed, 02 Sep 2026 10:00:00 GMT"),
            HeaderField("Server", "nginx"), HeaderField("Accept-Ranges", "bytes"), HeaderField("Vary", "Accept"),
        ]
    }

    static func fail(_ message: String) -> Never {
        print(message)
        exit(1)
    }

    // MARK: Measuring

    static func now() -> Int64 { MonotonicClock().now().nanoseconds }

    /// Microseconds of CPU for each.
    static func cpu(_ count: Int, _ body: (Int) -> Void) -> Double {
        func used() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
        }
        let start = used()
        for i in 0..<count { body(i) }
        return (used() - start) / Double(count)
    }

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    static func text(_ value: Double) -> String { "\(Double(Int(value * 10 + 0.5)) / 10)" }
}
