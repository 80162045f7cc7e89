import CCurl
import Glibc
import ImgdlCore

/// Keeps private addresses out (IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES). Asked before a name is looked up, with what was
/// found, for each socket that curl opens, and before each request on whatever connection curl has chosen: a name that
/// changes its address in between gains nothing. On the engine's thread.
final class AddressGuard {
    /// Nanoseconds: addresses of interfaces change seldom, and to read them takes some microseconds.
    static let renewalInterval: Int64 = 5_000_000_000

    private let translators: [LocalNetworks.Prefix]
    private let readInterfaces: () -> LocalNetworks?
    private let now: () -> Int64
    private var networks = LocalNetworks()
    private var readAt: Int64?

    /// `translators`: prefixes of NAT64, besides the well-known one.
    init(
        translators: [LocalNetworks.Prefix] = [],
        readInterfaces: @escaping () -> LocalNetworks? = NetworkInterfaces.read,
        now: @escaping () -> Int64 = AddressGuard.monotonicTime
    ) {
        self.translators = translators
        self.readInterfaces = readInterfaces
        self.now = now
        networks.translators = translators
    }

    private static func monotonicTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Known networks stay known where the kernel does not answer; it is asked again the next time.
    private func renewNetworks() {
        let now = now()
        if let readAt, now - readAt < Self.renewalInterval { return }
        guard var read = readInterfaces() else { return }
        read.translators = translators
        networks = read
        readAt = now
    }

    /// Before anything is looked up: literals, and the names that mean this machine. nil: go on.
    func refusal(ofHost host: String) -> Failure? {
        if let bytes = Self.bytes(host) { return refusal(of: bytes, host: host) }
        var name = Substring(host)
        while name.last == "." { name = name.dropLast() }
        guard name == "localhost" || name.hasSuffix(".localhost") else { return nil }
        return failure(host, "loopback")
    }

    /// The public ones of what was found; throws when there is none.
    func publicAddresses(_ addresses: [String], host: String) throws(Failure) -> [String] {
        var refusal: Failure?
        let allowed = addresses.filter { address in
            guard let found = self.refusal(ofAddress: address, host: host) else { return true }
            refusal = refusal ?? found
            return false
        }
        if allowed.isEmpty, let refusal { throw refusal }
        return allowed
    }

    /// An address as text; what is none is refused.
    func refusal(ofAddress address: String, host: String) -> Failure? {
        guard let bytes = Self.bytes(address) else { return failure(host, "unknown") }
        return refusal(of: bytes, host: host)
    }

    func refusal(of bytes: some Collection<UInt8>, host: String) -> Failure? {
        renewNetworks()
        guard let kind = networks.kindOfPrivate(bytes) else {
            // It may be one of this machine's.
            return readAt == nil
                ? Failure(
                    .addressRefused,
                    "the host “\(host)” may be at an address of this machine or its networks, which is not allowed: "
                        + "the system does not say which these are")
                : nil
        }
        return failure(
            host, networks.carriesIPv4(Array(bytes)) ? "\(kind), as an IPv4 address within an IPv6 one" : kind)
    }

    private func failure(_ host: String, _ kind: String) -> Failure {
        Failure(.addressRefused, "the host “\(host)” is at a private address (\(kind)), which is not allowed")
    }

    /// nil for what is no numeric address. A zone is left out.
    static func bytes(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
        let bare = text.prefix { $0 != "%" }
        return inet_pton(AF_INET6, String(bare), &bytes) == 1 ? bytes : nil
    }
}
