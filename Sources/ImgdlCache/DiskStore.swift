import ImgdlCore

final class DiskBody: @unchecked Sendable {}

final class DiskStore: @unchecked Sendable {
    init(
        directory: String, configuration: CacheConfiguration, clock: any Clock, tuning: CacheTuning,
        events: @escaping @Sendable (CacheEvent) -> Void, gone: @escaping @Sendable ([EntryID]) -> Void
    ) throws(Failure) {}
    func find(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice,
        completion: @escaping @Sendable (FoundEntry?) -> Void
    ) { completion(nil) }
    func begin(_ id: EntryID, _ key: String) -> DiskBody? { nil }
    func append(_ slices: [BodySlice], to body: DiskBody) {}
    func finish(_ body: DiskBody, _ response: StoredResponse, slices: [BodySlice]?) {}
    func abandon(_ body: DiskBody) {}
    func update(_ id: EntryID, _ response: StoredResponse) {}
    func use(_ id: EntryID) {}
    func remove(_ id: EntryID) {}
    func remove(key: String) {}
    func query(_ key: String) throws(Failure) -> CachedResponse? { nil }
    func checkMayWait() throws(Failure) {}
    func removeOlder(than time: Int64) throws(Failure) {}
    func clear() throws(Failure) {}
    func flush() throws(Failure) {}
    func addStatistics(_ statistics: inout CacheStatistics) throws(Failure) {}
    func close() {}
}
