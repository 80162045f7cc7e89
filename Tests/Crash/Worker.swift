import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

/// One of four processes: it alone writes its quarter of the URLs, and looks up all of them. It ends when it is killed, or
/// by itself when something is wrong.
struct Worker {
    let number: Int
    let cache: Cache
    let floors: Floors
    var version: Int64
    var random: SeededRandom

    mutating func run() -> Never {
        while true {
            write()
            for _ in 0..<20 { look(random.below(CrashTest.keyCount)) }
        }
    }

    private mutating func ownKey() -> Int {
        random.below(CrashTest.keyCount / CrashTest.workerCount) * CrashTest.workerCount + number
    }

    /// Several, then one flush, which they are all in.
    private mutating func write() {
        var done: [Int: [Int64]] = [:]
        for _ in 0..<random.below(12) + 1 {
            let key = ownKey()
            if done[key] == nil, let versions = store(key) { done[key] = versions }
            // No more waits for the disk than is stored of it.
            if Kind(key) == .large { flush() }
        }
        flush()
        for (key, versions) in done {
            for (side, version) in versions.enumerated() { floors.raise(key, side, to: version) }
        }
    }

    /// nil: it was broken off.
    private mutating func store(_ key: Int) -> [Int64]? {
        let kind = Kind(key)
        version += 1
        if kind == .removed, random.below(2) == 0 {
            guard (try? cache.removeAndWait(key: "k\(key)")) != nil else { exit(8) }
            return [version]
        }
        if kind == .updated, random.below(3) > 0, let found = find(key, 0) {
            let body = Int64(found.entry.response.fields.first?.value.dropFirst().dropLast() ?? "") ?? 0
            cache.update(found.entry.id, Pattern.response(key, 0, version, body: body))
            return [version]
        }
        let isBroken = random.below(10) == 0
        for side in 0..<kind.sides {
            let response = Pattern.response(key, side, version, body: version)
            guard let writer = cache.write("k\(key)", response) else { exit(5) }
            writer.append(Pattern.body(key, side, version))
            if isBroken {
                writer.abandon()
            } else if kind == .beginning {
                writer.keep(response)
            } else {
                writer.finish(response)
            }
        }
        return isBroken ? nil : Array(repeating: version, count: kind.sides)
    }

    private func flush() {
        while true {
            do {
                return try cache.flush()
            } catch {
                guard (error as? Failure)?.code == .cacheBusy else {
                    CrashTest.complain("flush: \(error)")
                    exit(6)
                }
            }
        }
    }

    private func find(_ key: Int, _ side: Int) -> FoundEntry? {
        cache.findInMemory("k\(key)") { Pattern.choose(key, side, copy $0) }
            ?? cache.wait("k\(key)") { Pattern.choose(key, side, $0) }
    }

    private func look(_ key: Int) {
        for side in 0..<Kind(key).sides {
            // From before the look-up.
            let floor = floors.version(key, side)
            var found = find(key, side)
            // One may be replaced between the look at the index and the file, or SQLite bring in what a killed one has left:
            // a miss, and not the next time.
            for _ in 0..<20 where found == nil && floor != 0 && Kind(key) != .removed { found = find(key, side) }
            if let problem = CrashTest.problem(found, key, side, floor) {
                CrashTest.complain(problem)
                exit(7)
            }
        }
    }
}
