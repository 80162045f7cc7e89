import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

struct Rounds {
    private var random: SeededRandom
    private let seed: UInt64
    private var directory = ""
    private var workers: [Child] = []
    private(set) var checked = 0
    private(set) var served = 0
    private(set) var orphans = 0

    init(seed: UInt64) {
        self.seed = seed
        random = SeededRandom(state: seed)
    }

    /// False when something was wrong; it has been said.
    mutating func run(_ rounds: Int) -> Bool {
        var template = Array("/tmp/imgdl-crash-XXXXXX".utf8CString)
        guard let folder = mkdtemp(&template).map({ String(cString: $0) }) else { return false }
        directory = folder + "/cache"
        for number in 0..<CrashTest.workerCount { workers.append(start(number, 1)) }
        var isGood = true
        for round in 0..<rounds where isGood {
            // A random moment, from before it has opened the store on.
            usleep(UInt32(random.below(random.below(4) == 0 ? 20_000 : 250_000)))
            let victim = random.below(CrashTest.workerCount)
            isGood = end(victim, round) && check(round)
            workers[victim] = start(victim, Int64(round + 1) * 1_000_000)
        }
        for number in workers.indices { isGood = end(number, rounds) && isGood }
        isGood = isGood && checkAll(rounds)
        guard isGood, served > 0 else { return false }
        removeFolder(folder)
        return true
    }

    private func start(_ number: Int, _ version: Int64) -> Child {
        Child.start(["work", directory, "\(number)", "\(version)"])
    }

    /// By the kill, and not by itself because it found something wrong.
    private func end(_ number: Int, _ round: Int) -> Bool {
        kill(workers[number].process, SIGKILL)
        let (_, status) = workers[number].finish()
        if status & 0x7F == SIGKILL { return true }
        CrashTest.complain("round \(round), seed \(seed): worker \(number) ended by itself: \(status)")
        return false
    }

    /// Some of the URLs, by another process than the four.
    private mutating func check(_ round: Int) -> Bool {
        orphans += leftBodies
        let cache = CrashTest.open(directory)
        let isGood = look(cache, (0..<60).map { _ in random.below(CrashTest.keyCount) }, round)
        cache.close()
        return isGood
    }

    private mutating func look(_ cache: Cache, _ keys: [Int], _ round: Int) -> Bool {
        let floors = CrashTest.floors(directory)
        for key in keys {
            for side in 0..<Kind(key).sides {
                let floor = floors.version(key, side)
                let found = cache.wait("k\(key)") { Pattern.choose(key, side, $0) }
                if let problem = CrashTest.problem(found, key, side, floor) {
                    CrashTest.complain("round \(round), seed \(seed): \(problem)")
                    return false
                }
                checked += 1
                if found != nil { served += 1 }
            }
        }
        return true
    }

    /// Nobody else is there any more.
    private mutating func checkAll(_ rounds: Int) -> Bool {
        let cache = CrashTest.open(directory)
        guard look(cache, Array(0..<CrashTest.keyCount), rounds), (try? cache.finishBackgroundWork()) != nil,
            let statistics = try? cache.statistics()
        else { return false }
        cache.close()
        let bodies = count(directory + "/bodies-1")
        let writers = Folder.names(in: directory + "/writers-1").count
        guard statistics.damaged == 0, writers == 0, bodies <= statistics.entries else {
            CrashTest.complain(
                "seed \(seed): \(statistics.damaged) damaged, \(writers) dead writers' folders, \(bodies) files for "
                    + "\(statistics.entries) entries")
            return false
        }
        return true
    }

    private var leftBodies: Int { count(directory + "/writers-1") }

    /// What is in the folders of a folder.
    private func count(_ path: String) -> Int {
        Folder.names(in: path).reduce(0) { $0 + Folder.names(in: "\(path)/\($1)").count }
    }
}
