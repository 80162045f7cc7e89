import Glibc
import Synchronization

/// The ports a downloader is put together from.
package struct DownloaderPorts {
    package typealias MakeTransport =
        (TransportConfiguration, any TransportLoop, any TransportEvents) throws(Failure) -> any Transport

    package var makeTransport: MakeTransport
    package var codec: any ImageCodec
    package var clock: any Clock
    /// The transport's too.
    package var loaders: SchemeLoaders

    package init(
        codec: any ImageCodec, clock: any Clock, loaders: SchemeLoaders = SchemeLoaders(),
        makeTransport: @escaping MakeTransport
    ) {
        self.codec = codec
        self.clock = clock
        self.loaders = loaders
        self.makeTransport = makeTransport
    }
}

/// One downloader as other threads see it: they post commands, read counters and wait. Owns the threads.
package final class Downloader: @unchecked Sendable {
    static let lastID = Atomic<UInt64>(0)

    private let loop: EventLoop
    let mailbox: Mailbox
    let engine: Engine
    package let statistics: DownloaderStatistics
    /// The transport refers to it without holding it.
    private let engineLoop: EngineLoop
    private let workers: WorkerPool
    let outstanding = Outstanding()
    let clock: any Clock
    private let ports: DownloaderPorts
    let ledger: MemoryLedger
    private let loaders: SchemeLoaders
    /// What requests use that name no executor.
    let defaultExecutor: any Executor
    /// Where `defaultExecutor` is a thread of this downloader's own.
    private let deliveryThread: ThreadExecutor?
    /// It sees to the end, too: all that the end needs is there from the beginning.
    private let engineThread: Thread
    private let lastWork = LastWork()
    package let exitStop: ExitStop
    package let reserves: Reserves

    let lock = Lock()
    private let ended: Condition
    private var session: Session
    private var current: Settings
    private var fields: RequestFields
    private var requestDefaults: RequestDefaults
    private var templates = RequestTemplates()
    /// Of the last URL: the next often has the same.
    private var lastOrigin: ParsedURL.Origin?
    private var ending = Ending.running
    private var completions: [() -> Void] = []
    /// Those that have not ended.
    var batches: [ObjectIdentifier: Batch] = [:]
    var acceptsBatches = true
    private var engineThreadEnd = EngineThreadEnd.notAwaited
    /// Threads of their own that run completions after the end.
    private var lateCompletions = 0

    /// What can be asked for and changed. The engine is told, and goes by copies of its own.
    struct Settings {
        var limits: Limits
        var isSuspended = false
    }

    private enum Ending {
        case running
        /// The engine's thread has its last work.
        case ending
        case ended
    }

    private enum EngineThreadEnd {
        case notAwaited
        /// One thread joins it, and others wait for that one.
        case awaited
        case over
    }

    /// `executor`: of requests that name none; nil for a thread of its own.
    package init(
        _ configuration: DownloaderConfiguration, ports: DownloaderPorts, executor: (any Executor)?
    ) throws(Failure) {
        loop = try EventLoop()
        mailbox = Mailbox { [loop] in loop.wake() }
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        workers = WorkerPool(width: configuration.decodeThreads > 0 ? configuration.decodeThreads : cores)
        ledger = MemoryLedger { [mailbox] in mailbox.post(.memoryReleased) }
        let turn = TurnClock(ports.clock)
        engine = Engine(
            limits: configuration.limits, loop: loop, mailbox: mailbox, clock: turn, codec: ports.codec,
            workers: workers, ledger: ledger)
        statistics = engine.statistics
        engineLoop = EngineLoop(loop, mailbox, turn)
        let transport = try ports.makeTransport(configuration.transport, engineLoop, engine)
        session = Session(transport)
        engine.attach(transport, CacheSettings(configuration))
        clock = ports.clock
        self.ports = ports
        current = Settings(limits: configuration.limits)
        loaders = ports.loaders
        fields = RequestFields(userAgent: configuration.userAgent)
        requestDefaults = configuration.defaults
        ended = Condition(lock)
        var ownExecutor: ThreadExecutor?
        do throws(Failure) {
            if executor == nil { ownExecutor = try ThreadExecutor() }
            engineThread = try Thread.start(name: "imgdl-engine") { [engine, lastWork] in
                if engine.run() { lastWork.perform() }
            }
        } catch {
            ownExecutor?.close()
            transport.close()
            engine.letGoOfTransport()
            throw error
        }
        deliveryThread = ownExecutor
        defaultExecutor = executor ?? ownExecutor ?? InlineExecutor.shared
        exitStop = ExitStop(engine, mailbox, on: engineThread, loaders, outstanding, lock, ended)
        reserves = Reserves(engine.bodyMemory, mailbox)
    }

    // MARK: Requests

    /// Whoever loads `scheme` (lower case) from now on; nil: as built in. Throws `shutDown`.
    package func setLoader(_ loader: (any SchemeLoader)?, for scheme: String) throws(Failure) {
        try loaders.set(loader, for: scheme)
        mailbox.post(.loaderChanged(scheme: scheme))
        lock.withLock { session }.forgetURLs()
    }

    /// What a request is read by.
    package struct Desk {
        /// Of requests for which a caller gave the same bytes.
        package let template: RequestTemplate?
        /// For `keep`.
        package let epoch: Int
        fileprivate let session: Session
        fileprivate let lastOrigin: ParsedURL.Origin?
    }

    /// What a request comes to for which a caller gave these bytes, and a URL that needs no parser: nil where it has to be
    /// read.
    package func known(
        _ url: UnsafeBufferPointer<UInt8>, _ given: UnsafeRawBufferPointer
    ) -> (ParsedURL, RequestTemplate)? {
        lock.withLock {
            guard let template = templates.find(given), let url = session.parsePlain(url, lastOrigin: lastOrigin)
            else { return nil }
            if !url.hasOrigin(lastOrigin) { lastOrigin = url.origin }
            return (url, template)
        }
    }

    /// `given`: nil for a request that has no template.
    package func desk(for given: UnsafeRawBufferPointer?) -> Desk {
        lock.withLock {
            Desk(
                template: given.flatMap { templates.find($0) }, epoch: templates.epoch, session: session,
                lastOrigin: lastOrigin)
        }
    }

    /// Throws `invalidURL`, `unsupportedScheme`.
    package func parse(_ url: UnsafeBufferPointer<UInt8>, _ desk: Desk) throws(Failure) -> ParsedURL {
        let url = try desk.session.parse(url, lastOrigin: desk.lastOrigin)
        if url.origin !== desk.lastOrigin { lock.withLock { lastOrigin = url.origin } }
        return url
    }

    /// Does nothing when what requests have by default has changed since `epoch`.
    package func keep(_ template: RequestTemplate, for given: UnsafeRawBufferPointer, _ epoch: Int) {
        let displaced = lock.withLock { templates.keep(template, for: given, epoch) }
        withExtendedLifetime(displaced) {}
    }

    package var defaults: RequestDefaults { lock.withLock { requestDefaults } }

    /// Everything that a request with these fields of its own sends.
    package func merge(_ own: [(name: String, value: String?)]) -> [HeaderField] {
        lock.withLock { fields }.merged(with: own)
    }

    /// Accepts a download; `willAccept` gets the subscription before any event of it. Throws `shutDown`, and
    /// `invalidOperation` after `invalidate`.
    package func download(
        _ url: ParsedURL, _ template: RequestTemplate, on pumped: PumpedExecutor? = nil,
        userData: UnsafeMutableRawPointer? = nil, willAccept: (Subscription) -> Void
    ) throws(Failure) {
        let subscription = Subscription(
            id: Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue, url: url, template, on: pumped,
            userData: userData, submitted: clock.now())
        try mailbox.submit {
            let end = outstanding.accept(subscription)
            statistics.submit()
            willAccept(subscription)
            return end
        }
    }

    package func cancel(_ subscription: Subscription) {
        subscription.markCancelled()
        mailbox.post(.cancel(subscription))
    }

    package func setPriority(_ subscription: Subscription, _ priority: Priority) {
        mailbox.post(.setPriority(subscription, priority))
    }

    package func result(of subscription: Subscription) -> DownloadResult? { outstanding.result(of: subscription) }

    /// nil milliseconds: without limit. Throws `wouldDeadlock`, `waitTimeout`, `shutDown`.
    package func wait(for subscription: Subscription, milliseconds: Int64?) throws(Failure) {
        try outstanding.wait(for: subscription, until: milliseconds.map { clock.now().advanced(byMilliseconds: $0) })
    }

    // MARK: The downloader

    package func setField(_ name: String, _ value: String?) {
        let old = lock.withLock {
            let old = (fields, templates.forgetAll())
            fields = fields.with(name, value)
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// What later requests carry under this name; nil: nothing.
    package func field(named name: String) -> String? { lock.withLock { fields }.fields.first(named: name) }

    package func cancelAll() {
        cancelBatches()
        mailbox.post(.cancelAll)
    }

    package var currentCount: Int { outstanding.count }

    package func waitUntilIdle(milliseconds: Int64?) throws(Failure) {
        try outstanding.waitUntilNone(until: milliseconds.map { clock.now().advanced(byMilliseconds: $0) })
    }

    // MARK: Settings and session

    var settings: Settings { lock.withLock { current } }

    /// The setting and the command that tells of it, together: of two threads the later one holds for both.
    func change(_ body: (inout Settings) -> Command) {
        lock.withLock { _ = mailbox.post(body(&current)) }
    }

    func replaceSession(_ configuration: DownloaderConfiguration) throws(Failure) {
        let transport = try ports.makeTransport(configuration.transport, engineLoop, engine)
        do throws(Failure) {
            try mailbox.checkIsNotOver()
            cancelBatches()
            // The host's hooks and loaders may end with these: outside the lock.
            let old = try lock.withLock {
                () throws(Failure) -> (Session, RequestDefaults, RequestFields, [KnownRequest]) in
                try mailbox.reconfigure(transport, configuration.limits, CacheSettings(configuration))
                let old = (session, requestDefaults, fields, templates.forgetAll())
                session = Session(transport)
                current.limits = configuration.limits
                requestDefaults = configuration.defaults
                fields = fields.with(defaultUserAgent: configuration.userAgent)
                return old
            }
            withExtendedLifetime(old) {}
        } catch {
            transport.close()
            throw error
        }
    }

    // MARK: The end

    /// Takes no more requests; `completion` runs when everything is over: on the engine's thread, which ends with it; where
    /// that has ended before, on a thread of its own, or, where the system gives none, on the caller's, before this returns.
    package func shutDown(cancelling: Bool, completion: (() -> Void)?) {
        closeBatches()
        let isLate = lock.withLock { () -> Bool in
            if let completion { completions.append(completion) }
            return ending == .ended
        }
        beginEnd(cancelling: cancelling)
        guard isLate, completion != nil else { return }
        // The engine's thread is gone. Without another one it is told here.
        lock.withLock { lateCompletions += 1 }
        let thread = try? Thread.start(name: "imgdl-end") { [self] in
            runCompletions()
            lateCompletionsEnded()
        }
        guard thread == nil else { return }
        lateCompletionsEnded()
        runCompletions()
    }

    private func lateCompletionsEnded() {
        lock.withLock {
            lateCompletions -= 1
            ended.broadcast()
        }
    }

    /// Ends everything and waits for it, unless that would be a wait for the calling thread. Nor inside any callback: who waits
    /// there keeps an executor from callbacks that another thread may wait for in the same way.
    package func destroy() {
        closeBatches()
        beginEnd(cancelling: true)
        // Asked when no more is accepted: until then another thread may want something on an executor of this one's.
        if Occupation.isAny || outstanding.wouldDeadlock { return }
        let joins = lock.withLock { () -> Bool in
            while ending != .ended || lateCompletions > 0 || engineThreadEnd == .awaited {
                if outstanding.areAbandoned { return false }
                ended.wait()
            }
            guard engineThreadEnd == .notAwaited else { return false }
            engineThreadEnd = .awaited
            return true
        }
        guard joins else { return }
        // Nothing is left when this returns, not even the thread that saw to it.
        engineThread.join()
        lock.withLock {
            engineThreadEnd = .over
            ended.broadcast()
        }
    }

    private func beginEnd(cancelling: Bool) {
        lock.withLock {
            guard ending == .running else { return }
            ending = .ending
            // Before the engine hears of it.
            lastWork.set { [self] in end() }
        }
        mailbox.shutDown(cancelling: cancelling)
    }

    /// On the engine's thread, when the engine has ended.
    private func end() {
        letGoOfTemplates()
        // A pumped executor may take its time: its host decides when the last callback runs.
        // What is there when the process exits is stopped elsewhere, and goes with it.
        guard outstanding.waitUntilNoneAtTheEnd() else { return }
        workers.close()
        engine.letGoOfStore()
        deliveryThread?.close()
        loop.close()
        loaders.close()
        // Before whoever waits in `destroy` hears of the end.
        runCompletions()
        lock.withLock {
            ending = .ended
            ended.broadcast()
        }
        // Completions that came meanwhile.
        runCompletions()
    }

    private func letGoOfTemplates() {
        let kept = lock.withLock { templates.close() }
        withExtendedLifetime(kept) {}
    }

    private func runCompletions() {
        while let completion = lock.withLock({ completions.isEmpty ? nil : completions.removeFirst() }) { completion() }
    }
}

/// What a thread does last, if anything: whoever ends a downloader hands it over.
private final class LastWork: @unchecked Sendable {
    private let lock = Lock()
    private var work: (() -> Void)?

    func set(_ work: @escaping () -> Void) { lock.withLock { self.work = work } }

    func perform() { lock.withLock { work.take() }?() }
}

/// What a transport sees of the engine's thread.
private final class EngineLoop: TransportLoop {
    private let loop: EventLoop
    private let mailbox: Mailbox
    private let clock: TurnClock

    init(_ loop: EventLoop, _ mailbox: Mailbox, _ clock: TurnClock) {
        self.loop = loop
        self.mailbox = mailbox
        self.clock = clock
    }

    var now: Instant { clock.now() }

    func watch(_ descriptor: Int32, readable: Bool, writable: Bool) {
        loop.watch(descriptor, readable: readable, writable: writable)
    }

    func unwatch(_ descriptor: Int32) { loop.unwatch(descriptor) }

    func rest(_ descriptor: Int32) { loop.rest(descriptor) }

    func perform(_ work: @escaping @Sendable () -> Void) { mailbox.post(.perform(work)) }
}
