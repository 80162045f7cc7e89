/// Hosts that are reached without a proxy, as `no_proxy` names them: names, with or without a dot in front, which hold for
/// all that end in them; addresses and networks ("10.0.0.0/8"); "*" for all. Judged here, since versions of curl differ,
/// and since the address of a host that has no proxy is looked up here.
struct ProxyExceptions {
    private enum Entry {
        case all
        case name(String)
        case network([UInt8], bits: Int)
    }

    /// As they were named.
    let text: String
    private let entries: [Entry]

    init(_ text: String) {
        self.text = text
        entries = text.split { $0 == "," || $0.isWhitespace }.compactMap(Self.entry)
    }

    var hasAll: Bool {
        entries.contains { if case .all = $0 { true } else { false } }
    }

    /// The host is in lower case, without brackets.
    func contains(_ host: String) -> Bool {
        guard !entries.isEmpty else { return false }
        let name = Self.withoutDot(host[...])
        let address = AddressGuard.bytes(host)
        return entries.contains { entry in
            switch entry {
            case .all: true
            case .name(let end): address == nil && (name == end || name.hasSuffix("." + end))
            case .network(let network, let bits): address.map { Self.isIn($0, network, bits) } ?? false
            }
        }
    }

    /// nil for one that names nothing.
    private static func entry(_ text: Substring) -> Entry? {
        if text == "*" { return .all }
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let host = parts[0].hasPrefix("[") && parts[0].hasSuffix("]") ? parts[0].dropFirst().dropLast() : parts[0]
        guard let address = AddressGuard.bytes(String(host)) else {
            let name = withoutDot(host.hasPrefix(".") ? host.dropFirst() : host)
            return parts.count > 1 || name.isEmpty ? nil : .name(name)
        }
        guard parts.count > 1 else { return .network(address, bits: 8 * address.count) }
        guard let bits = UInt8(parts[1]), Int(bits) <= 8 * address.count else { return nil }
        return .network(address, bits: Int(bits))
    }

    private static func withoutDot(_ name: Substring) -> String {
        URLText.lowercased(name.hasSuffix(".") ? name.dropLast() : name)
    }

    private static func isIn(_ address: [UInt8], _ network: [UInt8], _ bits: Int) -> Bool {
        guard address.count == network.count else { return false }
        let whole = bits / 8
        guard address[..<whole] == network[..<whole] else { return false }
        let mask = ~(UInt8.max >> UInt8(bits % 8))
        return bits % 8 == 0 || (address[whole] ^ network[whole]) & mask == 0
    }
}
