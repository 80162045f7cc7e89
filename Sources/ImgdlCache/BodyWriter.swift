import ImgdlCore

/// One body on its way into the memory tier and to the disk. The slices that come are shared: the memory tier keeps
/// them, the disk's queue until they are written.
final class BodyWriter: StoreWriter, @unchecked Sendable {
    private let cache: Cache
    private let key: String
    let id: EntryID
    let mark: ChangeMark
    private let body: DiskBody?
    private let requestMark: RequestMark
    /// nil: too long for the memory tier.
    private var kept: [BodySlice]?
    private var length: Int64 = 0
    private var hasEnded = false
    /// Set as it ends, where the disk had no room for it from the beginning or there is none.
    private var hasBeenLost = false

    init(_ cache: Cache, key: String, id: EntryID, _ mark: ChangeMark, body: DiskBody?, since requestMark: RequestMark)
    {
        self.cache = cache
        self.key = key
        self.id = id
        self.mark = mark
        self.body = body
        self.requestMark = requestMark
        kept = []
    }

    deinit { if !hasEnded { abandon() } }

    func append(_ slices: [BodySlice]) {
        if cache.isForked || hasEnded { return }
        for slice in slices { length += Int64(slice.count) }
        if kept != nil {
            if length <= cache.memory.maximumEntryBytes { kept?.append(joining: slices) } else { kept = nil }
        }
        if let body { cache.disk?.append(slices, to: body) }
    }

    @discardableResult
    func finish(_ response: StoredResponse) -> Bool { end(response) }

    var isLost: Bool { body.map { cache.disk?.isLost($0) ?? false } ?? hasBeenLost }

    func keep(_ response: StoredResponse) {
        if length > cache.configuration.maximumPartialBytes { abandon() } else { _ = end(response) }
    }

    func abandon() {
        guard !hasEnded, !cache.isForked else { return }
        hasEnded = true
        kept = nil
        if let body { cache.disk?.abandon(body) }
    }

    private func end(_ response: StoredResponse) -> Bool {
        guard !hasEnded, !cache.isForked else { return false }
        hasEnded = true
        var response = response
        response.bodyLength = length
        defer { kept = nil }
        let storing = cache.stored(
            StoredEntry(id: id, response: response, mark: mark), key: key, slices: kept, body: body,
            since: requestMark.removals)
        hasBeenLost = storing == .isLost
        return storing != .isRefused
    }
}
