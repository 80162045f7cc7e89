import Glibc
import ImgdlCore

/// The addresses of this machine, and the networks that they are on or that routes lead to without a router between, as the
/// kernel has them now.
enum NetworkInterfaces {
    /// nil when the kernel does not say, for want of memory or descriptors.
    static func read() -> LocalNetworks? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard let routes = NetworkRoutes.read(), getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var networks = LocalNetworks()
        networks.ownNetworks = Array(routes.own)
        var onLink = routes.onLink
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let address = bytes(entry.ifa_addr) else { continue }
            if !networks.own.contains(address) { networks.own.append(address) }
            guard let mask = bytes(entry.ifa_netmask), mask.count == address.count else { continue }
            // The other end of a point-to-point link has the network, or the address for all of them.
            for end in [address, bytes(entry.ifa_ifu.ifu_dstaddr)].compactMap({ $0 }) where end.count == mask.count {
                if let prefix = LocalNetworks.Prefix(end, length: length(of: mask)) { onLink.insert(prefix) }
            }
        }
        networks.onLink = Array(onLink)
        return networks
    }

    private static func length(of mask: [UInt8]) -> Int {
        let whole = mask.prefix { $0 == 0xFF }.count
        return 8 * whole + (whole < mask.count ? (~mask[whole]).leadingZeroBitCount : 0)
    }

    /// In network order; nil for what is no address of the internet.
    private static func bytes(_ address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET: return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
        case AF_INET6: return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
        default: return nil
        }
    }
}
