import COrigin
import Glibc
import Origin

// The origin as a program, for tests in C, Python and Rust. Its first line of output says where it listens.

struct Options {
    var port: UInt16 = 0
    var root: String?
    var portFile: String?
    var segment: Int?
    var latency: Duration?
    var endsAtEOF = false

    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        while let flag = rest.popFirst() {
            if flag == "--until-eof" {
                endsAtEOF = true
                continue
            }
            guard let value = rest.popFirst() else { return nil }
            switch flag {
            case "--port":
                guard let number = UInt16(value) else { return nil }
                port = number
            case "--root": root = value
            case "--port-file": portFile = value
            case "--segment":
                guard let number = Int(value), number > 0 else { return nil }
                segment = number
            case "--latency":
                guard let number = Int(value), number >= 0 else { return nil }
                latency = .milliseconds(number)
            default: return nil
            }
        }
    }
}

func complain(_ text: String) { fputs("imgdl-origin: \(text)\n", stderr) }

func waitForEndOfInput(orWake wake: Int32) {
    while true {
        var waits = [
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&waits, 2, -1) > 0, waits[1].revents == 0 else { return }
        var bytes = [UInt8](repeating: 0, count: 4096)
        if read(STDIN_FILENO, &bytes, bytes.count) <= 0 { return }
    }
}

guard let options = Options(CommandLine.arguments.dropFirst()) else {
    fputs(
        "usage: imgdl-origin [--port N] [--root DIR] [--port-file F] [--segment N] [--latency MS] [--until-eof]\n",
        stderr)
    exit(2)
}

// Blocked before the first thread starts, so that every thread inherits it and sigwait alone sees them.
var endings = sigset_t()
sigemptyset(&endings)
sigaddset(&endings, SIGTERM)
sigaddset(&endings, SIGINT)
pthread_sigmask(SIG_BLOCK, &endings, nil)

do {
    let origin = try Origin(port: options.port, segmentSize: options.segment, latency: options.latency)
    if let root = options.root { origin.serve(directory: root) }
    if let path = options.portFile {
        // Written aside and renamed: whoever sees the file sees the whole number.
        guard let file = fopen(path + ".new", "w") else { throw SystemError(call: path) }
        fputs("\(origin.port)\n", file)
        fclose(file)
        guard rename(path + ".new", path) == 0 else { throw SystemError(call: path) }
    }
    print("listening on \(origin.base)")
    fflush(stdout)

    let reader = ThreadGroup()
    let wake = corigin_wake_new()
    if options.endsAtEOF {
        try reader.run {
            waitForEndOfInput(orWake: wake)
            kill(getpid(), SIGTERM)
        }
    }
    var signal: Int32 = 0
    sigwait(&endings, &signal)
    origin.stop()
    corigin_wake(wake)
    reader.join()
    exit(0)
} catch {
    complain("\(error)")
    exit(1)
}
