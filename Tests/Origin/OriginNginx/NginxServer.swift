import COrigin
import Foundation
import Glibc
import Origin
import OriginHTTP2

/// nginx as a child process: a server that nobody scripted, on 127.0.0.1, with a folder, certificates and a document
/// root of its own. It speaks HTTP/1.1 on one port, HTTP/1.1 over TLS on another and HTTP/2 over TLS on a third.
///
/// The listening sockets are ours and inherited by nginx, so that no port is lost to another process.
///
/// What it serves on each port: its files at `/`, the same at `/slow/x?rate=N` with so many bytes per
/// second; text files compressed where the client takes that; redirects from `/to-plain/x`, `/to-http1/x`, `/to-http2/x`
/// to `/x` on that port. Every answer tells its connection in the field X-Connection.
package final class NginxServer {
    package enum Port: Int, CaseIterable, Sendable {
        case plain, http1, http2
    }

    package struct NotInstalled: Error, CustomStringConvertible {
        package var description: String { "nginx is not installed" }
    }

    package struct Unavailable: Error, CustomStringConvertible {
        package var description: String
    }

    package var caFile: String { authority.file }
    private let authority: Authority
    private let folder: String
    private let ports: [UInt16]
    private var child: pid_t = 0

    package func port(_ port: Port) -> UInt16 { ports[port.rawValue] }

    package func url(_ path: String, _ port: Port = .http2) -> String {
        "\(port == .plain ? "http" : "https")://127.0.0.1:\(self.port(port))\(path)"
    }

    /// `directives`: of nginx's, for all three servers.
    package init(
        files: [String: [UInt8]], certificate: Certificate = .valid, directives: String = ""
    ) throws {
        authority = try Authority(certificate)
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/nginx-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Unavailable(description: "mkdtemp: errno \(errno)") }
        folder = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        let listeners = try Port.allCases.map { _ in try Self.listen() }
        ports = listeners.map(\.port)
        do {
            // Whoever connects while nginx ends for a mistake in its configuration must not wait.
            defer { for listener in listeners { close(listener.descriptor) } }
            mkdir(folder + "/files", 0o700)
            for (name, bytes) in files { try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/files/\(name)")) }
            try authority.writeServer(certificate: folder + "/certificate.pem", key: folder + "/key.pem")
            let text = configuration(directives)
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/nginx.conf"))
            child = try Self.spawn(
                ["nginx", "-p", folder, "-e", folder + "/error.log", "-c", folder + "/nginx.conf"],
                inheriting: listeners.map(\.descriptor))
        }
        guard answers() else {
            kill()
            let log = (try? String(contentsOfFile: folder + "/error.log", encoding: .utf8)) ?? ""
            stop()
            throw Unavailable(description: "nginx does not answer: \(log)")
        }
    }

    deinit { stop() }

    /// Ends it in order, and waits for that.
    package func stop() {
        end(by: SIGQUIT)
        authority.removeFiles()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Ends it at once: the kernel closes its connections. Returns when its ports refuse new ones, since the worker
    /// process is not ours to wait for.
    package func kill() {
        end(by: SIGKILL, group: true)
        for port in ports {
            let deadline = Deadline.patient
            while let client = Self.connect(to: port), deadline.instant > .now {
                close(client)
                usleep(1_000)
            }
        }
    }

    /// The master process takes its worker along, unless it is killed.
    private func end(by signal: Int32, group: Bool = false) {
        guard child > 0 else { return }
        Glibc.kill(group ? -child : child, signal)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        child = 0
    }

    /// With a master process: nginx 1.22 alone (`master_process off`) crashes over sockets it inherits.
    private func configuration(_ directives: String) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/\($0);" }
        let redirects = Port.allCases
            .map { "location ~ ^/to-\($0)(/.*)$ { return 302 \(url("", $0))$1; }" }
        let servers = Port.allCases.map { port in
            """
            server {
                listen 127.0.0.1:\(self.port(port))\(["", " ssl", " ssl http2"][port.rawValue]);
                root \(folder)/files;
                location = /ready { return 204; }
                location /slow/ { alias \(folder)/files/; limit_rate $arg_rate; }
                \(redirects.joined(separator: "\n    "))
            }
            """
        }
        return """
            daemon off;
            worker_processes 1;
            worker_shutdown_timeout 1s;
            \(geteuid() == 0 ? "user root;" : "")
            pid \(folder)/pid;
            events { worker_connections 512; }
            http {
            access_log off;
            \(temporary.joined(separator: "\n"))
            types { image/jpeg jpg; image/png png; image/webp webp; text/plain txt; }
            default_type application/octet-stream;
            ssl_certificate \(folder)/certificate.pem;
            ssl_certificate_key \(folder)/key.pem;
            add_header X-Connection $connection always;
            gzip on;
            gzip_types text/plain;
            gzip_static on;
            \(directives)
            \(servers.joined(separator: "\n"))
            }
            """
    }

    /// Asks for a first answer. The connection waits in the socket's queue until nginx runs; it is reset if that never
    /// comes about.
    private func answers() -> Bool {
        guard let client = Self.connect(to: port(.plain)) else { return false }
        defer { close(client) }
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let question = "GET /ready HTTP/1.0\r\n\r\n"
        guard send(client, question, question.utf8.count, Int32(MSG_NOSIGNAL)) > 0 else { return false }
        var byte: UInt8 = 0
        return recv(client, &byte, 1, 0) == 1
    }

    private static func connect(to port: UInt16) -> Int32? {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(port)
        if withAddress(&address, { Glibc.connect(client, $0, $1) == 0 }) { return client }
        close(client)
        return nil
    }

    private static func listen() throws -> (descriptor: Int32, port: UInt16) {
        // nginx expects of a socket it inherits that it does not block.
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let low = socket(AF_INET, kind, 0)
        // Out of the way of the numbers that the child has them under.
        let descriptor = fcntl(low, F_DUPFD_CLOEXEC, 64)
        close(low)
        var address = loopback(0)
        let isListening = withAddress(&address) { pointer, length in
            var length = length
            return bind(descriptor, pointer, length) == 0 && Glibc.listen(descriptor, 511) == 0
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard isListening else { throw Unavailable(description: "no socket: errno \(errno)") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func withAddress<Result>(
        _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Starts a program in a process group of its own, its output thrown away, with these descriptors as its numbers
    /// 3, 4, …, and with no others.
    private static func spawn(_ arguments: [String], inheriting descriptors: [Int32]) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for output in [STDOUT_FILENO, STDERR_FILENO] {
            posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0)
        }
        for (index, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(3 + index))
        }
        corigin_close_from(&actions, Int32(3 + descriptors.count))
        // The calling thread may block signals that the child has to hear.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        let inherited = descriptors.indices.map { "\(3 + $0);" }.joined()
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = [strdup("NGINX=\(inherited)"), nil]
        defer { for text in argv + envp { free(text) } }
        for folder in ["/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"] {
            var child: pid_t = 0
            if posix_spawn(&child, folder + arguments[0], &actions, &attributes, &argv, &envp) == 0 { return child }
        }
        throw NotInstalled()
    }
}
