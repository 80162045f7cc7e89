import CSystem
import Glibc

/// epoll, and an eventfd by which other threads end its sleep. Its thread is the engine's; only `wake` is for others.
///
/// The next deadline is epoll's timeout and not a timer descriptor: it saves a system call at each change.
final class EventLoop {
    /// Tests ask the kernel what it has.
    let epoll: Int32
    private let wakeDescriptor: Int32
    /// By descriptor.
    private var interests = PlainTable<Interest>()
    /// Descriptors whose interest epoll may have to be told before the thread sleeps.
    private var changed = PlainTable<Int32>()
    private var readyCount = 0
    private var isClosed = false
    /// Grows until all that are ready at once have room.
    private var events = [epoll_event](repeating: epoll_event(), count: 64)
    private var rounds = ReadyRounds()

    /// What came before this moment has had a turn.
    var heardUntil: Instant { rounds.heardUntil }

    /// What epoll has been told, and what it is to be told: curl changes its mind several times in a turn.
    private struct Interest: BitwiseCopyable {
        /// Of `epoll_event`; 0: epoll does not have it.
        var known: UInt32 = 0
        var wanted: UInt32 = 0
        /// It stands among `changed`.
        var isListed = false
        /// epoll has it although nobody is told.
        var isResting = false
        /// Wanted anew as it is known: a descriptor that was closed without `unwatch` has left epoll by itself, and its
        /// number may be back.
        var isRenewed = false
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
        interests.extend(to: Int(descriptor) + 1, with: Interest())
        want((readable ? EPOLLIN.rawValue : 0) | (writable ? EPOLLOUT.rawValue : 0), descriptor)
    }

    func unwatch(_ descriptor: Int32) {
        rounds.closed(descriptor)
        drop(descriptor)
    }

    private func drop(_ descriptor: Int32) {
        guard isKnown(descriptor) else { return }
        interests[Int(descriptor)].wanted = 0
        interests[Int(descriptor)].isResting = false
        tell(descriptor)
    }

    func rest(_ descriptor: Int32) {
        guard isKnown(descriptor) else { return }
        want(0, descriptor)
        // Writable it is at once.
        interests[Int(descriptor)].isResting = interests[Int(descriptor)].known == EPOLLIN.rawValue
    }

    private func isKnown(_ descriptor: Int32) -> Bool {
        descriptor < interests.count
            && interests[Int(descriptor)].known | interests[Int(descriptor)].wanted != 0
    }

    private func want(_ events: UInt32, _ descriptor: Int32) {
        let number = Int(descriptor)
        let wasResting = interests[number].isResting
        let wasUnwanted = interests[number].wanted == 0
        interests[number].wanted = events
        interests[number].isResting = false
        guard !interests[number].isListed else {
            if wasUnwanted, events == interests[number].known { interests[number].isRenewed = true }
            return
        }
        guard !wasResting || events != interests[number].known else { return }
        interests[number].isListed = true
        interests[number].isRenewed = events == interests[number].known
        changed.append(descriptor)
    }

    private func tellChanged() {
        guard !changed.isEmpty else { return }
        for index in 0..<changed.count {
            let descriptor = changed[index]
            if !interests[Int(descriptor)].isResting { tell(descriptor) }
            interests[Int(descriptor)].isListed = false
        }
        changed.removeAll()
    }

    private func tell(_ descriptor: Int32) {
        let interest = interests[Int(descriptor)]
        guard interest.wanted != interest.known || interest.isRenewed else { return }
        interests[Int(descriptor)].known = interest.wanted
        interests[Int(descriptor)].isRenewed = false
        var event = epoll_event()
        event.events = interest.wanted
        event.data.fd = descriptor
        guard interest.wanted != 0 else {
            epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
            return
        }
        let isNew = interest.known == 0
        if epoll_ctl(epoll, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) != 0 {
            epoll_ctl(epoll, errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
        }
    }

    /// Sleeps until a descriptor is ready, `wake` is called, or `deadline` is reached; then `forEachReady` tells. True: the
    /// process was stopped meanwhile, or a debugger has looked at it.
    @discardableResult
    func wait(until deadline: Instant?, now: Instant) -> Bool {
        tellChanged()
        var timeout: Int32 = -1
        if let deadline {
            // Rounded up: waking too early would only mean to sleep again.
            let milliseconds = (deadline.nanoseconds - now.nanoseconds + 999_999) / 1_000_000
            timeout = Int32(clamping: max(0, milliseconds))
        }
        var wasInterrupted = false
        readyCount = Thread.resting { look(timeout, &wasInterrupted) }
        while readyCount == events.count {
            events.append(contentsOf: repeatElement(epoll_event(), count: events.count))
            readyCount = look(0, &wasInterrupted)
        }
        rounds.looks(now)
        for index in 0..<readyCount where events[index].data.fd == wakeDescriptor {
            var value: UInt64 = 0
            _ = read(wakeDescriptor, &value, 8)
            // It has no turn.
            readyCount -= 1
            events.swapAt(index, readyCount)
            break
        }
        return wasInterrupted
    }

    /// Looks which descriptors are ready, and waits for one for so many milliseconds. Gives how many there are.
    private func look(_ timeout: Int32, _ wasInterrupted: inout Bool) -> Int {
        var count = epoll_wait(epoll, &events, Int32(events.count), timeout)
        // By no signal that anybody handles, since all are blocked. What is ready is not known yet.
        while count < 0, errno == EINTR {
            wasInterrupted = true
            count = epoll_wait(epoll, &events, Int32(events.count), 0)
        }
        return max(0, Int(count))
    }

    /// Sleeps for so long at most; `wait` is to follow. epoll itself counts in milliseconds.
    func nap(nanoseconds: Int) {
        tellChanged()
        Thread.resting { system_nap(epoll, nanoseconds) }
    }

    /// Puts what was found ready in order. How many have little to read.
    private func putInOrder(_ now: Instant) -> Int {
        let (places, light) = rounds.order(events[..<readyCount].map(\.data.fd), now, unread: system_unread)
        events.replaceSubrange(..<readyCount, with: places.map { events[$0] })
        return light
    }

    /// A round of what the last `wait` found ready. A descriptor that was closed since then may be among them. When the
    /// round's time is over, or it becomes a crowd, the others wait; in a crowd those with little to read have their turn,
    /// and one of the others. The rest is found ready again, when commands and deadlines have had their turn. `now` is asked
    /// before each turn, and `time`, the thread's CPU time in nanoseconds, around each of those that compete.
    func forEachReady(
        isCrowded: () -> Bool = { false }, now: () -> Instant, time: () -> Int64 = ThreadClock.now,
        _ body: (Int32, _ readable: Bool, _ writable: Bool) -> Void
    ) {
        let wasCrowded = isCrowded()
        // Of one alone nothing depends on how much it has to read, or has had.
        let compete = readyCount > 1 && (wasCrowded || rounds.areOwed)
        let light = compete ? putInOrder(now()) : readyCount
        var round = ReadyRounds.Round(ready: readyCount, light: light, isCrowded: wasCrowded)
        readyCount = 0
        while let index = round.ready > 0 ? round.next(now()) : nil {
            Thread.letForkPass()
            let event = events[index]
            if interests[Int(event.data.fd)].isResting {
                drop(event.data.fd)
                continue
            }
            // Errors and hang-ups are found out by reading.
            let failed = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
            let before = compete ? time() : 0
            body(
                event.data.fd, event.events & EPOLLIN.rawValue != 0 || failed,
                event.events & EPOLLOUT.rawValue != 0)
            if compete { rounds.took(event.data.fd, time() - before) }
            if !wasCrowded, isCrowded() { break }
        }
        rounds.ends(round) { events[$0].data.fd }
    }
}
