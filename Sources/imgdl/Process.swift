import CSystem
import Glibc
import ImgdlCache
import ImgdlCodecs
import ImgdlCore
import ImgdlTransport
import Synchronization

/// Puts the parts together, and what of them belongs to the process: exit, fork, the shared downloader.
enum Process {
    private static let lock = Lock()
    private static var live: [Live] = []
    private static var liveCaches: [LiveCache] = []
    private static var stopsAtExit = false
    /// Downloaders and caches that are being made at this moment.
    private static var making = 0
    private static var isExiting = false
    private static let changed = Condition(lock)
    /// How long exit() waits in all, in milliseconds.
    private static let patience: Int64 = 1_000
    /// Of that, what is left for the library's own threads when the host's functions have had the rest.
    private static let reserve: Int64 = 100
    private static var shared: (handle: OpaquePointer, generation: Int)?
    private static let firstUse = Lock()
    private static let isReady = Atomic<Bool>(false)

    /// Of a downloader.
    private struct Live {
        weak var exitStop: ExitStop?
        weak var reserves: Reserves?
    }

    private struct LiveCache {
        weak var cache: Cache?
    }

    static let codec = PluggableCodec()

    static func makeDownloader(
        _ configuration: DownloaderConfiguration, executor: (any Executor)?
    ) throws(Failure) -> Downloader {
        try beginMaking()
        defer { endMaking() }
        makeReady()
        let clock = MonotonicClock()
        let loaders = SchemeLoaders()
        let ports = DownloaderPorts(
            codec: codec, clock: clock, loaders: loaders
        ) { (configuration, loop, events) throws(Failure) in
            let resolver = try SystemResolver(loop: loop, clock: clock, servers: configuration.nameServers)
            let network = try CurlTransport(
                configuration: configuration, loop: loop, events: events, resolver: resolver)
            return SchemeTransport(
                configuration: configuration, loaders: loaders, network: network, loop: loop, events: events,
                clock: clock)
        }
        let downloader = try Downloader(configuration, ports: ports, executor: executor)
        let (isLate, others) = lock.withLock { () -> (Bool, [ExitStop?]) in
            if isExiting { return (true, []) }
            // Of one that is looked at, the last reference may be this one: it ends outside the lock.
            let others = live.map(\.exitStop)
            live = zip(live, others).compactMap { $1 == nil ? nil : $0 }
            live.append(Live(exitStop: downloader.exitStop, reserves: downloader.reserves))
            return (false, others)
        }
        withExtendedLifetime(others) {}
        if isLate {
            downloader.destroy()
            throw .processExits
        }
        return downloader
    }

    /// Throws what making a cache does.
    static func openCache(
        _ configuration: CacheConfiguration, events: @escaping @Sendable (CacheEvent) -> Void
    ) throws(Failure) -> Cache {
        try beginMaking()
        defer { endMaking() }
        let cache = try Cache(configuration, clock: MonotonicClock(), events: events)
        let (isLate, others) = lock.withLock { () -> (Bool, [Cache]) in
            if isExiting { return (true, []) }
            let others = liveCaches.compactMap(\.cache)
            liveCaches = others.map { LiveCache(cache: $0) }
            liveCaches.append(LiveCache(cache: cache))
            return (false, others)
        }
        withExtendedLifetime(others) {}
        if isLate {
            cache.close()
            throw .processExits
        }
        return cache
    }

    /// The handle of the shared downloader, with a reference for the caller. The process has one of its own: a library
    /// that releases more than it has would end the downloader of all others.
    static func sharedDownloader() throws(Failure) -> OpaquePointer {
        let (known, isLate) = lock.withLock { (currentShared, isExiting) }
        if isLate { throw .processExits }
        if let known { return retained(known) }
        let downloader = try makeDownloader(DownloaderConfiguration(userAgent: userAgent), executor: nil)
        // Another thread may have been quicker.
        let (handle, isMine) = lock.withLock { () -> (OpaquePointer?, Bool) in
            if let currentShared { return (currentShared, false) }
            let handle = HandleTable.shared.insert(downloader, .downloader, isKept: true)
            shared = handle.map { ($0, ProcessGeneration.current) }
            return (handle, handle != nil)
        }
        if !isMine { downloader.destroy() }
        guard let handle else { throw Failure(.outOfMemory, "no handle left") }
        return retained(handle)
    }

    /// Inside the lock. After fork the parent's is none.
    private static var currentShared: OpaquePointer? {
        shared?.generation == ProcessGeneration.current ? shared?.handle : nil
    }

    private static func retained(_ handle: OpaquePointer) -> OpaquePointer {
        // It is kept: more references than can be counted are as good as that many.
        _ = HandleTable.shared.retain(handle, .downloader)
        return handle
    }

    static func isShared(_ handle: OpaquePointer?) -> Bool {
        handle != nil && lock.withLock { currentShared == handle }
    }

    static let userAgent = "imgdl/\(version)"
    static let version = "1.1.0"

    /// Makes what there is one of, on the one thread that loads the library. Swift makes such things at their first
    /// use, under a lock that knows threads by a number which fork() changes: two threads of a child would wait for
    /// ever.
    ///
    /// The locks of the process are held across fork(), so that no thread of the parent holds them in the child: first
    /// that of `makeReady`, for which fork() waits however long it takes.
    static func prepare() {
        _ = HandleTable.shared
        // Of arrays of all kinds what Swift finds at the first one.
        withExtendedLifetime([UInt8](repeating: 0, count: Int(getpid() & 1) + 1)) {}
        _ = InlineExecutor.shared
        isReady.store(false, ordering: .relaxed)
        _ = firstUse
        _ = codec
        _ = FileDigest.lock
        Cache.prepare()
        lock.withLock {
            live.removeAll()
            liveCaches.removeAll()
            changed.broadcast()
        }
        pthread_atfork(
            {
                system_fork_approach()
                Process.firstUse.enterFork()
                system_fork_prepare()
                Process.lock.enterFork()
                HandleTable.shared.lock.enterFork()
                Process.codec.registry.lock.enterFork()
                FileDigest.lock.enterFork()
            },
            {
                FileDigest.lock.leaveFork()
                Process.codec.registry.lock.leaveFork()
                HandleTable.shared.lock.leaveFork()
                Process.lock.leaveFork()
                system_fork_parent()
                Process.firstUse.leaveFork()
                system_fork_depart()
            },
            {
                system_forget_thread_number()
                ProcessGeneration.advance()
                FileDigest.becomeChild()
                FileDigest.lock.leaveFork()
                Process.codec.registry.lock.leaveFork()
                HandleTable.shared.lock.leaveFork()
                Process.becomeChild()
                Process.lock.leaveFork()
                system_pixels_fork_child()
                system_blocks_fork_child()
                system_fork_child()
                Process.firstUse.leaveFork()
                system_fork_depart()
            })
    }

    /// Gives back what is kept for later: how many bytes, of what went at once. Counted where memory goes, so that what
    /// somebody still holds does not count, and nothing twice.
    static func trim(connections: Bool, caches: Bool) -> UInt64 {
        let before = system_bytes_given_back()
        if caches {
            for cache in lock.withLock({ liveCaches.compactMap(\.cache) }) { cache.releaseMemory() }
        }
        // Each keeps what those above it have let go.
        for reserves in lock.withLock({ live.compactMap(\.reserves) }) { reserves.release(connections: connections) }
        system_blocks_release_kept()
        system_pixels_release_kept()
        return UInt64(system_bytes_given_back() &- before)
    }

    /// What libcurl, OpenSSL and the codecs make of themselves once, and not when the library is loaded, since it takes
    /// time. Before the first downloader and the first decoder.
    static func makeReady() {
        if isReady.load(ordering: .acquiring) { return }
        // Whoever forks has it, and waits for who works.
        let wasWorking = Thread.beginRest()
        firstUse.enterFork()
        Thread.restore(wasWorking)
        defer { firstUse.leaveFork() }
        if isReady.load(ordering: .relaxed) { return }
        CurlTransport.makeReady()
        FirstPictures.decode()
        isReady.store(true, ordering: .releasing)
    }

    // MARK: exit

    /// Throws `shutDown` once exit() has begun.
    private static func beginMaking() throws(Failure) {
        CurlGlobal.keepOpenSSL()
        let isTaken = lock.withLock { () -> Bool in
            // Before the first is made, which exit() waits for.
            if !stopsAtExit { stopsAtExit = atexit { Process.stopAll() } == 0 }
            if !isExiting { making += 1 }
            return !isExiting
        }
        if !isTaken { throw .processExits }
    }

    private static func endMaking() {
        lock.withLock {
            making -= 1
            changed.broadcast()
        }
    }

    /// exit() has begun, on this thread. One moment ends all that it waits for.
    private static func stopAll() {
        system_host_code_refuse()
        Thread.working {
            let end = MonotonicClock().now().advanced(byMilliseconds: patience)
            let hostsEnd = end.advanced(byMilliseconds: -reserve)
            // What is being made at this moment ends with who makes it.
            let stopped = lock.withLock { () -> ([ExitStop], [Cache])? in
                if isExiting { return nil }
                isExiting = true
                return (live.compactMap(\.exitStop), liveCaches.compactMap(\.cache))
            }
            guard let (exitStops, caches) = stopped else { return }
            for exitStop in exitStops { exitStop.begin() }
            for cache in caches { cache.beginClosing(by: hostsEnd) }
            Thread.resting { system_host_code_await(hostsEnd.nanoseconds) }
            system_host_code_abandon()
            let now = MonotonicClock().now()
            for exitStop in exitStops { exitStop.hostIsAbandoned(now) }
            for exitStop in exitStops { exitStop.wait(until: end) }
            for cache in caches { cache.abandon(at: end) }
            lock.withLock { while making > 0, changed.wait(until: end) {} }
        }
    }

    /// In the child of a fork, inside the lock: who was making something is not in this process, nor is who was in
    /// exit(), unless that is the thread which has forked.
    private static func becomeChild() {
        making = 0
        changed.forgetWaiters()
        guard system_host_code_fork_child() != 0 else { return }
        isExiting = false
        // The handler was that exit's.
        stopsAtExit = false
    }
}

/// Called when the library is loaded.
@_cdecl("system_library_loaded")
func libraryLoaded() { Process.prepare() }
