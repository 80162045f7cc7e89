import COrigin
import Glibc

/// Notices that clients close their connections, also those on which a script is waiting or writing.
/// The log must be in the order of events: whoever is about to note a request first calls `drain`, so that
/// closes which the kernel already knows are noted before it.
final class DepartureWatch: Sendable {
    private let descriptor: Int32
    private let wake: Int32
    private let isRunning = Monitor(true)
    private let order = Monitor(())
    private let departed: @Sendable (Int) -> Void

    /// `departed` is called with the connection's number, once per connection.
    init(departed: @escaping @Sendable (Int) -> Void) throws {
        self.departed = departed
        descriptor = corigin_watch_new()
        wake = corigin_wake_new()
        guard descriptor >= 0, wake >= 0 else { throw SystemError(call: "epoll_create1") }
    }

    deinit {
        close(descriptor)
        close(wake)
    }

    func add(_ socket: Socket, number: Int) {
        _ = corigin_watch_add(descriptor, socket.descriptor, UInt64(number))
    }

    func drain() {
        order.read { _ in
            withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 64) { numbers in
                while true {
                    let count = Int(corigin_watch_take(descriptor, numbers.baseAddress, 64))
                    for number in numbers[..<count] { departed(Int(number)) }
                    if count < 64 { return }
                }
            }
        }
    }

    /// The watching thread's work, until `stop`.
    func run() {
        while isRunning.read({ $0 }) {
            var waits = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            ]
            if poll(&waits, 2, -1) > 0, waits[0].revents != 0 { drain() }
        }
    }

    func stop() {
        isRunning.change { $0 = false }
        corigin_wake(wake)
    }
}
