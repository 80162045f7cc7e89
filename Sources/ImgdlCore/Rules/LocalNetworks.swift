/// Local addresses that no registry knows: the machine's own, the networks that it is on, and the translators that stand in
/// them. With IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES they are refused, though their addresses may be public ones: what listens there
/// may take this machine for one of its own.
package struct LocalNetworks: Equatable, Sendable {
    /// The first `length` bits of an address.
    package struct Prefix: Hashable, Sendable {
        package let bytes: [UInt8]
        package let length: Int

        /// nil where the length is not one of such an address.
        package init?(_ bytes: [UInt8], length: Int) {
            guard bytes.count == 4 || bytes.count == 16, (0...8 * bytes.count).contains(length) else { return nil }
            self.bytes = bytes
            self.length = length
        }

        package func contains(_ address: [UInt8]) -> Bool {
            guard address.count == bytes.count else { return false }
            let whole = length / 8
            guard address[..<whole] == bytes[..<whole] else { return false }
            let rest = length % 8
            guard rest > 0 else { return true }
            return (address[whole] ^ bytes[whole]) >> UInt8(8 - rest) == 0
        }
    }

    package var own: [[UInt8]] = []
    /// All of whose addresses are this machine's. A prefix of no bits is every address: then all lead here.
    package var ownNetworks: [Prefix] = []
    /// A prefix of no bits is every address, and says nothing of neighbours.
    package var onLink: [Prefix] = []
    /// Of NAT64, besides 64:ff9b::/96: 32, 40, 48, 56, 64 or 96 bits (RFC 6052 section 2.2).
    package var translators: [Prefix] = []

    package init() {}

    /// The kind of address that nobody may be led to, of bytes in network order; nil for any other.
    package func kindOfPrivate(_ bytes: some Collection<UInt8>) -> String? {
        let bytes = Array(bytes)
        if let kind = AddressRules.kindOfPrivate(bytes) ?? kindOfLocal(bytes) { return kind }
        for carried in AddressRules.carried(by: bytes) + translated(bytes) {
            if let kind = AddressRules.kindOfPrivate(carried) ?? kindOfLocal(carried) { return kind }
        }
        return nil
    }

    /// As ISATAP, NAT64, 6to4, Teredo and mapped addresses do.
    package func carriesIPv4(_ bytes: [UInt8]) -> Bool {
        // "::" and "::1" carry none.
        bytes.dropLast().contains { $0 != 0 } && !(AddressRules.carried(by: bytes) + translated(bytes)).isEmpty
    }

    private func kindOfLocal(_ address: [UInt8]) -> String? {
        if own.contains(address) || ownNetworks.contains(where: { $0.contains(address) }) {
            return "this machine's own"
        }
        return onLink.contains { $0.length > 0 && $0.contains(address) } ? "on a network of this machine" : nil
    }

    /// The IPv4 address behind a prefix passes over the byte from bit 64 on (RFC 6052 section 2.2).
    private func translated(_ address: [UInt8]) -> [[UInt8]] {
        translators.filter { $0.contains(address) }.map { prefix in
            let places = (prefix.length / 8..<16).filter { $0 != 8 || prefix.length == 96 }.prefix(4)
            return places.map { address[$0] }
        }
    }
}
