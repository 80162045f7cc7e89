import ImgdlCore

/// Decoded images of stored responses, within a byte limit; the one used longest ago goes first.
final class ImageTier: ImageStore, @unchecked Sendable {
    private struct Key: Hashable {
        let id: EntryID
        let options: DecodeOptions
    }

    /// What is stored and has pictures here, or soon will. Whatever goes from the store goes from here, too.
    private struct Source {
        var entry: StoredEntry
        let key: String
        /// The same entry, once it has gone and come again, has another.
        let number: UInt64
        /// When it, or a picture of it, was used, stored or validated last: in seconds since 1970.
        var usedTime: Int64
        var options: Set<DecodeOptions> = []
        /// So many make pictures of it.
        var makers = 0
    }

    /// Those who look for something under a key at this moment.
    private struct Looks {
        var count = 0
        /// How often something under the key has gone meanwhile, or may have.
        var losses: UInt64 = 0
    }

    private let lock = Lock()
    private let maximumBytes: Int64
    /// In seconds; nil: however long it has not been used.
    private let maximumAge: Int64?
    private let clock: any Clock
    private let generation = ProcessGeneration.current
    private var images = RecencyList<Key, DecodedImage>()
    private var sources: [EntryID: Source] = [:]
    /// Their numbers in the order of their last use, where there is a maximum age.
    private var ages = RecencyList<EntryID, EntryID>()
    /// The last that was seen, in seconds since 1970. No use is later.
    private var wallTime: Int64 = .min
    private var keys: [String: [EntryID]] = [:]
    private var looks: [String: Looks] = [:]
    /// What has gone while somebody looks, whatever its key.
    private var goneMeanwhile: Set<EntryID> = []
    private static let maximumGone = 10_000
    /// How often everything has gone, or may have.
    private var losses: UInt64 = 0
    private var lastNumber: UInt64 = 0
    private var isClosed = false

    private let changes: SharedChanges

    init(maximumBytes: Int64, maximumAge: Int64? = nil, clock: any Clock, changes: SharedChanges) {
        self.maximumBytes = maximumBytes
        self.maximumAge = maximumAge
        self.clock = clock
        self.changes = changes
    }

    private var isForked: Bool { generation != ProcessGeneration.current }

    var totals: (count: Int64, bytes: Int64) {
        lock.withLock {
            dropOld()
            return (Int64(images.count), images.totalCost)
        }
    }

    /// Looks, and entries without pictures. For tests.
    var expectedCount: Int {
        lock.withLock { looks.count + sources.values.count { $0.options.isEmpty } }
    }

    func entries(_ key: String) -> [StoredEntry] {
        if isForked { return [] }
        changes.check()
        var entries = lock.withLock {
            dropOld()
            return (keys[key] ?? []).compactMap { sources[$0] }.filter { !$0.options.isEmpty }.map(\.entry)
        }
        // Another program has changed something: what there is now is on the disk.
        guard entries.allSatisfy({ changes.isCurrent($0.mark) }) else { return [] }
        entries.sortNewestFirst()
        return entries
    }

    /// What has not been used for longer than it may.
    private func dropOld() {
        guard let maximumAge else { return }
        let now = now()
        while let id = ages.leastRecent, let used = sources[id]?.usedTime, now - used > maximumAge { drop(id) }
    }

    /// Inside the lock. A clock that ran ahead keeps nothing for longer, and who was used longest ago was used first.
    private func now() -> Int64 {
        let now = clock.wallTime()
        if now < wallTime {
            for (id, source) in sources where source.usedTime > now { sources[id]?.usedTime = now }
        }
        wallTime = now
        return now
    }

    private func noteUse(_ id: EntryID) {
        guard sources[id] != nil else { return }
        sources[id]?.usedTime = now()
        if maximumAge != nil, ages.use(id) == nil { ages.insert(id, id, cost: 0) }
    }

    func image(_ id: EntryID, _ options: DecodeOptions) -> DecodedImage? {
        if isForked { return nil }
        return lock.withLock {
            let image = images.use(Key(id: id, options: options))
            if image != nil { noteUse(id) }
            return image
        }
    }

    func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version? = nil) {
        lock.withLock {
            guard let entry = sources[id]?.entry, known == nil || entry.response.version == known else { return }
            if response.overtakenTime == nil { noteUse(id) }
            set(entry.with(response))
            shrink()
        }
    }

    /// What is known here under the same number says something else.
    private func set(_ entry: StoredEntry) {
        guard let source = sources[entry.id] else { return }
        sources[entry.id]?.entry = entry
        for key in source.options.map({ Key(id: entry.id, options: $0) }) {
            guard let image = images.value(key) else { continue }
            images.setCost(key, Self.cost(of: image, entry.response, source.key))
        }
    }

    /// What was last used before that time.
    func remove(usedBefore time: Int64) {
        lock.withLock {
            _ = now()
            for (id, source) in sources where source.usedTime < time { drop(id) }
        }
    }

    func remove(_ ids: [EntryID]) {
        guard !ids.isEmpty else { return }
        lock.withLock {
            if !looks.isEmpty { goneMeanwhile.formUnion(ids) }
            if goneMeanwhile.count > Self.maximumGone {
                losses += 1
                goneMeanwhile = []
            }
            for id in ids { drop(id) }
        }
    }

    func remove(key: String) {
        lock.withLock {
            looks[key]?.losses += 1
            for id in keys[key] ?? [] { drop(id) }
        }
    }

    /// What a newly stored response takes the place of.
    func remove(replacedBy entry: StoredEntry, key: String, wallTime: Int64) {
        lock.withLock {
            looks[key]?.losses += 1
            for id in keys[key] ?? [] {
                guard id != entry.id, let other = sources[id]?.entry,
                    entry.response.displaces(other.response, wallTime: wallTime)
                else { continue }
                drop(id)
            }
        }
    }

    func removeAll() { empty(closing: false) }

    /// The same, and nothing is kept any more.
    func close() { empty(closing: true) }

    private func empty(closing: Bool) {
        // The last reference to an image may give memory back, which takes its time.
        var old = RecencyList<Key, DecodedImage>()
        lock.withLock {
            losses += 1
            swap(&old, &images)
            sources = [:]
            ages.removeAll()
            keys = [:]
            if closing { isClosed = true }
        }
    }

    private func drop(_ id: EntryID) {
        guard let source = sources.removeValue(forKey: id) else { return }
        ages.remove(id)
        for options in source.options { images.remove(Key(id: id, options: options)) }
        keys[source.key]?.removeAll { $0 == id }
        if keys[source.key]?.isEmpty ?? false { keys[source.key] = nil }
    }

    private func shrink() {
        while images.totalCost > maximumBytes, let oldest = images.removeOldest() {
            sources[oldest.key.id]?.options.remove(oldest.key.options)
            dropIfUnused(oldest.key.id)
        }
    }

    private func dropIfUnused(_ id: EntryID) {
        if let source = sources[id], source.options.isEmpty, source.makers == 0 { drop(id) }
    }

    private static func cost(of image: DecodedImage, _ response: StoredResponse, _ key: String) -> Int64 {
        byteCount(of: image) + StorageCost.memory(response, key: key)
    }

    private static func byteCount(of image: DecodedImage) -> Int64 {
        var bytes = Int64(image.pixels.byteCount)
        for frame in image.frames where frame.pixels !== image.pixels { bytes += Int64(frame.pixels.byteCount) }
        bytes += Int64(image.colour.profile?.bytes.count ?? 0)
        return bytes
    }
}

// MARK: - Pictures that are being made

extension ImageTier {
    func expect(_ key: String) -> any ExpectedImages {
        let expected = Expected(self, key)
        lock.withLock { beginLook(expected) }
        return expected
    }

    /// Guarded by the tier's lock, but for what never changes.
    private final class Expected: ExpectedImages, @unchecked Sendable {
        enum State {
            case looking(losses: UInt64, lossesOfKey: UInt64)
            case of(EntryID, number: UInt64)
            /// Nothing is kept: what they are of has gone.
            case none
        }

        let tier: ImageTier
        let key: String
        var state = State.none

        init(_ tier: ImageTier, _ key: String) {
            self.tier = tier
            self.key = key
        }

        deinit { tier.end(&state, key) }

        func areOf(found entry: StoredEntry) { tier.found(entry, self) }
        func areOf(new entry: StoredEntry) { tier.stores(entry, self) }
        func keep(_ image: DecodedImage, _ options: DecodeOptions) { tier.keep(image, options, self) }
    }

    private func beginLook(_ expected: Expected) {
        looks[expected.key, default: Looks()].count += 1
        expected.state = .looking(losses: losses, lossesOfKey: looks[expected.key]?.losses ?? 0)
    }

    private func end(_ state: inout Expected.State, _ key: String) {
        if isForked { return }
        lock.withLock { leave(&state, key) }
    }

    private func leave(_ state: inout Expected.State, _ key: String) {
        switch state {
        case .looking:
            looks[key]?.count -= 1
            if looks[key]?.count == 0 { looks[key] = nil }
            if looks.isEmpty { goneMeanwhile = [] }
        case .of(let id, let number):
            guard sources[id]?.number == number else { break }
            sources[id]?.makers -= 1
            dropIfUnused(id)
        case .none: break
        }
        state = .none
    }

    private func found(_ entry: StoredEntry, _ expected: Expected) {
        if isForked { return }
        lock.withLock {
            var isThere = false
            if case .looking(losses, let lossesOfKey) = expected.state {
                isThere = looks[expected.key]?.losses == lossesOfKey && !goneMeanwhile.contains(entry.id)
            }
            leave(&expected.state, expected.key)
            if isThere { enter(entry, expected) }
        }
    }

    private func stores(_ entry: StoredEntry, _ expected: Expected) {
        if isForked { return }
        lock.withLock {
            leave(&expected.state, expected.key)
            enter(entry, expected)
        }
    }

    /// Before it can be seen that it has gone: whatever takes it away from now on takes it from here.
    private func enter(_ entry: StoredEntry, _ expected: Expected) {
        guard !isClosed, changes.isCurrent(entry.mark) else { return }
        dropOld()
        let key = expected.key
        // Others have changed something: what there is now is another entry, or has another mark.
        for id in keys[key] ?? [] { if let other = sources[id]?.entry, !changes.isCurrent(other.mark) { drop(id) } }
        if sources[entry.id] == nil {
            if let ids = keys[key], ids.count >= StoredResponse.maximumVariants { drop(ids[0]) }
            lastNumber += 1
            sources[entry.id] = Source(entry: entry, key: key, number: lastNumber, usedTime: 0)
            keys[key, default: []].append(entry.id)
        } else if let known = sources[entry.id]?.entry, entry.isNewer(than: known) {
            set(entry)
        }
        noteUse(entry.id)
        sources[entry.id]?.makers += 1
        expected.state = .of(entry.id, number: sources[entry.id]?.number ?? 0)
    }

    /// Images in the host's memory are not kept: the host may want it back.
    private func keep(_ image: DecodedImage, _ options: DecodeOptions, _ expected: Expected) {
        guard !isForked, !image.pixels.isHosts, image.isComplete else { return }
        lock.withLock {
            guard case .of(let id, let number) = expected.state, let source = sources[id], source.number == number,
                changes.isCurrent(source.entry.mark)
            else { return }
            let bytes = Self.cost(of: image, source.entry.response, source.key)
            guard bytes <= maximumBytes else { return }
            sources[id]?.options.insert(options)
            images.insert(Key(id: id, options: options), image, cost: bytes)
            shrink()
        }
    }
}
