import CacheTesting
import Glibc
import ImgdlCache
import ImgdlCore

/// imgdl-cache-bench [ENTRIES]: what a hit costs. CPU time of the whole process, so with every thread that takes part;
/// medians of five rounds. Each is compared with what a reader by hand takes in the same run, and the program fails beyond its
/// bounds. `docs/performance.md` has the figures.
@main
enum CacheBench {
    static func main() {
        let entries = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) ?? 1_000_000 : 1_000_000
        var template = Array("/tmp/imgdl-bench-XXXXXX".utf8CString)
        guard let folder = mkdtemp(&template).map({ String(cString: $0) }) else { exit(1) }
        print("| entries | opening and first hit, ms | disk, 2 KB, µs of CPU | disk, 100 KB | memory, 100 KB |")
        print("|--------:|--------------------------:|----------------------:|-------------:|---------------:|")
        let costs = [1_000, entries].map { measure("\(folder)/\($0)", $0) }
        let (alone, byHand) = measureByHand(folder)
        row("by hand", byHand)
        row("by hand, on one thread", alone)
        removeFolder(folder)
        var isWithin = true
        for (count, costs) in zip([1_000, entries], costs) {
            isWithin = check("\(count) entries, opening, ms", costs.opening, Bounds.openingMilliseconds) && isWithin
            for (what, cost) in Costs.parts {
                let times = costs[keyPath: cost] / byHand[keyPath: cost]
                let name = "\(count) entries, \(what), times by hand"
                isWithin = check(name, times, Bounds.timesByHand[keyPath: cost]) && isWithin
                let excess = (costs[keyPath: cost] - byHand[keyPath: cost]) / alone[keyPath: cost]
                let more = "\(count) entries, \(what), what it takes more, times by hand on one thread"
                isWithin = check(more, excess, Bounds.excess[keyPath: cost]) && isWithin
            }
        }
        for (what, cost) in Costs.parts {
            let times = costs[1][keyPath: cost] / costs[0][keyPath: cost]
            isWithin = check("\(what), times among 1000", times, Bounds.timesAmongFew) && isWithin
        }
        if !isWithin { exit(1) }
    }

    /// Microseconds of CPU of each, and milliseconds until the first.
    struct Costs {
        var opening = 0.0
        var small = 0.0
        var large = 0.0
        var memory = 0.0

        nonisolated(unsafe) static let parts: [(String, KeyPath<Costs, Double>)] = [
            ("disk, 2 KB", \.small), ("disk, 100 KB", \.large), ("memory, 100 KB", \.memory),
        ]
    }

    /// What is allowed.
    enum Bounds {
        static let openingMilliseconds = 100.0
        /// A file of that length opened, read into new memory and closed by another thread, which answers (`Worker`); and as many
        /// bytes copied, of which a hit from memory copies none.
        static let timesByHand = Costs(small: 2.5, large: 2.5, memory: 0.5)
        /// Of what a hit takes more than that, as times what the same takes on the thread that wants it: changes of thread are
        /// most of the other, and would hide much.
        static let excess = Costs(small: 16, large: 8, memory: 0)
        static let timesAmongFew = 1.5
    }

    static func check(_ what: String, _ value: Double, _ bound: Double) -> Bool {
        guard value > bound else { return true }
        print("\(what): \(text(value)), more than the \(text(bound)) that are allowed")
        return false
    }

    static func row(_ name: String, _ costs: Costs) {
        let opening = costs.opening > 0 ? text(costs.opening) : ""
        print("| \(name) | \(opening) | \(text(costs.small)) | \(text(costs.large)) | \(text(costs.memory)) |")
    }

    /// Files of the same lengths, read all over, and bytes in memory, copied.
    static func measureByHand(_ folder: String) -> (alone: Costs, byHand: Costs) {
        func files(_ count: Int) -> [String] {
            (0..<bodies).map { number in
                let path = "\(folder)/by-hand-\(count)-\(number)"
                let bytes = [UInt8](repeating: 7, count: count)
                let descriptor = Glibc.open(path, O_WRONLY | O_CREAT, 0o600)
                guard Glibc.write(descriptor, bytes, count) == count else { fail("a file was not written") }
                close(descriptor)
                return path
            }
        }
        func reading(_ count: Int) -> (alone: Double, byHand: Double) {
            let paths = files(count)
            let read = {
                let descriptor = Glibc.open(paths[Int.random(in: 0..<bodies)], O_RDONLY)
                let memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
                guard Glibc.read(descriptor, memory, count) == count else { fail("a file was not read") }
                memory.deallocate()
                close(descriptor)
            }
            let worker = Worker(read)
            defer { worker.end() }
            return (median { cpu(2_000) { _ in read() } }, median { cpu(2_000) { _ in worker.perform() } })
        }
        let source = (0..<bodies).map { _ in [UInt8](repeating: 7, count: 100_000) }
        let target = UnsafeMutableRawPointer.allocate(byteCount: 100_000, alignment: 16)
        defer { target.deallocate() }
        let copying = median {
            cpu(20_000) { i in
                source[i % bodies].withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: 100_000) }
            }
        }
        let (small, large) = (reading(2_000), reading(100_000))
        return (
            Costs(small: small.alone, large: large.alone, memory: copying),
            Costs(small: small.byHand, large: large.byHand, memory: copying)
        )
    }

    /// The thread that a person would give the disk to, with a mutex and a condition each way. A hit of a cache whose callers
    /// do not wait for the disk changes threads twice, and with less it cannot be done: from the caller to the thread that
    /// reads, and from there to who waits for the answer.
    final class Worker: @unchecked Sendable {
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        private let asked = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
        private let answered = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
        private let work: () -> Void
        private var isAsked = false
        private var isEnding = false
        private var thread = pthread_t()

        init(_ work: @escaping () -> Void) {
            self.work = work
            pthread_mutex_init(mutex, nil)
            pthread_cond_init(asked, nil)
            pthread_cond_init(answered, nil)
            let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { worker in
                if let worker { Unmanaged<Worker>.fromOpaque(worker).takeUnretainedValue().run() }
                return nil
            }
            guard pthread_create(&thread, nil, run, Unmanaged.passUnretained(self).toOpaque()) == 0 else {
                fail("there is no thread")
            }
        }

        private func run() {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            while true {
                while !isAsked, !isEnding { pthread_cond_wait(asked, mutex) }
                if isEnding { return }
                pthread_mutex_unlock(mutex)
                work()
                pthread_mutex_lock(mutex)
                isAsked = false
                pthread_cond_signal(answered)
            }
        }

        /// Waits for it.
        func perform() {
            pthread_mutex_lock(mutex)
            isAsked = true
            pthread_cond_signal(asked)
            while isAsked { pthread_cond_wait(answered, mutex) }
            pthread_mutex_unlock(mutex)
        }

        func end() {
            pthread_mutex_lock(mutex)
            isEnding = true
            pthread_cond_signal(asked)
            pthread_mutex_unlock(mutex)
            pthread_join(thread, nil)
            pthread_mutex_destroy(mutex)
            pthread_cond_destroy(asked)
            pthread_cond_destroy(answered)
            mutex.deallocate()
            asked.deallocate()
            answered.deallocate()
        }
    }

    static func open(_ directory: String, memory: Int64 = 0) -> Cache {
        var configuration = CacheConfiguration()
        configuration.directory = directory
        configuration.maximumBytes = 1 << 40
        configuration.maximumMemoryBytes = memory
        guard let cache = try? Cache(configuration, clock: MonotonicClock(), events: { print($0.message) }) else {
            exit(1)
        }
        return cache
    }

    /// So many entries of each size have a body, all over the store; the others are there to be passed over.
    static let bodies = 500

    static func key(_ number: Int) -> String { "https://images.example.org/pictures/of/some/kind/\(number).jpg" }

    static func measure(_ directory: String, _ count: Int) -> Costs {
        let stride = count / bodies
        let large = (0..<bodies).map { key($0 * stride) }
        let small = (0..<bodies).map { key($0 * stride + 1) }
        let cache = open(directory)
        for i in 0..<count {
            put(cache, key(i), i % stride == 0 ? 100_000 : i % stride == 1 ? 2_000 : 0)
            // No faster than the disk takes it: what waits for too long is not stored.
            if i % min(1_000, 20 * stride) == 0 { _ = try? cache.flush() }
        }
        cache.close()

        var openings: [Double] = []
        for _ in 0..<5 {
            let start = now()
            let cache = open(directory)
            guard cache.wait(large[bodies / 2]) != nil else { fail("a body was not stored") }
            openings.append(Double(now() - start) / 1e6)
            cache.close()
        }
        let disk = open(directory)
        finishOpening(disk)
        let ofSmall = median { hits(disk, small) }
        let ofLarge = median { hits(disk, large) }
        disk.close()
        let memory = open(directory, memory: 128 << 20)
        finishOpening(memory)
        for key in large { _ = memory.wait(key) }
        let inMemory = median {
            cpu(20_000) { i in
                let found = memory.findInMemory(large[i % bodies]) { _ in .entry(0, withBody: true) }
                guard let found else { exit(1) }
                memory.use(found.entry.id)
            }
        }
        memory.close()
        let costs = Costs(opening: openings.sorted()[2], small: ofSmall, large: ofLarge, memory: inMemory)
        row("\(count)", costs)
        return costs
    }

    /// What a cache does once it is open, when there is time, is no part of a hit: among a million it counts and looks through
    /// them for a second.
    static func finishOpening(_ cache: Cache) {
        do { try cache.finishBackgroundWork() } catch { fail("\(error)") }
    }

    static func hits(_ cache: Cache, _ keys: [String]) -> Double {
        let order = (0..<2_000).map { _ in Int.random(in: 0..<keys.count) }
        return cpu(order.count) { i in
            guard let found = cache.wait(keys[order[i]]), !found.body.isEmpty else { fail("a body was not stored") }
            cache.use(found.entry.id)
        }
    }

    static func put(_ cache: Cache, _ key: String, _ count: Int) {
        let time = MonotonicClock().wallTime()
        let fields = [
            HeaderField("Content-Type", "image/jpeg"), HeaderField("Content-Length", "\(count)"),
            HeaderField("ETag", "\"6f3a-5d1e0c9b8a7f6\""), HeaderField("Cache-Control", "public, max-age=86400"),
            HeaderField("Last-Modified", "Tue, 01 Sep 2026 10:00:00 GMT"),
            HeaderField("Date", "Wed, 02 Sep 2026 10:00:00 GMT"),
            HeaderField("Server", "nginx"), HeaderField("Accept-Ranges", "bytes"), HeaderField("Vary", "Accept"),
        ]
        let response = StoredResponse(
            status: 200, httpVersion: 20, fields: fields, requestTime: time, responseTime: time,
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

    static func median(_ body: () -> Double) -> Double { (0..<5).map { _ in body() }.sorted()[2] }

    static func text(_ value: Double) -> String { "\(Double(Int(value * 10 + 0.5)) / 10)" }
}
