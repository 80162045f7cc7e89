/// What a downloader keeps for what comes next, and can do without: memory of bodies, handles of transfers, idle connections.
///
/// An object of its own, since the process points to it weakly (see `ExitStop`). Threads: any.
package final class Reserves: @unchecked Sendable {
    private let bodyMemory: BodyMemory
    private let mailbox: Mailbox
    private let processGeneration = ProcessGeneration.current

    init(_ bodyMemory: BodyMemory, _ mailbox: Mailbox) {
        self.bodyMemory = bodyMemory
        self.mailbox = mailbox
    }

    /// Gives back what can be given back at once. The engine's thread sees to the rest. Does nothing in the child of a fork.
    package func release(connections: Bool) {
        guard processGeneration == ProcessGeneration.current else { return }
        mailbox.post(.trimTransport(connections: connections))
        bodyMemory.releaseKept()
    }
}
