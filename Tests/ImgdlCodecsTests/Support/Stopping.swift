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

/// Tells a decoder to stop when the thread that decodes has worked for so long. A timer by that thread's own CPU time
/// interrupts it: no other thread has to be given a processor for that.
final class Stopper {
    private struct NoTimer: Error { var error: Int32 }

    /// What the signal's handler reads and writes, on the thread that it interrupts.
    private struct Alarm {
        var decoder: (any ImageDecoder)?
        /// CPU time at the call; 0: decoding had ended.
        var stopped: Int64 = 0
    }

    private nonisolated(unsafe) static let alarm: UnsafeMutablePointer<Alarm> = {
        let memory = UnsafeMutablePointer<Alarm>.allocate(capacity: 1)
        memory.initialize(to: Alarm())
        return memory
    }()
    private static var signal: Int32 { __libc_current_sigrtmin() + 3 }
    /// SIGEV_THREAD_ID, which only Linux has.
    private static var toThread: Int32 { 4 }

    /// The first of a process is NULL.
    private var timer: timer_t?
    private var hasTimer = false

    /// The kernel's number of the calling thread; Swift knows no gettid.
    private static func threadNumber() throws -> pid_t {
        var link = [UInt8](repeating: 0, count: 64)
        let count = link.withUnsafeMutableBytes {
            readlink("/proc/thread-self", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        let name = String(decoding: link.prefix(max(0, count)), as: UTF8.self)
        guard let number = name.split(separator: "/").last.flatMap({ pid_t($0) }) else { throw NoTimer(error: errno) }
        return number
    }

    /// By the calling thread, which decodes; one at a time.
    init(_ decoder: any ImageDecoder, after milliseconds: Int) throws {
        Self.alarm.pointee = Alarm(decoder: decoder)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in
            Stopper.alarm.pointee.stopped = threadTime()
            Stopper.alarm.pointee.decoder?.stop()
        }
        action.sa_flags = SA_RESTART
        guard sigaction(Self.signal, &action, nil) == 0 else { throw NoTimer(error: errno) }
        var event = sigevent()
        event.sigev_notify = Self.toThread
        event.sigev_signo = Self.signal
        event._sigev_un._tid = try Self.threadNumber()
        guard timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 else { throw NoTimer(error: errno) }
        hasTimer = true
        var time = itimerspec()
        time.it_value = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
        guard timer_settime(timer, 0, &time, nil) == 0 else { throw NoTimer(error: errno) }
    }

    /// Milliseconds of CPU time between the call and now; nil: it was not stopped. By the thread that decodes, when it is
    /// free.
    func overrun() -> Double? {
        let free = threadTime()
        if hasTimer { timer_delete(timer) }
        hasTimer = false
        let stopped = Self.alarm.pointee.stopped
        Self.alarm.pointee = Alarm()
        return stopped > 0 ? Double(free - stopped) / 1e6 : nil
    }
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
        let cancelled = try leastOverrun { () throws in
            let decoder = BuiltInCodec().makeDecoder(options)
            let stopper = try Stopper(decoder, after: milliseconds)
            let failure = failure(of: decoder, bytes, pieces: pieces, partials: partials)
            let overrun = stopper.overrun()
            XCTAssertEqual(failure?.code, .cancelled, name, file: file, line: line)
            return overrun ?? .infinity
        }
        XCTAssertLessThan(cancelled, Self.bound, name, file: file, line: line)

        var limited = options
        limited.maximumMilliseconds = Int64(milliseconds)
        let late = leastOverrun {
            let start = threadTime()
            let decoder = BuiltInCodec().makeDecoder(limited)
            let failure = failure(of: decoder, bytes, pieces: pieces, partials: partials)
            _ = decoder.salvagedImage()
            XCTAssertEqual(failure?.code, .decodeTimeout, name, file: file, line: line)
            return Double(threadTime() - start) / 1e6 - Double(milliseconds)
        }
        XCTAssertLessThan(late, Self.bound, name, file: file, line: line)
    }

    /// Somebody cancels while what came of a cut picture is made into one. `after` is less than that takes, all together.
    func assertSalvageStops(
        _ bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), after milliseconds: Int, _ name: String,
        file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let cancelled = try leastOverrun { () throws in
            let decoder = BuiltInCodec().makeDecoder(options)
            XCTAssertEqual(
                failure(of: decoder, bytes, pieces: .max / 2, partials: false)?.code, .truncated, name, file: file,
                line: line)
            let stopper = try Stopper(decoder, after: milliseconds)
            _ = decoder.salvagedImage()
            let overrun = stopper.overrun()
            XCTAssertNotNil(overrun, "\(name): it had ended before", file: file, line: line)
            return overrun ?? 0
        }
        XCTAssertLessThan(cancelled, Self.bound, name, file: file, line: line)
    }

    /// Of up to five tries. Time that another guest of the machine takes counts as the thread's own, and so do page faults
    /// while memory is short: they can only make it more.
    private func leastOverrun(_ measure: () throws -> Double) rethrows -> Double {
        var least = Double.infinity
        for _ in 0..<5 where least >= Self.bound { least = min(least, try measure()) }
        return least
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
