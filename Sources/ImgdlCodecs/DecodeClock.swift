import CCodecs
import ImgdlCore
import Synchronization

/// Ends one picture's decoding early: by the CPU time that it has used, on whatever threads, or because it is asked to.
/// Loops look at it after so many pixels, in C too, where no Swift frame may be.
final class DecodeClock {
    /// Nanoseconds of the calling thread.
    typealias CPUTime = @convention(c) () -> Int64

    let session: OpaquePointer?
    private let now: CPUTime
    /// Nanoseconds; nil: none.
    private let limit: Int64?
    private var used: Int64 = 0
    private var began: Int64 = 0
    private var wasWorking: Int32 = 0
    private var isAtWork = false
    /// How often work has begun in this process, while there were few.
    private static let beginnings = Atomic<Int>(0)
    /// A few dozen pictures, of which a dozen are `FirstPictures`: rather too many than too few. Not measured, since what
    /// Swift's runtime makes, and when, is its own business; a fork among them waits for a piece of one picture.
    private static let manyBeginnings = 256

    init(_ options: DecodeOptions, now: CPUTime = codec_cpu_time) {
        session = codec_stop_create(now)
        self.now = now
        limit = options.maximumMilliseconds.map { min($0, Int64(UInt32.max)) * 1_000_000 }
    }

    deinit { codec_stop_destroy(session) }

    /// Any thread: the work that runs goes no further than it must.
    func stop() { codec_stop_ask(session) }

    /// Around work on this thread, whose CPU time counts. fork() does not wait for it: it takes long, and has no lock that
    /// the child needs. Only for the first pieces it waits, until they look whether they are due: `FirstPictures` says why.
    func begin() {
        isAtWork = Self.beginnings.load(ordering: .relaxed) < Self.manyBeginnings
        if isAtWork { Self.beginnings.add(1, ordering: .relaxed) }
        wasWorking = isAtWork ? Thread.beginWork() : Thread.beginRest()
        guard let limit else { return }
        began = now()
        codec_stop_set_deadline(session, max(1, began + limit - used))
    }

    func end() {
        if limit != nil { used += now() - began }
        Thread.restore(wasWorking)
    }

    /// Between `begin` and `end`, after so many pixels or what takes as long.
    func isDue(after work: Int = 0) -> Bool {
        if isAtWork { Thread.letForkPass() }
        return codec_stop_is_due(session, work) != 0
    }

    /// Likewise. Throws `decodeTimeout`, or `cancelled` where somebody has asked.
    func check(after work: Int = 0) throws(Failure) { if isDue(after: work) { throw failure } }

    /// Why it was due.
    var failure: Failure {
        if codec_stop_is_asked(session) != 0 { return Failure(.cancelled, "nobody waits for the picture") }
        return Failure(
            .decodeTimeout, "decoding takes more than the limit of \((limit ?? 0) / 1_000_000) ms of CPU time")
    }
}
