import Glibc
import XCTest

/// A program run to its end, or until the test ends it.
final class Command {
    private var process = pid_t()
    private let output: Int32
    private let input: Int32
    private var isReaped = false

    /// `arguments[0]` is a path, or a name looked up in PATH.
    convenience init(_ arguments: String...) throws { try self.init(list: arguments) }

    init(list arguments: [String]) throws {
        var outputPipe: [Int32] = [0, 0]
        var inputPipe: [Int32] = [0, 0]
        XCTAssertEqual(pipe(&outputPipe), 0)
        XCTAssertEqual(pipe(&inputPipe), 0)
        _ = fcntl(outputPipe[0], F_SETFD, FD_CLOEXEC)
        _ = fcntl(inputPipe[1], F_SETFD, FD_CLOEXEC)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, outputPipe[1], 1)
        posix_spawn_file_actions_adddup2(&actions, inputPipe[0], 0)
        posix_spawn_file_actions_addclose(&actions, outputPipe[1])
        posix_spawn_file_actions_addclose(&actions, inputPipe[0])
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        let code = posix_spawnp(&process, arguments[0], &actions, nil, &words, environ)
        for word in words { free(word) }
        posix_spawn_file_actions_destroy(&actions)
        close(outputPipe[1])
        close(inputPipe[0])
        output = outputPipe[0]
        input = inputPipe[1]
        XCTAssertEqual(code, 0, "cannot run \(arguments[0])")
    }

    deinit {
        if !isReaped {
            kill(process, SIGKILL)
            wait()
        }
        close(output)
        close(input)
    }

    func signal(_ number: Int32) { kill(process, number) }
    func closeInput() { dup2(output, input) }

    func readLine() -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(output, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    func readToEnd() -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(output, &part, part.count)
            if count <= 0 { return all }
            all += part[..<count]
        }
    }

    /// The exit status; 128 and the signal's number for one that was killed.
    @discardableResult
    func wait() -> Int32 {
        var status: Int32 = 0
        waitpid(process, &status, 0)
        isReaped = true
        return status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
    }
}

struct CurlResult {
    var exitCode: Int32
    var output: String
}

/// The curl tool, with a deadline of its own.
func curl(_ arguments: String...) throws -> CurlResult {
    try startCurl(arguments).result()
}

struct RunningCurl {
    let command: Command
    func result() -> CurlResult {
        let output = command.readToEnd()
        return CurlResult(exitCode: command.wait(), output: String(decoding: output, as: UTF8.self))
    }
}

func startCurl(_ arguments: [String]) throws -> RunningCurl {
    let all = ["curl", "--silent", "--max-time", "15"] + arguments
    return RunningCurl(command: try Command(list: all))
}
