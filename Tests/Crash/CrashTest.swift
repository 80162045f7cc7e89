import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

/// imgdl-cache-crash [ROUNDS [SEED]]: issues 5 and 20, the crash test. Four processes store and look up 600 URLs of ten
/// kinds (`Kind`) in one folder, each with a memory of its own; in each round one of them is killed with SIGKILL at a random
/// moment and another takes its place. What is served always equals what was given, whole, is never older than what was
/// flushed or removed before, and never another side's; what was flushed is not missing; what the killed one left is removed.
///
/// The body of a URL in a version is a pattern that follows from both.
@main
enum CrashTest {
    static let keyCount = 600
    static let workerCount = 4

    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count > 4, arguments[1] == "work" {
            return work(arguments[2], number: Int(arguments[3]) ?? 0, version: Int64(arguments[4]) ?? 1)
        }
        let rounds = arguments.count > 1 ? Int(arguments[1]) ?? 20 : 20
        let seed = arguments.count > 2 ? UInt64(arguments[2]) ?? 1 : UInt64.random(in: 1..<1_000_000)
        var test = Rounds(seed: seed)
        let isGood = test.run(rounds)
        print(
            "crash: \(rounds) rounds, seed \(seed): \(test.checked) looked up, \(test.served) of them found, "
                + "\(test.orphans) left by the killed and removed")
        print("\(isGood ? rounds : rounds - 1) passed, \(isGood ? 0 : 1) failed, 0 skipped")
        exit(isGood ? 0 : 1)
    }

    static func open(_ directory: String, memory: Int64 = 0) -> Cache {
        var configuration = CacheConfiguration()
        configuration.directory = directory
        configuration.maximumBytes = 4 << 30
        configuration.maximumPartialBytes = 1 << 30
        configuration.maximumMemoryBytes = memory
        let cache = try? Cache(configuration, clock: MonotonicClock()) { event in
            complain("event \(event.kind): \(event.message)")
            exit(3)
        }
        guard let cache else { exit(4) }
        return cache
    }

    static func floors(_ directory: String) -> Floors {
        guard let floors = Floors(directory + ".floors", count: keyCount) else { exit(9) }
        return floors
    }

    static func work(_ directory: String, number: Int, version: Int64) {
        var worker = Worker(
            number: number, cache: open(directory, memory: 16 << 20), floors: floors(directory), version: version,
            random: SeededRandom(state: UInt64(version)))
        worker.run()
    }

    /// nil: all is well. `floor`: from before it was looked up.
    static func problem(_ found: FoundEntry?, _ key: Int, _ side: Int, _ floor: Int64) -> String? {
        guard let found else {
            // What is removed may be gone before that is said.
            return floor == 0 || Kind(key) == .removed ? nil : "k\(key) was flushed as \(floor) and is missing"
        }
        if let problem = Pattern.problem(found, key, side) { return problem }
        let version = found.entry.response.responseTime
        return version >= floor
            ? nil : "k\(key) is of version \(version), older than \(floor), which was flushed or removed"
    }

    static func complain(_ text: String) {
        _ = (text + "\n").withCString { Glibc.write(2, $0, strlen($0)) }
    }
}
