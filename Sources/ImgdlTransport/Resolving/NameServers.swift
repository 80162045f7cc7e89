import Glibc
import ImgdlCore

/// The name servers of a downloader's configuration (`dns_servers`): "192.0.2.1,[2001:db8::1]:5353".
struct NameServers: Equatable, Sendable {
    static let maximumCount = 8

    /// As c-ares reads them.
    let text: String

    /// Throws `invalidArgument` for what is no list of addresses. The bad text itself is not repeated.
    init(_ text: String) throws(Failure) {
        guard !text.isEmpty else {
            throw Failure(.invalidArgument, "dns_servers is empty: without it the system's servers are asked")
        }
        let entries = text.split(separator: ",", omittingEmptySubsequences: false)
        guard entries.count <= Self.maximumCount else {
            throw Failure(.invalidArgument, "dns_servers has more than \(Self.maximumCount) servers")
        }
        var servers: [String] = []
        for (index, entry) in entries.enumerated() {
            guard !Self.mayEndInPort(entry) else {
                throw Failure(
                    .invalidArgument,
                    "dns_servers: number \(index + 1) may end in a port or not: an IPv6 address needs brackets there, such "
                        + "as [2001:db8::1]:5353")
            }
            guard let server = Self.server(entry) else {
                throw Failure(
                    .invalidArgument,
                    "dns_servers: number \(index + 1) is no address with or without a port, such as 192.0.2.1 or "
                        + "[2001:db8::1]:53")
            }
            servers.append(server)
        }
        self.text = servers.joined(separator: ",")
    }

    /// "::1:5353" is an address, and to whoever wrote it perhaps "::1" with a port.
    private static func mayEndInPort(_ entry: Substring) -> Bool {
        guard entry.first(where: { $0 != " " }) != "[", let colon = entry.lastIndex(of: ":") else { return false }
        let front = entry[..<colon].drop { $0 == " " }
        let end = entry[entry.index(after: colon)...]
        return front.contains(":") && AddressGuard.bytes(String(front)) != nil && !end.isEmpty
            && end.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x20 }
    }

    private static func server(_ entry: Substring) -> String? {
        var address = entry
        while address.first == " " { address = address.dropFirst() }
        while address.last == " " { address = address.dropLast() }
        var port = "53"
        if address.first == "[" {
            guard let end = address.firstIndex(of: "]") else { return nil }
            let rest = address[address.index(after: end)...]
            address = address[address.index(after: address.startIndex)..<end]
            guard address.contains(":"), rest.isEmpty || rest.first == ":" else { return nil }
            if rest.first == ":" { port = String(rest.dropFirst()) }
        } else if address.filter({ $0 == ":" }).count == 1, let colon = address.firstIndex(of: ":") {
            port = String(address[address.index(after: colon)...])
            address = address[..<colon]
        }
        guard !port.isEmpty, port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(port),
            number > 0, !address.contains("%"), let bytes = AddressGuard.bytes(String(address))
        else { return nil }
        return bytes.count == 4 ? "\(address):\(number)" : "[\(address)]:\(number)"
    }
}
