import Foundation
import Glibc

/// nginx as a child process: a server that nobody scripted, over TLS on 127.0.0.1, with a folder of its own.
/// Its certificate is made by the openssl command and is its own authority: trust `caFile`.
///
/// The listening socket is ours and inherited by nginx, so the port is never lost to another and clients may connect at
/// once: they wait in the socket's queue until nginx runs.
package final class NginxServer {
    package struct Unavailable: Error { package var reason: String }

    package let port: UInt16
    package var caFile: String { folder + "/certificate.pem" }
    private let folder: String
    private var child: pid_t = 0

    package func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    package init(files: [String: [UInt8]], http2: Bool = true) throws {
        var template = Array("/tmp/origin-nginx-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Unavailable(reason: "mkdtemp: errno \(errno)") }
        folder = String(cString: template)
        let listener = try Self.listen()
        defer { Glibc.close(listener.descriptor) }
        port = listener.port
        mkdir(folder + "/files", 0o755)
        // Workers may run as another user.
        chmod(folder, 0o755)
        for (name, bytes) in files { try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/files/\(name)")) }
        try Data(configuration(http2: http2).utf8).write(to: URL(fileURLWithPath: folder + "/nginx.conf"))
        try makeCertificate()
        let log = folder + "/error.log"
        child = try Self.spawn(
            ["nginx", "-p", folder, "-e", log, "-c", folder + "/nginx.conf"], inheriting: listener.descriptor,
            environment: ["NGINX=3;"])
    }

    deinit { stop() }

    package func stop() {
        if child > 0 {
            // The master process takes its worker along.
            kill(child, SIGTERM)
            var status: Int32 = 0
            waitpid(child, &status, 0)
            child = 0
        }
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func configuration(http2: Bool) -> String {
        """
        daemon off;
        worker_processes 1;
        pid \(folder)/pid;
        events { worker_connections 256; }
        http {
            access_log off;
            client_body_temp_path \(folder)/body;
            proxy_temp_path \(folder)/proxy;
            fastcgi_temp_path \(folder)/fastcgi;
            uwsgi_temp_path \(folder)/uwsgi;
            scgi_temp_path \(folder)/scgi;
            server {
                listen 127.0.0.1:\(port) ssl\(http2 ? " http2" : "");
                ssl_certificate \(folder)/certificate.pem;
                ssl_certificate_key \(folder)/key.pem;
                root \(folder)/files;
            }
        }
        """
    }

    private func makeCertificate() throws {
        let openssl = try Self.spawn([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", folder + "/key.pem", "-out", caFile, "-days", "2", "-subj", "/CN=origin",
            "-addext", "subjectAltName=IP:127.0.0.1",
        ])
        var status: Int32 = 0
        waitpid(openssl, &status, 0)
        guard status == 0 else { throw Unavailable(reason: "openssl failed") }
    }

    private static func listen() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 128) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard status else { throw Unavailable(reason: "no socket: errno \(errno)") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// Starts a program found in PATH or /usr/sbin, its output thrown away, with one descriptor as its number 3.
    private static func spawn(
        _ arguments: [String], inheriting descriptor: Int32? = nil, environment: [String] = []
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for output in [STDOUT_FILENO, STDERR_FILENO] {
            posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0)
        }
        if let descriptor { posix_spawn_file_actions_adddup2(&actions, descriptor, 3) }
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = (environment + ["PATH=/usr/sbin:/usr/bin:/bin"]).map { strdup($0) } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        for folder in ["/usr/sbin/", "/usr/bin/", "/usr/local/bin/"] {
            var child: pid_t = 0
            if posix_spawn(&child, folder + arguments[0], &actions, nil, &argv, &envp) == 0 { return child }
        }
        throw Unavailable(reason: "\(arguments[0]) is not installed")
    }
}
