import Glibc

/// Threads that are all joined before their owner ends. Those that have finished are joined as new ones start,
/// so that a program which runs for hours keeps none of them.
package final class ThreadGroup: @unchecked Sendable {
    private struct State {
        var next = 0
        var running: [Int: pthread_t] = [:]
        var finished: [Int] = []
    }

    private final class Start {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    private let state = Monitor(State())
    private let stackSize: Int

    package init(stackSize: Int = 512 << 10) { self.stackSize = stackSize }

    package func run(_ body: @escaping () -> Void) throws {
        reap()
        let code: Int32 = state.change { state in
            let id = state.next
            state.next += 1
            let start = Start { [self] in
                body()
                self.state.change { $0.finished.append(id) }
            }
            var attributes = pthread_attr_t()
            pthread_attr_init(&attributes)
            defer { pthread_attr_destroy(&attributes) }
            pthread_attr_setstacksize(&attributes, stackSize)
            var thread = pthread_t()
            let argument = Unmanaged.passRetained(start)
            let code = pthread_create(
                &thread, &attributes,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                    return nil
                }, argument.toOpaque())
            if code == 0 { state.running[id] = thread } else { argument.release() }
            return code
        }
        if code != 0 { throw SystemError(call: "pthread_create", code: code) }
    }

    /// Joins every thread. None of them may call this.
    package func join() {
        while true {
            let threads = state.change { state in
                defer { state.running = [:] }
                return Array(state.running.values)
            }
            if threads.isEmpty { return }
            for thread in threads { pthread_join(thread, nil) }
        }
    }

    private func reap() {
        let ended: [pthread_t] = state.change { state in
            defer { state.finished = [] }
            return state.finished.compactMap { state.running.removeValue(forKey: $0) }
        }
        for thread in ended { pthread_join(thread, nil) }
    }
}

package struct SystemError: Error, CustomStringConvertible {
    package var call: String
    package var code: Int32
    package init(call: String, code: Int32 = errno) {
        self.call = call
        self.code = code
    }
    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}
