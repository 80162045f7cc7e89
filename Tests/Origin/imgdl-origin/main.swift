import COrigin
import Glibc
import Origin
import OriginHTTP2

// The origin as a program, for tests in C, Python and Rust. Its first line of output says where it listens.

struct Options {
    var port: UInt16 = 0
    var root: String?
    var portFile: String?
    var segment: Int?
    var latency: Duration?
    var endsAtEOF = false
    var infoFile: String?
    var tls: TLS?
    var hasHTTP2 = false
    var hasProxy = false
    var proxyUser: String?
    var proxyPassword = ""

    init?(_ arguments: ArraySlice<String>) {
        var rest = arguments
        while let flag = rest.popFirst() {
            if flag == "--until-eof" {
                endsAtEOF = true
                continue
            }
            if flag == "--http2" {
                hasHTTP2 = true
                continue
            }
            if flag == "--proxy" {
                hasProxy = true
                continue
            }
            if flag == "--tls12" {
                tls = tls ?? TLS()
                tls?.isAtMost12 = true
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
            case "--info-file": infoFile = value
            case "--tls":
                guard let certificate = Certificate(rawValue: value) else { return nil }
                tls = tls ?? TLS()
                tls?.certificate = certificate
            case "--client-certificate":
                guard let client = TLS.Client(rawValue: value) else { return nil }
                tls = tls ?? TLS()
                tls?.client = client
            case "--proxy-user": proxyUser = value
            case "--proxy-password": proxyPassword = value
            default: return nil
            }
        }
    }
}

/// Written aside and renamed: whoever sees the file sees all of it.
func write(_ text: String, to path: String) throws {
    guard let file = fopen(path + ".new", "w") else { throw SystemError(call: path) }
    fputs(text, file)
    fclose(file)
    guard rename(path + ".new", path) == 0 else { throw SystemError(call: path) }
}

/// What a test has to know beside the address.
func facts(_ origin: Origin, _ http2: HTTP2Origin?, _ proxy: ProxyOrigin?) -> [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = []
    if let authority = origin.authority {
        facts += [("ca_file", authority.file), ("pin", authority.pin)]
        if origin.asksForCertificates {
            facts += [
                ("client_certificate", authority.client.certificate), ("client_key", authority.client.key),
                ("client_encrypted_key", authority.client.encryptedKey),
                ("client_passphrase", authority.client.passphrase),
                ("stranger_certificate", authority.stranger.certificate), ("stranger_key", authority.stranger.key),
            ]
        }
    }
    if let http2 { facts += [("http2", http2.base), ("http2_ca_file", http2.caFile ?? "")] }
    if let proxy { facts.append(("proxy", proxy.base)) }
    return facts
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
        """
        usage: imgdl-origin [--port N] [--root DIR] [--port-file F] [--info-file F] [--segment N] [--latency MS]
                            [--until-eof] [--tls valid|expired|wrong-host|self-signed] [--tls12]
                            [--client-certificate optional|required]
                            [--http2] [--proxy] [--proxy-user U --proxy-password P]

        """, stderr)
    exit(2)
}

// Blocked before the first thread starts, so that every thread inherits it and sigwait alone sees them.
var endings = sigset_t()
sigemptyset(&endings)
sigaddset(&endings, SIGTERM)
sigaddset(&endings, SIGINT)
pthread_sigmask(SIG_BLOCK, &endings, nil)

do {
    let origin = try Origin(
        port: options.port, tls: options.tls, segmentSize: options.segment, latency: options.latency)
    let proxy =
        options.hasProxy ? try ProxyOrigin(user: options.proxyUser, password: options.proxyPassword) : nil
    if let root = options.root { origin.serve(directory: root) }
    let http2 = options.hasHTTP2 ? try HTTP2Origin() : nil
    http2?.serve(origin.content)
    if let path = options.portFile { try write("\(origin.port)\n", to: path) }
    let facts = facts(origin, http2, proxy)
    if let path = options.infoFile {
        let all = [("base", JSON.text(origin.base)), ("port", .number(origin.port))]
        try write(JSON.object(all + facts.map { ($0.name, .text($0.value)) }).text + "\n", to: path)
    }
    print("listening on \(origin.base)")
    for fact in facts { print("\(fact.name)=\(fact.value)") }
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
    http2?.stop()
    proxy?.stop()
    corigin_wake(wake)
    reader.join()
    exit(0)
} catch {
    complain("\(error)")
    exit(1)
}
