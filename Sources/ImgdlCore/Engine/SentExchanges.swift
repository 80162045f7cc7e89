/// Exchanges of one downloader that were sent, by what their answers are stored under: each is told of the others' answers
/// that come while it is on its way. The engine's thread alone.
final class SentExchanges {
    private struct Sent {
        let id: ObjectIdentifier
        unowned let exchange: CacheExchange
    }

    private var exchanges: [String: [Sent]] = [:]

    /// It is removed before it goes.
    func add(_ exchange: CacheExchange) {
        exchanges[exchange.key, default: []].append(Sent(id: ObjectIdentifier(exchange), exchange: exchange))
    }

    /// Also of one that is about to be gone.
    func remove(_ id: ObjectIdentifier, _ key: String) {
        exchanges[key]?.removeAll { $0.id == id }
        if exchanges[key]?.isEmpty == true { exchanges[key] = nil }
    }

    func others(than exchange: CacheExchange) -> [CacheExchange] {
        let id = ObjectIdentifier(exchange)
        return exchanges[exchange.key]?.filter { $0.id != id }.map(\.exchange) ?? []
    }
}
