import CSystem
import Glibc

/// epoll, and an eventfd by which other threads end its sleep. Its thread is the engine's; only `wake` is for others.
///
/// The next deadline is epoll's timeout and not a timer descriptor: it saves a system call at each change.
final class EventLoop {
    private let epoll: Int32
    private let wakeDescriptor: Int32
    /// By descriptor: what epoll has been told.
    private var interests: [Interest] = []
    /// Those that `unwatchBeforeSleep` took out, and perhaps `watch` back in.
    private var leaving: [Int32] = []
    private var readyCount = 0
    private var isClosed = false
    private var events = [epoll_event](repeating: epoll_event(), count: 64)

    private struct Interest: OptionSet {
        let rawValue: UInt8

        static let readable = Interest(rawValue: 1)
        static let writable = Interest(rawValue: 2)
        /// epoll has it.
        static let isWatched = Interest(rawValue: 4)
        /// But only until the thread sleeps.
        static let isLeaving = Interest(rawValue: 8)
    }

    init() throws(Failure) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else {
            throw Failure(.outOfMemory, "no epoll descriptor: \(String(cString: strerror(errno)))")
        }
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeDescriptor >= 0 else {
            let reason = String(cString: strerror(errno))
            Glibc.close(epoll)
            throw Failure(.outOfMemory, "no eventfd: \(reason)")
        }
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = wakeDescriptor
        epoll_ctl(epoll, EPOLL_CTL_ADD, wakeDescriptor, &event)
    }

    deinit { close() }

    /// Its thread has ended, and nobody wakes it any more.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        Glibc.close(wakeDescriptor)
        Glibc.close(epoll)
    }

    /// Threads: any.
    func wake() {
        var one: UInt64 = 1
        _ = write(wakeDescriptor, &one, 8)
    }

    func watch(_ descriptor: Int32, readable: Bool, writable: Bool) {
        let number = Int(descriptor)
        while interests.count <= number { interests.append([]) }
        let before = interests[number]
        var interest: Interest = .isWatched
        if readable { interest.insert(.readable) }
        if writable { interest.insert(.writable) }
        interests[number] = interest
        if before == interest.union(.isLeaving) { return }
        var event = epoll_event()
        event.events = (readable ? EPOLLIN.rawValue : 0) | (writable ? EPOLLOUT.rawValue : 0)
        event.data.fd = descriptor
        let isNew = !before.contains(.isWatched)
        if epoll_ctl(epoll, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) != 0 {
            // A descriptor that was closed without `unwatch` has left epoll by itself, and its number may be back.
            epoll_ctl(epoll, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
        }
    }

    func unwatch(_ descriptor: Int32) {
        guard isWatched(descriptor) else { return }
        interests[Int(descriptor)] = []
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// A connection that has answered is given its next request in the same turn, mostly: that saves two system calls.
    func unwatchBeforeSleep(_ descriptor: Int32) {
        guard isWatched(descriptor) else { return }
        interests[Int(descriptor)].insert(.isLeaving)
        leaving.append(descriptor)
    }

    private func isWatched(_ descriptor: Int32) -> Bool {
        descriptor < interests.count && interests[Int(descriptor)].contains(.isWatched)
    }

    private func unwatchLeaving() {
        guard !leaving.isEmpty else { return }
        for descriptor in leaving where interests[Int(descriptor)].contains(.isLeaving) { unwatch(descriptor) }
        leaving.removeAll(keepingCapacity: true)
    }

    /// Sleeps until a descriptor is ready, `wake` is called, or `deadline` is reached; then `forEachReady` tells.
    func wait(until deadline: Instant?, now: Instant) {
        unwatchLeaving()
        var timeout: Int32 = -1
        if let deadline {
            // Rounded up: waking too early would only mean to sleep again.
            let milliseconds = (deadline.nanoseconds - now.nanoseconds + 999_999) / 1_000_000
            timeout = Int32(clamping: max(0, milliseconds))
        }
        readyCount = Thread.resting { max(0, Int(epoll_wait(epoll, &events, Int32(events.count), timeout))) }
        for index in 0..<readyCount where events[index].data.fd == wakeDescriptor {
            var value: UInt64 = 0
            _ = read(wakeDescriptor, &value, 8)
        }
    }

    /// What the last `wait` found ready. A descriptor that was closed since then may be among them.
    func forEachReady(_ body: (Int32, _ readable: Bool, _ writable: Bool) -> Void) {
        let count = readyCount
        readyCount = 0
        for index in 0..<count where events[index].data.fd != wakeDescriptor {
            let event = events[index]
            // Errors and hang-ups are found out by reading.
            let failed = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
            body(
                event.data.fd, event.events & EPOLLIN.rawValue != 0 || failed,
                event.events & EPOLLOUT.rawValue != 0)
        }
    }
}
