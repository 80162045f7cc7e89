/// Linux's numbers for socket(2). Which C module shows their names to Swift depends on what else is imported.
enum SocketType {
    static let stream: Int32 = 1
    static let datagram: Int32 = 2
    static let closesOnExec: Int32 = 0o2000000
}
