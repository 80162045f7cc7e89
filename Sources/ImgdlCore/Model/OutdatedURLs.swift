import Synchronization

/// Since when what there was of a URL is outdated: it has been removed from the cache, or a method has changed it at its server
/// (RFC 9111 section 4.4), or somebody else answers for all URLs of its scheme, which outdates them for all downloaders of a
/// cache. A moment is how often that had been said by then. By hashes: a URL that shares both of its places
/// with others is outdated with them, which costs a request that could have shared a transfer.
///
/// Threads: any. No other lock is taken inside its own.
package final class OutdatedURLs: @unchecked Sendable {
    private static let placeCount = 1_024

    private let lock = Lock()
    private let said = Atomic<UInt64>(0)
    /// Two places for each URL, guarded by the lock, as the next; none before the first.
    private var moments: [UInt64] = []
    private var momentOfAll: UInt64 = 0

    package init() {}

    /// The moment of now: only what is said later outdates what is asked for from here on.
    package var moment: UInt64 { said.load(ordering: .acquiring) }

    /// Once nothing of before is found any more.
    package func insert(_ key: String) {
        say { moment in
            if moments.isEmpty { moments = Array(repeating: 0, count: 2 * Self.placeCount) }
            let (first, second) = Self.places(key)
            moments[first] = moment
            moments[second] = moment
        }
    }

    package func insertAll() { say { momentOfAll = $0 } }

    private func say(_ body: (UInt64) -> Void) {
        lock.withLock {
            let moment = moment + 1
            body(moment)
            said.store(moment, ordering: .releasing)
        }
    }

    /// Whether what was asked for at that moment is outdated.
    package func contains(_ key: String, since moment: UInt64) -> Bool {
        guard self.moment > moment else { return false }
        return lock.withLock {
            if momentOfAll > moment { return true }
            guard !moments.isEmpty else { return false }
            let (first, second) = Self.places(key)
            return min(moments[first], moments[second]) > moment
        }
    }

    private static func places(_ key: String) -> (first: Int, second: Int) {
        let hash = UInt(bitPattern: key.hashValue)
        let count = UInt(placeCount)
        return (Int(hash % count), placeCount + Int(hash / count % count))
    }
}
