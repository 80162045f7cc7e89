/// Which addresses are not of the public internet: what IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES refuses, so that nobody who
/// chooses a URL can reach what only this machine or its network can (issue 3 "Security").
///
/// After the special-purpose registries of IANA (RFC 6890). An IPv6 address that carries an IPv4 one is what that is.
package enum AddressRules {
    /// What kind of address the bytes are, in network order; nil for a public one. Neither 4 nor 16 bytes: unknown, and
    /// so not public.
    package static func kindOfPrivate(_ bytes: some Collection<UInt8>) -> String? {
        let bytes = Array(bytes)
        switch bytes.count {
        case 4: return kindOfPrivateIPv4(bytes)
        case 16: return kindOfPrivateIPv6(bytes)
        default: return "unknown"
        }
    }

    private static func kindOfPrivateIPv4(_ bytes: [UInt8]) -> String? {
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _): return "unspecified"
        case (10, _, _), (172, 16...31, _), (192, 168, _): return "private"
        case (100, 64...127, _): return "shared"
        case (127, _, _): return "loopback"
        case (169, 254, _): return "link-local"
        case (192, 0, 0): return "protocol"
        case (192, 0, 2), (198, 51, 100), (203, 0, 113): return "documentation"
        case (192, 88, 99): return "relay"
        case (198, 18...19, _): return "benchmark"
        case (224...239, _, _): return "multicast"
        case (255, 255, 255) where bytes[3] == 255: return "broadcast"
        case (240...255, _, _): return "reserved"
        default: return nil
        }
    }

    /// IPv4 addresses that an IPv6 one carries, whatever they are. An address can have several forms at once: a 6to4 one
    /// whose interface is called as ISATAP calls it carries two.
    package static func carried(by bytes: [UInt8]) -> [[UInt8]] {
        guard bytes.count == 16 else { return [] }
        return carriedByPrefix(of: bytes) + (isISATAP(bytes) ? [Array(bytes[12...])] : [])
    }

    /// As the first bits of the address say: it is an IPv4 address, and nothing else.
    private static func carriedByPrefix(of bytes: [UInt8]) -> [[UInt8]] {
        func part(_ start: Int) -> [UInt8] { Array(bytes[start..<start + 4]) }
        let zeros = bytes.prefix { $0 == 0 }.count
        // IPv4-compatible, IPv4-mapped, and IPv4-translated (RFC 2765).
        if zeros >= 12 { return [part(12)] }
        if zeros == 10, bytes[10] == 0xFF, bytes[11] == 0xFF { return [part(12)] }
        if zeros == 8, bytes[8..<12] == [0xFF, 0xFF, 0, 0] { return [part(12)] }
        // NAT64.
        if bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) { return [part(12)] }
        // 6to4, and Teredo with its server and its client.
        if bytes.starts(with: [0x20, 0x02]) { return [part(2)] }
        if bytes.starts(with: [0x20, 0x01, 0, 0]) { return [part(4), part(12).map { ~$0 }] }
        return []
    }

    /// RFC 5214 section 6.1: behind any prefix.
    private static func isISATAP(_ bytes: [UInt8]) -> Bool {
        (bytes[8] == 0 || bytes[8] == 2) && bytes[9..<12] == [0, 0x5E, 0xFE]
    }

    /// What IANA's registry calls globally reachable within 2001::/23: three anycast addresses, AMT, AS112, ORCHIDv2 and
    /// the identifiers of drones.
    private static func isAssignedProtocol(_ bytes: [UInt8]) -> Bool {
        guard bytes[2] == 0 else { return false }
        switch bytes[3] {
        case 0x01: return bytes[4..<15].allSatisfy { $0 == 0 } && (1...3).contains(bytes[15])
        case 0x03: return true
        case 0x04: return bytes[4] == 0x01 && bytes[5] == 0x12
        case 0x20...0x3F: return true
        default: return false
        }
    }

    private static func kindOfPrivateIPv6(_ bytes: [UInt8]) -> String? {
        func begins(_ prefix: UInt8...) -> Bool { bytes.starts(with: prefix) }
        let zeros = bytes.prefix { $0 == 0 }.count
        if zeros == 16 { return "unspecified" }
        if zeros == 15, bytes[15] == 1 { return "loopback" }
        for address in carried(by: bytes) {
            if let kind = kindOfPrivateIPv4(address) { return kind }
        }
        if !carriedByPrefix(of: bytes).isEmpty { return nil }
        // The prefix of NAT64 for local use (RFC 8215) can hold the IPv4 address at any place.
        if begins(0, 0x64, 0xFF, 0x9B, 0, 1) { return "local translation" }
        if begins(0x01, 0, 0, 0, 0, 0, 0, 0) { return "discard" }
        if begins(0x20, 0x01, 0, 0x02, 0, 0) { return "benchmark" }
        // IETF's protocol assignments (2001::/23): what has not been assigned is nobody's, and some of it no address at all.
        if begins(0x20, 0x01), bytes[2] < 0x02, !isAssignedProtocol(bytes) { return "protocol" }
        if begins(0x20, 0x01, 0x0D, 0xB8) || (begins(0x3F, 0xFF) && bytes[2] < 0x10) { return "documentation" }
        switch (bytes[0], bytes[1]) {
        case (0xFC...0xFD, _): return "unique-local"
        case (0xFE, 0x80...0xBF): return "link-local"
        case (0xFE, 0xC0...0xFF): return "site-local"
        case (0xFF, _): return "multicast"
        // What is routed today is in 2000::/3.
        case (0x20...0x3F, _): return nil
        default: return bytes.starts(with: [0, 0x64, 0xFF, 0x9B]) ? "local translation" : "reserved"
        }
    }
}
