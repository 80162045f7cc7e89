/// For which transfers the sockets of a multi handle were watched last: while a connection is made, the one that it is for.
/// Easy handles come back, as they are or at the address of one that was freed: so each time that one is added counts.
struct SocketUsers {
    struct User: Equatable {
        let easy: UnsafeMutableRawPointer
        /// How many had been added when the socket was watched for it.
        let additions: UInt64

        /// Whether it was that transfer: later ones on the same handle were not.
        func isOn(_ easy: UnsafeMutableRawPointer, addition: UInt64) -> Bool {
            self.easy == easy && addition <= additions
        }
    }

    private var users: [User?] = []
    private var additions: UInt64 = 0

    /// Its number, by which it is told from those that have the same handle later.
    mutating func add() -> UInt64 {
        additions += 1
        return additions
    }

    mutating func watch(_ socket: Int32, for easy: UnsafeMutableRawPointer?) {
        while users.count <= Int(socket) { users.append(nil) }
        users[Int(socket)] = easy.map { User(easy: $0, additions: additions) }
    }

    /// Nobody has used it: its number may be that of an earlier one.
    mutating func open(_ socket: Int32) { if Int(socket) < users.count { users[Int(socket)] = nil } }

    subscript(socket: Int32) -> User? { Int(socket) < users.count ? users[Int(socket)] : nil }
}
