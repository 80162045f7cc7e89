import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

/// A cache with so many entries, opened once with and once without memory.
final class StoredEntries {
    let openingMilliseconds: Double
    private let keys: [[String]]
    private let disk: Cache
    private let memory: Cache

    init(_ directory: String, _ count: Int) {
        keys = CacheBench.Part.allCases.map { part in
            (0..<CacheBench.bodies).map { CacheBench.key(CacheBench.number($0, part, among: count)) }
        }
        let large = keys[1]
        Self.fill(directory, count)
        let openings = (0..<5).map { _ in
            let start = CacheBench.now()
            let cache = Self.open(directory)
            guard cache.wait(large[CacheBench.bodies / 2]) != nil else { CacheBench.fail("a body was not stored") }
            defer { cache.close() }
            return Double(CacheBench.now() - start) / 1e6
        }
        openingMilliseconds = CacheBench.median(openings)
        disk = Self.open(directory)
        memory = Self.open(directory, memory: 128 << 20)
        for cache in [disk, memory] { Self.finishOpening(cache) }
        for key in large { _ = memory.wait(key) }
    }

    deinit { for cache in [disk, memory] { cache.close() } }

    func cost(of part: CacheBench.Part) -> Double {
        switch part {
        case .small: hits(keys[0])
        case .large: hits(keys[1])
        case .memory: hitsInMemory(keys[1])
        }
    }

    private func hits(_ keys: [String]) -> Double {
        let order = (0..<2_000).map { _ in Int.random(in: 0..<keys.count) }
        return CacheBench.cpu(order.count) { i in
            guard let found = disk.wait(keys[order[i]]), !found.body.isEmpty else {
                CacheBench.fail("a body was not stored")
            }
            disk.use(found.entry.id)
        }
    }

    private func hitsInMemory(_ keys: [String]) -> Double {
        CacheBench.cpu(20_000) { i in
            let found = memory.findInMemory(keys[i % keys.count]) { _ in .entry(0, withBody: true) }
            guard let found else { CacheBench.fail("a body is not in memory") }
            memory.use(found.entry.id)
        }
    }

    private static func fill(_ directory: String, _ count: Int) {
        let cache = open(directory)
        let stride = count / CacheBench.bodies
        for i in 0..<count {
            put(cache, CacheBench.key(i), i % stride == 0 ? 100_000 : i % stride == 1 ? 2_000 : 0)
            // No faster than the disk takes it: what waits for too long is not stored.
            if i % min(1_000, 20 * stride) == 0 { _ = try? cache.flush() }
        }
        cache.close()
    }

    private static func open(_ directory: String, memory: Int64 = 0) -> Cache {
        var configuration = CacheConfiguration()
        configuration.directory = directory
        configuration.maximumBytes = 1 << 40
        configuration.maximumMemoryBytes = memory
        guard let cache = try? Cache(configuration, clock: MonotonicClock(), events: { print($0.message) }) else {
            exit(1)
        }
        return cache
    }

    /// What a cache does once it is open, when there is time, is no part of a hit: among a million it counts and looks through
    /// them for a second.
    private static func finishOpening(_ cache: Cache) {
        do { try cache.finishBackgroundWork() } catch { CacheBench.fail("\(error)") }
    }

    private static func put(_ cache: Cache, _ key: String, _ count: Int) {
        let time = MonotonicClock().wallTime()
        let response = StoredResponse(
            status: 200, httpVersion: 20, fields: CacheBench.fields(count), requestTime: time, responseTime: time,
            varying: [VaryingField(name: "accept", value: "image/webp,*/*")], context: .blank)
        guard let writer = cache.write(key, response) else { exit(1) }
        if count > 0 {
            var body = Body(expected: Int64(count))
            let bytes = [UInt8](repeating: 7, count: count)
            _ = bytes.withUnsafeBytes { body.append($0) }
            writer.append(body.slices(from: 0))
        }
        writer.finish(response)
    }
}
