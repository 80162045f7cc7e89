/// What of a downloader is stopped when the process exits.
///
/// An object of its own, since the process points to it weakly: whatever is pointed to so has its references counted in a
/// table besides, at four times the cost, and each request counts some of its downloader.
package final class ExitStop: @unchecked Sendable {
    private let engine: Engine
    private let thread: Thread
    private let loaders: SchemeLoaders
    private let clock: any Clock
    private let processGeneration = ProcessGeneration.current

    init(_ engine: Engine, on thread: Thread, _ loaders: SchemeLoaders, _ clock: any Clock) {
        self.engine = engine
        self.thread = thread
        self.loaders = loaders
        self.clock = clock
    }

    /// Stops the engine's thread as it stands: no callbacks, and nobody waits for long. Does nothing on that thread, and in
    /// the child of a fork.
    package func stop() {
        guard processGeneration == ProcessGeneration.current, !thread.isCurrent else { return }
        loaders.abandon()
        engine.stop()
        engine.waitUntilStopped(until: clock.now().advanced(byMilliseconds: 2_000))
    }
}
