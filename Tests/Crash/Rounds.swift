import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

struct Rounds {
    private var random: Random
    private let seed: UInt64
    /// The last version of each key that was flushed.
    private var expected: [Int: Int64] = [:]
    private(set) var flushed = 0
    private(set) var served = 0
    private(set) var orphans = 0

    init(seed: UInt64) {
        self.seed = seed
        random = Random(state: seed)
    }

    /// False when something was wrong; it has been said.
    mutating func run(_ rounds: Int) -> Bool {
        var template = Array("/tmp/imgdl-crash-XXXXXX".utf8CString)
        guard let folder = mkdtemp(&template).map({ String(cString: $0) }) else { return false }
        let reader = Child.start(["read", folder + "/cache"])
        for round in 0..<rounds {
            let writer = Child.start(["write", folder + "/cache", "\(UInt64(round + 1) * 1_000_000)"])
            // A random moment, from before it has opened the store on; what was killed and when shows in what it said.
            usleep(UInt32(random.below(random.below(4) == 0 ? 20_000 : 250_000)))
            kill(writer.process, SIGKILL)
            let (text, status) = writer.finish()
            guard status & 0x7F == SIGKILL else {
                CrashTest.complain("round \(round), seed \(seed): the writer ended by itself: \(status)")
                return false
            }
            note(text)
            guard check(folder + "/cache", round) else { return false }
        }
        let (text, status) = reader.finish()
        served = Int(text.prefix { $0.isNumber }) ?? 0
        guard status == 0, served > 0 else {
            CrashTest.complain("seed \(seed): the reader ended with \(status) after \(served)")
            return false
        }
        removeFolder(folder)
        return true
    }

    /// Whole lines before a whole "." were flushed.
    private mutating func note(_ text: String) {
        var batch: [(Int, Int64)] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if line == "." {
                for (key, version) in batch { expected[key] = version }
                flushed += batch.count
                batch = []
                continue
            }
            let parts = line.split(separator: " ")
            if parts.count == 2, let key = Int(parts[0]), let version = Int64(parts[1]) { batch.append((key, version)) }
        }
    }

    private mutating func check(_ directory: String, _ round: Int) -> Bool {
        let left = count(directory + "/writers-1") { $0 }
        let cache = CrashTest.open(directory)
        for (key, version) in expected {
            guard let found = cache.wait("k\(key)") else {
                CrashTest.complain("round \(round), seed \(seed): k\(key) was flushed and is missing")
                return false
            }
            if let problem = Pattern.problem(found, key) {
                CrashTest.complain("round \(round), seed \(seed): \(problem)")
                return false
            }
            // A later one may have been written before the kill, and not said.
            guard found.entry.response.responseTime >= version else {
                CrashTest.complain("round \(round), seed \(seed): k\(key) is of an older version than was flushed")
                return false
            }
        }
        guard (try? cache.finishBackgroundWork()) != nil, let statistics = try? cache.statistics() else { return false }
        cache.close()
        guard isCleanedUp(directory), statistics.damaged == 0 else {
            CrashTest.complain(
                "round \(round), seed \(seed): \(statistics.damaged) damaged, or a dead writer's folder is left")
            return false
        }
        let bodies = count(directory + "/bodies-1") { $0 }
        guard bodies <= statistics.entries else {
            CrashTest.complain("round \(round), seed \(seed): \(bodies) files for \(statistics.entries) entries")
            return false
        }
        orphans += left
        return true
    }

    /// The reader has a writer's folder, too; and if it opened the store just after the kill it is the one that removes
    /// what was left, which ends with the folder.
    private func isCleanedUp(_ directory: String) -> Bool {
        for _ in 0..<10_000 {
            if count(directory + "/writers-1", { _ in 0 }) <= 1 { return true }
            usleep(1_000)
        }
        return false
    }

    /// Of folders: how many, and of what is in them.
    private func count(_ path: String, _ inner: (Int) -> Int) -> Int {
        var total = 0
        for name in Folder.names(in: path) {
            total += max(inner(Folder.names(in: "\(path)/\(name)").count), inner(1) == 0 ? 1 : 0)
        }
        return total
    }
}
