import Glibc
import ImgdlCore

/// What this machine says about names: nsswitch.conf, resolv.conf, its own name, and which families of addresses it has.
/// Read anew when somebody asks and the last time is five seconds ago.
///
/// Threads: one at a time.
final class NameEnvironment {
    struct Paths {
        var switches = "/etc/nsswitch.conf"
        var resolving = "/etc/resolv.conf"
        var hosts = "/etc/hosts"
    }

    private struct Reading {
        var sources: NameSources
        var ownName: String
        var family: Int32
        var expiry: Instant
    }

    private static let lifetime: Int64 = 5_000

    private let now: () -> Instant
    private let paths: Paths
    private var known: Reading?

    init(paths: Paths = Paths(), now: @escaping () -> Instant) {
        self.paths = paths
        self.now = now
    }

    func answerer(of host: String) -> NameSources.Answerer {
        let current = current
        return current.sources.answerer(of: host, ownName: current.ownName)
    }

    /// Which addresses are asked for; AF_UNSPEC for both kinds.
    var family: Int32 { current.family }

    /// The next one that asks has it read anew.
    func forget() { known = nil }

    private var current: Reading {
        let now = now()
        if let known, now < known.expiry { return known }
        let sources = NameSources(
            switches: Self.text(paths.switches), resolving: Self.text(paths.resolving),
            hostsSize: Self.size(paths.hosts))
        let read = Reading(
            sources: sources, ownName: Self.ownName, family: Self.ownFamily,
            expiry: now.advanced(byMilliseconds: Self.lifetime))
        known = read
        return read
    }

    /// As getaddrinfo's AI_ADDRCONFIG: a machine without a family is not told addresses of it, unless it has neither.
    static func family(hasIPv4: Bool, hasIPv6: Bool) -> Int32 {
        hasIPv4 == hasIPv6 ? AF_UNSPEC : hasIPv4 ? AF_INET : AF_INET6
    }

    /// Loopback does not count.
    private static var ownFamily: Int32 {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return AF_UNSPEC }
        defer { freeifaddrs(list) }
        var hasIPv4 = false
        var hasIPv6 = false
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr, let text = AresSockets.text(address) else { continue }
            if Int32(address.pointee.sa_family) == AF_INET {
                hasIPv4 = hasIPv4 || text != "127.0.0.1"
            } else {
                hasIPv6 = hasIPv6 || text != "::1"
            }
        }
        return family(hasIPv4: hasIPv4, hasIPv6: hasIPv6)
    }

    private static var ownName: String {
        var text = [CChar](repeating: 0, count: 256)
        guard gethostname(&text, text.count - 1) == 0 else { return "" }
        return String(cString: text).lowercased()
    }

    /// Empty for a file that is not there, nil for one that is too large, or no file that can be read.
    static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return errno == ENOENT ? "" : nil }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: NameSources.maximumFileSize + 1)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + count, $0.count - count) }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { return nil }
            if more == 0 { return String(decoding: bytes[..<count], as: UTF8.self) }
            count += more
        }
        return nil
    }

    private static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_size : 0
    }
}
