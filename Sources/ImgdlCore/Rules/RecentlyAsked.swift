/// Values by key, of which those are kept that were asked for last: as many as `half` at least, and twice as many at most.
/// What is asked for stands in the newer half; when that is full it becomes the older one, and what was there goes.
struct RecentlyAsked<Key: Hashable, Value> {
    private let half: Int
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]

    init(half: Int) { self.half = half }

    var count: Int { newer.count + older.count }

    mutating func value(_ key: Key) -> Value? {
        if let value = newer[key] { return value }
        guard let value = older.removeValue(forKey: key) else { return nil }
        insert(value, key)
        return value
    }

    mutating func insert(_ value: Value, _ key: Key) {
        if newer[key] == nil {
            older[key] = nil
            if newer.count >= half {
                older = newer
                newer = [:]
            }
        }
        newer[key] = value
    }

    mutating func removeAll() {
        newer = [:]
        older = [:]
    }
}
