import Glibc
import ImgdlCore

@testable import ImgdlCache

/// A disk that fails as it is told.
final class FailingDisk: Disk, @unchecked Sendable {
    enum Step {
        case create, write, close, synchronize, rename
        /// The same, into the folder of bodies.
        case publish
    }

    private let lock = Lock()
    private let tried: Condition
    private var faults: [Step: Int32] = [:]
    private var counts = (single: 0, all: 0)
    private var failures = 0
    private var hangs = false
    private var isHanging = false

    init() { tried = Condition(lock) }

    /// False: it has not failed so often for so long that it will not.
    func wait(forAttempts count: Int) -> Bool {
        let end = MonotonicClock().now().advanced(byMilliseconds: 60_000)
        return lock.withLock {
            while failures < count { if !tried.wait(until: end) { return false } }
            return true
        }
    }

    var synchronizations: (single: Int, all: Int) { lock.withLock { counts } }

    func fail(_ step: Step, _ number: Int32?) { lock.withLock { faults[step] = number } }

    private func check(_ step: Step) throws(DiskError) {
        let number = lock.withLock { () -> Int32? in
            guard let number = faults[step] else { return nil }
            failures += 1
            tried.signal()
            return number
        }
        if let number { throw DiskError("\(step)", number) }
    }

    func create(_ path: InnerPath) throws(DiskError) -> Int32 {
        try check(.create)
        return try KernelDisk().create(path)
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ path: InnerPath) throws(DiskError) {
        try check(.write)
        try KernelDisk().write(descriptor, bytes, path)
    }

    func reserve(_ descriptor: Int32, _ bytes: Int, _ path: InnerPath) throws(DiskError) {
        lock.withLock {
            while hangs {
                isHanging = true
                tried.broadcast()
                tried.wait()
            }
            isHanging = false
        }
        try KernelDisk().reserve(descriptor, bytes, path)
    }

    /// Whoever reserves blocks waits, until that is over.
    func hang(_ hangs: Bool) {
        lock.withLock {
            self.hangs = hangs
            tried.broadcast()
        }
    }

    /// False: nobody has come to wait for so long that nobody will.
    func waitForHanging() -> Bool {
        let end = MonotonicClock().now().advanced(byMilliseconds: 60_000)
        return lock.withLock {
            while !isHanging { if !tried.wait(until: end) { return false } }
            return true
        }
    }

    func close(_ descriptor: Int32, _ path: InnerPath) throws(DiskError) {
        try KernelDisk().close(descriptor, path)
        try check(.close)
    }

    func synchronize(_ path: InnerPath) throws(DiskError) {
        try check(.synchronize)
        lock.withLock { counts.single += 1 }
        try KernelDisk().synchronize(path)
    }

    func synchronizeAll(_ folder: InnerPath) throws(DiskError) {
        try check(.synchronize)
        lock.withLock { counts.all += 1 }
        try KernelDisk().synchronizeAll(folder)
    }

    func rename(_ from: InnerPath, _ to: InnerPath) throws(DiskError) {
        try check(.rename)
        if "\(to)".contains("/bodies-1/") { try check(.publish) }
        try KernelDisk().rename(from, to)
    }
}
