import Glibc
import ImgdlCore

/// What the kernel answers when it is asked for its routes (rtnetlink): those that lead to this machine itself, and those
/// that lead to a network without a router between. Every length is held against what is there.
struct RouteMessages {
    enum Step: Equatable {
        case more
        case complete
        /// The routes changed while they were told: some may be missing.
        case interrupted
        /// What has come is no such answer, or too much of it.
        case failed
    }

    /// Of the answer. Far more than any machine has but one that routes for the internet.
    static let maximumBytes = 16 << 20
    /// Of networks that are kept: each address is held against all of them.
    static let maximumNetworks = 4_096

    /// Asks for all of them.
    static func request(sequence: UInt32) -> [UInt8] {
        // struct nlmsghdr, and a struct rtmsg of zeros: any family, any table.
        var bytes = [UInt8](repeating: 0, count: headerBytes + routeBytes)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: UInt32(headerBytes + routeBytes), as: UInt32.self)
            bytes.storeBytes(of: getRoute, toByteOffset: 4, as: UInt16.self)
            bytes.storeBytes(of: isRequest | isDump, toByteOffset: 6, as: UInt16.self)
            bytes.storeBytes(of: sequence, toByteOffset: 8, as: UInt32.self)
        }
        return bytes
    }

    // linux/netlink.h
    private static let headerBytes = 16
    private static let isRequest: UInt16 = 0x1
    private static let isDump: UInt16 = 0x300
    private static let isInterrupted: UInt16 = 0x10
    private static let noMessage: UInt16 = 1
    private static let errorMessage: UInt16 = 2
    private static let done: UInt16 = 3
    // linux/rtnetlink.h
    private static let newRoute: UInt16 = 24
    private static let getRoute: UInt16 = 26
    private static let routeBytes = 12
    private static let attributeBytes = 4
    private static let destination: UInt16 = 1
    private static let table: UInt16 = 15
    /// RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA, RTA_NH_ID: of each there may be a router.
    private static let routers: Set<UInt16> = [5, 9, 18, 30]
    private static let mainTable: UInt32 = 254
    private static let localTable: UInt32 = 255
    private static let linkScope: UInt8 = 253
    private static let isCloned: UInt32 = 0x200

    private enum Kind: UInt8 {
        case unicast = 1
        case local, broadcast, anycast
    }

    private let sequence: UInt32
    private var bytes = 0
    private var wasInterrupted = false
    private(set) var own: Set<LocalNetworks.Prefix> = []
    private(set) var onLink: Set<LocalNetworks.Prefix> = []

    init(sequence: UInt32) { self.sequence = sequence }

    /// One datagram.
    mutating func read(_ datagram: UnsafeRawBufferPointer) -> Step {
        guard datagram.count >= Self.headerBytes, datagram.count <= Self.maximumBytes - bytes else { return .failed }
        bytes += datagram.count
        var rest = datagram[...]
        while !rest.isEmpty {
            let bytes = UnsafeRawBufferPointer(rebasing: rest)
            guard bytes.count >= Self.headerBytes else { return .failed }
            let length = Int(bytes.loadUnaligned(as: UInt32.self))
            guard length >= Self.headerBytes, length <= bytes.count,
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self) == sequence
            else { return .failed }
            if bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self) & Self.isInterrupted != 0 {
                wasInterrupted = true
            }
            let body = UnsafeRawBufferPointer(rebasing: bytes[Self.headerBytes..<length])
            switch bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self) {
            case Self.newRoute: guard readRoute(body) else { return .failed }
            case Self.noMessage: break
            case Self.done:
                // With the number of an error, where the kernel could not tell all.
                if body.count >= 4, body.loadUnaligned(as: Int32.self) != 0 { return .failed }
                return wasInterrupted ? .interrupted : .complete
            // NLMSG_ERROR, and what was not asked for.
            default: return .failed
            }
            rest = rest.dropFirst(Self.aligned(length))
        }
        return .more
    }

    private mutating func readRoute(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= Self.routeBytes else { return false }
        let size: Int
        switch Int32(bytes[0]) {
        case AF_INET: size = 4
        case AF_INET6: size = 16
        default: return true
        }
        var address = [UInt8](repeating: 0, count: size)
        var table = UInt32(bytes[4])
        var hasDestination = false
        var hasRouter = false
        var rest = bytes[Self.routeBytes...]
        while rest.count >= Self.attributeBytes {
            let attribute = UnsafeRawBufferPointer(rebasing: rest)
            let length = Int(attribute.loadUnaligned(as: UInt16.self))
            guard length >= Self.attributeBytes, length <= attribute.count else { return false }
            let value = attribute[Self.attributeBytes..<length]
            // Above are two bits for flags.
            let kind = attribute.loadUnaligned(fromByteOffset: 2, as: UInt16.self) & 0x3FFF
            if kind == Self.destination {
                guard value.count == size else { return false }
                address = Array(value)
                hasDestination = true
            } else if kind == Self.table {
                guard value.count == 4 else { return false }
                table = UnsafeRawBufferPointer(rebasing: value).loadUnaligned(as: UInt32.self)
            } else if Self.routers.contains(kind) {
                hasRouter = true
            }
            rest = rest.dropFirst(Self.aligned(length))
        }
        let length = Int(bytes[1])
        guard let prefix = LocalNetworks.Prefix(address, length: length), hasDestination || length == 0 else {
            return false
        }
        let isClone = bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self) & Self.isCloned != 0
        guard table == Self.mainTable || table == Self.localTable, !isClone else { return true }
        // Routes of IPv6 have no scope.
        let isNear = size == 4 ? bytes[6] >= Self.linkScope : !hasRouter
        switch Kind(rawValue: bytes[7]) {
        case .local, .anycast: own.insert(prefix)
        case .broadcast: onLink.insert(prefix)
        case .unicast: if isNear, Self.isNetwork(prefix) { onLink.insert(prefix) }
        case nil: break
        }
        return own.count + onLink.count <= Self.maximumNetworks
    }

    /// Halves of the internet, and the like, are what is sent through a tunnel, not neighbours.
    private static func isNetwork(_ prefix: LocalNetworks.Prefix) -> Bool {
        prefix.length >= (prefix.bytes.count == 4 ? 8 : 16)
    }

    private static func aligned(_ length: Int) -> Int { (length + 3) & ~3 }
}
