import CImgdl
import ImgdlCache
import ImgdlCore
import ImgdlTransport

private func cache(_ handle: OpaquePointer?) throws(Failure) -> Cache { try object(handle, .cache) }

/// A C callback for what happens to a cache, with its user_data. The destructor runs when the cache has let go of it.
private final class CallbackCacheEvents: @unchecked Sendable {
    private let callback: (@convention(c) (UnsafePointer<imgdl_cache_event>?, UnsafeMutableRawPointer?) -> Void)?
    private let destructor: imgdl_destructor?
    private let userData: UnsafeMutableRawPointer?

    /// nil for a struct whose fields cannot be found.
    init?(_ config: UnsafePointer<imgdl_cache_config>?) {
        guard let config, imgdl_cache_config.hasFirstFields(config) else { return nil }
        callback = config.pointee.callback
        destructor = config.pointee.destructor
        userData = config.pointee.user_data
    }

    deinit { dispose(destructor, userData) }

    func tell(_ event: CacheEvent) {
        guard let callback else { return }
        event.message.withCString { message in
            let told = imgdl_cache_event(
                struct_size: UInt32(MemoryLayout<imgdl_cache_event>.stride), kind: event.kind.rawValue, message: message
            )
            withUnsafePointer(to: told) { pointer in _ = HostCode.run { callback(pointer, userData) } }
        }
    }
}

@_cdecl("imgdl_cache_config_init") @implementation
public func imgdl_cache_config_init(_ config: UnsafeMutablePointer<imgdl_cache_config>?, _ size: Int) {
    imgdl_cache_config.initialize(config, size)
}

@_cdecl("imgdl_cache_open") @implementation
public func imgdl_cache_open(
    _ config: UnsafePointer<imgdl_cache_config>?, _ cache: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        // Goes with an error, and the destructor runs.
        let events = CallbackCacheEvents(config)
        guard let cache else { throw Failure(.invalidArgument, "cache is NULL") }
        let configuration = try CacheReader(config).configuration
        let opened = try Process.openCache(configuration) { event in events?.tell(event) }
        cache.pointee = HandleTable.shared.insert(opened, .cache)
    }
}

@_cdecl("imgdl_cache_retain") @implementation
public func imgdl_cache_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .cache) }

/// The cache closes with its last user, which may be a downloader.
@_cdecl("imgdl_cache_release") @implementation
public func imgdl_cache_release(_ handle: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(handle, .cache) }
}

// MARK: What is stored

/// What responses for this URL are stored under. Throws `invalidURL`, `unsupportedScheme`.
private func cacheKey(_ url: UnsafePointer<CChar>?) throws(Failure) -> String {
    guard url != nil else { throw Failure(.invalidURL, "the URL is NULL") }
    guard let text = string(url) else { throw Failure(.invalidURL, "the URL is not UTF-8") }
    return try CurlTransport.parse(text).cacheKey
}

@_cdecl("imgdl_cache_entry_init") @implementation
public func imgdl_cache_entry_init(_ entry: UnsafeMutablePointer<imgdl_cache_entry>?, _ size: Int) {
    imgdl_cache_entry.initialize(entry, size)
}

@_cdecl("imgdl_cache_query") @implementation
public func imgdl_cache_query(
    _ handle: OpaquePointer?, _ url: UnsafePointer<CChar>?, _ entry: UnsafeMutablePointer<imgdl_cache_entry>?
) -> imgdl_status {
    call { () throws(Failure) in
        let cache = try cache(handle)
        try imgdl_cache_entry.checkSize(of: entry)
        guard let stored = try cache.query(try cacheKey(url)) else {
            throw Failure(.notCached, "nothing is stored for this URL")
        }
        try entryStruct(stored).write(to: entry)
    }
}

private func entryStruct(_ stored: CachedResponse) -> imgdl_cache_entry {
    let isComplete =
        switch stored.response.extent {
        case .whole, .headAlone: true
        case .beginning, .part: false
        }
    return imgdl_cache_entry(
        struct_size: UInt32(MemoryLayout<imgdl_cache_entry>.stride), status: stored.response.status,
        body_bytes: stored.response.bodyLength, stored_s: stored.storedTime, used_s: stored.usedTime,
        fresh_s: CacheRules.remainingFreshness(of: stored.response, wallTime: MonotonicClock().wallTime()),
        is_complete: isComplete ? 1 : 0, reserved: 0)
}

@_cdecl("imgdl_cache_remove") @implementation
public func imgdl_cache_remove(_ handle: OpaquePointer?, _ url: UnsafePointer<CChar>?) -> imgdl_status {
    call { () throws(Failure) in try cache(handle).removeAndWait(key: try cacheKey(url)) }
}

@_cdecl("imgdl_cache_remove_older") @implementation
public func imgdl_cache_remove_older(_ handle: OpaquePointer?, _ age: Int64) -> imgdl_status {
    call { () throws(Failure) in
        let cache = try cache(handle)
        guard age >= 0 else { throw Failure(.invalidArgument, "age_s is negative") }
        try cache.removeOlder(than: age)
    }
}

@_cdecl("imgdl_cache_clear") @implementation
public func imgdl_cache_clear(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try cache(handle).clear() }
}

@_cdecl("imgdl_cache_flush") @implementation
public func imgdl_cache_flush(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try cache(handle).flush() }
}

// MARK: Statistics

@_cdecl("imgdl_cache_stats_init") @implementation
public func imgdl_cache_stats_init(_ stats: UnsafeMutablePointer<imgdl_cache_stats>?, _ size: Int) {
    imgdl_cache_stats.initialize(stats, size)
}

@_cdecl("imgdl_cache_statistics") @implementation
public func imgdl_cache_statistics(
    _ handle: OpaquePointer?, _ stats: UnsafeMutablePointer<imgdl_cache_stats>?
) -> imgdl_status {
    call { () throws(Failure) in
        let cache = try cache(handle)
        try imgdl_cache_stats.checkSize(of: stats)
        try statsStruct(try cache.statistics()).write(to: stats)
    }
}

private func statsStruct(_ now: CacheStatistics) -> imgdl_cache_stats {
    let count = { (value: Int64) in UInt64(clamping: value) }
    var stats = imgdl_cache_stats()
    stats.is_writable = now.isWritable ? 1 : 0
    stats.entries = count(now.entries)
    stats.bytes = count(now.bytes)
    stats.partial_entries = count(now.partialEntries)
    stats.partial_bytes = count(now.partialBytes)
    stats.memory_entries = count(now.memoryEntries)
    stats.memory_bytes = count(now.memoryBytes)
    stats.image_entries = count(now.imageEntries)
    stats.image_bytes = count(now.imageBytes)
    stats.hits = count(now.hits)
    stats.memory_hits = count(now.memoryHits)
    stats.image_hits = count(now.imageHits)
    stats.validated = count(now.validated)
    stats.stale = count(now.stale)
    stats.misses = count(now.misses)
    stats.resumed = count(now.resumed)
    stats.stored = count(now.stored)
    stats.evicted = count(now.evicted)
    stats.damaged = count(now.damaged)
    stats.not_stored = count(now.notStored)
    stats.unflushed = count(now.unflushed)
    return stats
}
