import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

/// imgdl-cache-crash [ROUNDS [SEED]]: issue 5, the crash test. In each round a writer of a process of its own stores
/// bodies and is killed with SIGKILL at a random moment, while a reader, a process that lives through all rounds, looks
/// them up. What is served always equals what was given, whole; the store always opens; what was flushed is not
/// missing; what the killed one left is removed after the next start.
///
/// The body of key n in version v is a pattern that follows from n and v. The writer says through a pipe what it has
/// flushed.
@main
enum CrashTest {
    static let keyCount = 200

    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count > 3, arguments[1] == "write" { return write(arguments[2], seed: UInt64(arguments[3]) ?? 1) }
        if arguments.count > 2, arguments[1] == "read" { return read(arguments[2]) }
        let rounds = arguments.count > 1 ? Int(arguments[1]) ?? 20 : 20
        let seed = arguments.count > 2 ? UInt64(arguments[2]) ?? 1 : UInt64.random(in: 1..<1_000_000)
        var test = Rounds(seed: seed)
        let isGood = test.run(rounds)
        print(
            "crash: \(rounds) rounds, seed \(seed): \(test.flushed) flushed and found, \(test.served) served, "
                + "\(test.orphans) left by the killed and removed")
        print("\(isGood ? rounds : rounds - 1) passed, \(isGood ? 0 : 1) failed, 0 skipped")
        exit(isGood ? 0 : 1)
    }

    static func open(_ directory: String, bytes: Int64 = 1 << 30) -> Cache {
        var configuration = CacheConfiguration()
        configuration.directory = directory
        configuration.maximumBytes = bytes
        let cache = try? Cache(configuration, clock: MonotonicClock()) { event in
            complain("event \(event.kind): \(event.message)")
            exit(3)
        }
        guard let cache else { exit(4) }
        return cache
    }

    /// Stores for ever; a line "key version" for each that has been flushed.
    static func write(_ directory: String, seed: UInt64) {
        var random = Random(state: seed)
        let cache = open(directory)
        var version = Int64(seed)
        while true {
            var batch: [(Int, Int64)] = []
            for _ in 0..<random.below(12) + 1 {
                let key = random.below(keyCount)
                version += 1
                let body = Pattern.body(key, version)
                let response = Pattern.response(version)
                guard let writer = cache.write("k\(key)", response) else { exit(5) }
                writer.append(body)
                // Some break off.
                if random.below(10) == 0 {
                    writer.abandon()
                } else {
                    writer.finish(response)
                    batch.removeAll { $0.0 == key }
                    batch.append((key, version))
                }
            }
            guard (try? cache.flush()) != nil else { exit(6) }
            var text = ""
            for (key, version) in batch { text += "\(key) \(version)\n" }
            text += ".\n"
            _ = text.withCString { Glibc.write(1, $0, strlen($0)) }
        }
    }

    /// Looks up until its input ends; then says how many it has found.
    static func read(_ directory: String) {
        let cache = open(directory)
        var served = 0
        var random = Random(state: 99)
        var poll = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, 0) == 0 {
            let key = random.below(keyCount)
            guard let found = cache.wait("k\(key)") else { continue }
            if let problem = Pattern.problem(found, key) {
                complain(problem)
                exit(7)
            }
            served += 1
        }
        cache.close()
        print(served)
    }

    static func complain(_ text: String) {
        _ = (text + "\n").withCString { Glibc.write(2, $0, strlen($0)) }
    }
}
