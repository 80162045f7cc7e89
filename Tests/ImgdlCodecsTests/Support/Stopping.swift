import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCodecs

/// CPU time of the calling thread, in nanoseconds.
func threadTime() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
}

/// Tells a decoder to stop when the thread that decodes has worked for so long; how long that went on is told in its own
/// CPU time, whatever else the machine does.
final class Stopper: @unchecked Sendable {
    private let decoder: any ImageDecoder
    private let deadline: Int64
    private var clock = clockid_t()
    private var thread: pthread_t?
    /// The other thread's clock behind the call; 0: decoding had ended. The other thread, and this one once it has joined.
    private var stopped: Int64 = 0
    private let hasEnded = OnceFlag()

    /// By the calling thread, which decodes.
    init(_ decoder: any ImageDecoder, after milliseconds: Int) throws {
        self.decoder = decoder
        deadline = threadTime() + Int64(milliseconds) * 1_000_000
        guard pthread_getcpuclockid(pthread_self(), &clock) == 0 else { throw XCTSkip("no clock of a thread") }
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            {
                Unmanaged<Stopper>.fromOpaque($0!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard status == 0 else { throw XCTSkip("no thread") }
        self.thread = thread
    }

    private func run() {
        while !hasEnded.isSet {
            guard now() >= deadline else {
                usleep(500)
                continue
            }
            decoder.stop()
            stopped = now()
            return
        }
    }

    private func now() -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Milliseconds of CPU time between the call and now; nil: it was not stopped. By the thread that decodes, when it is
    /// free.
    func overrun() -> Double? {
        let free = threadTime()
        hasEnded.set()
        if let thread { pthread_join(thread, nil) }
        thread = nil
        return stopped > 0 ? Double(free - stopped) / 1e6 : nil
    }
}

/// Set once, on another thread.
private final class OnceFlag: @unchecked Sendable {
    private let lock = Lock()
    private var value = false
    var isSet: Bool { lock.withLock { value } }
    func set() { lock.withLock { value = true } }
}

extension XCTestCase {
    /// What stopping may take: milliseconds of CPU time.
    private static var bound: Double { 50 }

    /// Somebody cancels, and then the time is limited: the thread is free at once in both cases. `after` is less than the
    /// picture takes.
    func assertStops(
        _ bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), after milliseconds: Int, partials: Bool = false,
        pieces: Int = .max / 2, _ name: String = "", file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let decoder = BuiltInCodec().makeDecoder(options)
        let stopper = try Stopper(decoder, after: milliseconds)
        let failure = failure(of: decoder, bytes, pieces: pieces, partials: partials)
        let overrun = stopper.overrun()
        XCTAssertEqual(failure?.code, .cancelled, name, file: file, line: line)
        XCTAssertLessThan(overrun ?? .infinity, Self.bound, name, file: file, line: line)

        var limited = options
        limited.maximumMilliseconds = Int64(milliseconds)
        let start = threadTime()
        let late = BuiltInCodec().makeDecoder(limited)
        let lateFailure = self.failure(of: late, bytes, pieces: pieces, partials: partials)
        _ = late.salvagedImage()
        let used = Double(threadTime() - start) / 1e6
        XCTAssertEqual(lateFailure?.code, .decodeTimeout, name, file: file, line: line)
        XCTAssertLessThan(used, Double(milliseconds) + Self.bound, name, file: file, line: line)
    }

    private func failure(
        of decoder: any ImageDecoder, _ bytes: [UInt8], pieces: Int, partials: Bool
    ) -> Failure? {
        do throws(Failure) {
            try feed(decoder, bytes, pieces: pieces) { _ in if partials { _ = decoder.partialImage() } }
            _ = try decoder.finish()
            return nil
        } catch {
            return error
        }
    }
}
