import Glibc
import XCTest

@testable import ImgdlCore

/// How a child of this process has ended, and what it said on its standard error.
struct ChildEnd {
    struct NoChild: Error { let errno: Int32 }

    /// nil: by a signal.
    private(set) var status: Int32?
    private(set) var signal: Int32?
    private(set) var words = ""

    /// A trap ends a process by either of them; which one, the machine decides.
    var isTrap: Bool { signal == SIGILL || signal == SIGTRAP }

    /// Of a child that does this and nothing else. It is killed where that takes long.
    init(of act: () -> Void) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw NoChild(errno: errno) }
        defer { close(ends[0]) }
        let child = fork()
        if child == 0 {
            Self.speak(to: ends[1])
            act()
            _exit(0)
        }
        close(ends[1])
        guard child > 0 else { throw NoChild(errno: errno) }
        if !listen(to: ends[0]) { kill(child, SIGKILL) }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        if status & 0x7F == 0 { self.status = status >> 8 & 0xFF } else { signal = status & 0x7F }
    }

    /// In the child: a trap is a trap, whoever watches for them, and leaves no file behind.
    private static func speak(to end: Int32) {
        for trap in [SIGILL, SIGTRAP] { Glibc.signal(trap, SIG_DFL) }
        var nothing = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &nothing)
        dup2(end, STDERR_FILENO)
    }

    /// To its end, which comes with that of the child. False after 20 s.
    private mutating func listen(to end: Int32) -> Bool {
        let deadline = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        var said: [UInt8] = []
        defer { words = String(decoding: said, as: UTF8.self) }
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            let left = deadline.milliseconds(since: MonotonicClock().now())
            var readable = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
            guard left > 0 else { return false }
            guard poll(&readable, 1, Int32(left)) > 0 else { continue }
            let count = read(end, &piece, piece.count)
            if count == 0 { return true }
            if count > 0 { said += piece[..<count] }
        }
    }
}
