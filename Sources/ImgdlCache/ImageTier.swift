import ImgdlCore

/// Decoded images of stored responses, within a byte limit; the one used longest ago goes first.
final class ImageTier: ImageStore, @unchecked Sendable {
    private struct Key: Hashable {
        let id: EntryID
        let options: DecodeOptions
    }

    private struct Source {
        var entry: StoredEntry
        let key: String
        var options: Set<DecodeOptions>
    }

    private let lock = Lock()
    private let maximumBytes: Int64
    private let generation = ProcessGeneration.current
    private var images = RecencyList<Key, DecodedImage>()
    private var sources: [EntryID: Source] = [:]
    private var keys: [String: [EntryID]] = [:]

    private let changes: SharedChanges

    init(maximumBytes: Int64, changes: SharedChanges) {
        self.maximumBytes = maximumBytes
        self.changes = changes
    }

    private var isForked: Bool { generation != ProcessGeneration.current }

    var totals: (count: Int64, bytes: Int64) { lock.withLock { (Int64(images.count), images.totalCost) } }

    func entries(_ key: String) -> [StoredEntry] {
        if isForked { return [] }
        changes.check()
        var entries = lock.withLock { (keys[key] ?? []).compactMap { sources[$0]?.entry } }
        // Another program has changed something: what there is now is on the disk.
        guard entries.allSatisfy({ changes.isCurrent($0.mark) }) else { return [] }
        entries.sortNewestFirst()
        return entries
    }

    func image(_ id: EntryID, _ options: DecodeOptions) -> DecodedImage? {
        if isForked { return nil }
        return lock.withLock { images.use(Key(id: id, options: options)) }
    }

    /// Images in the host's memory are not kept: the host may want it back.
    func keep(
        _ image: DecodedImage, _ options: DecodeOptions, of entry: StoredEntry, key: String, since mark: RemovalMark?
    ) {
        let bytes = Self.cost(of: image, entry.response, key)
        guard !isForked, bytes <= maximumBytes, !image.pixels.isHosts, image.isComplete else { return }
        lock.withLock {
            if let mark, changes.isOvertaken(mark) { return }
            for id in keys[key] ?? [] {
                if id != entry.id, let older = sources[id]?.entry, entry.response.replaces(older.response) { drop(id) }
            }
            if sources[entry.id] == nil {
                if let ids = keys[key], ids.count >= StoredResponse.maximumVariants { drop(ids[0]) }
                sources[entry.id] = Source(entry: entry, key: key, options: [])
                keys[key, default: []].append(entry.id)
            }
            sources[entry.id]?.entry = entry
            sources[entry.id]?.options.insert(options)
            images.insert(Key(id: entry.id, options: options), image, cost: bytes)
            shrink()
        }
    }

    func update(_ id: EntryID, _ response: StoredResponse) {
        lock.withLock {
            guard let source = sources[id] else { return }
            sources[id]?.entry = source.entry.with(response)
            for key in source.options.map({ Key(id: id, options: $0) }) {
                guard let image = images.value(key) else { continue }
                images.setCost(key, Self.cost(of: image, response, source.key))
            }
            shrink()
        }
    }

    func remove(_ ids: [EntryID]) {
        guard !ids.isEmpty else { return }
        lock.withLock { for id in ids { drop(id) } }
    }

    func remove(key: String) {
        lock.withLock { for id in keys[key] ?? [] { drop(id) } }
    }

    /// What a newly stored response takes the place of.
    func remove(replacedBy entry: StoredEntry, key: String) {
        lock.withLock {
            for id in keys[key] ?? [] {
                if id != entry.id, let older = sources[id]?.entry, entry.response.replaces(older.response) { drop(id) }
            }
        }
    }

    func removeAll() {
        // The last reference to an image may give memory back, which takes its time.
        var old = RecencyList<Key, DecodedImage>()
        lock.withLock {
            swap(&old, &images)
            sources = [:]
            keys = [:]
        }
    }

    private func drop(_ id: EntryID) {
        guard let source = sources.removeValue(forKey: id) else { return }
        for options in source.options { images.remove(Key(id: id, options: options)) }
        keys[source.key]?.removeAll { $0 == id }
        if keys[source.key]?.isEmpty ?? false { keys[source.key] = nil }
    }

    private func shrink() {
        while images.totalCost > maximumBytes, let oldest = images.removeOldest() {
            sources[oldest.key.id]?.options.remove(oldest.key.options)
            if sources[oldest.key.id]?.options.isEmpty ?? false { drop(oldest.key.id) }
        }
    }

    private static func cost(of image: DecodedImage, _ response: StoredResponse, _ key: String) -> Int64 {
        byteCount(of: image) + StorageCost.memory(response, key: key)
    }

    private static func byteCount(of image: DecodedImage) -> Int64 {
        var bytes = Int64(image.pixels.byteCount)
        for frame in image.frames where frame.pixels !== image.pixels { bytes += Int64(frame.pixels.byteCount) }
        return bytes
    }
}
