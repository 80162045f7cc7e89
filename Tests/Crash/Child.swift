import Glibc

/// This program again, with other arguments, and pipes to its input and from its output.
struct Child {
    let process: pid_t
    let input: Int32
    let output: Int32

    static func start(_ arguments: [String]) -> Child {
        var toChild: [Int32] = [0, 0]
        var fromChild: [Int32] = [0, 0]
        pipe(&toChild)
        pipe(&fromChild)
        for descriptor in [toChild[1], fromChild[0]] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
        posix_spawn_file_actions_addclose(&actions, toChild[0])
        posix_spawn_file_actions_addclose(&actions, fromChild[1])
        var process = pid_t()
        var pointers: [UnsafeMutablePointer<CChar>?] = (["crash"] + arguments).map { strdup($0) } + [nil]
        let status = posix_spawn(&process, "/proc/self/exe", &actions, nil, &pointers, environ)
        precondition(status == 0, "posix_spawn: \(status)")
        for pointer in pointers { free(pointer) }
        posix_spawn_file_actions_destroy(&actions)
        close(toChild[0])
        close(fromChild[1])
        return Child(process: process, input: toChild[1], output: fromChild[0])
    }

    /// Everything it says until it ends, and how it ended.
    func finish() -> (text: String, status: Int32) {
        close(input)
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(output, &buffer, buffer.count)
            if count <= 0 { break }
            text += buffer[..<count]
        }
        close(output)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        return (String(decoding: text, as: UTF8.self), status)
    }
}
