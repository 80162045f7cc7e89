import Glibc
import ImgdlCore

/// One look-up of a name with the system's resolver; blocks, for seconds if the network is silent.
enum AddressLookup {
    static func getaddrinfo(_ host: String) -> Result<[String], Failure> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        errno = 0
        let status = Thread.resting { Glibc.getaddrinfo(host, nil, &hints, &list) }
        let systemError = errno
        guard status == 0 else {
            let cause =
                status == EAI_SYSTEM ? String(cString: strerror(systemError)) : String(cString: gai_strerror(status))
            return AddressAnswer(host: host, cause: cause, isCertain: false).result
        }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            if let address = numeric(entry.pointee) { addresses.append(address) }
            next = entry.pointee.ai_next
        }
        return AddressAnswer(addresses: addresses, host: host, lifetime: 0).result
    }

    private static func numeric(_ entry: addrinfo) -> String? {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let status = getnameinfo(
            entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        return status == 0 ? String(cString: text) : nil
    }
}
