import CImgdl
import Glibc
import ImgdlCache
import ImgdlCore

/// imgdl_cache_config, read. Throws what imgdl_cache_open returns.
struct CacheReader {
    private(set) var configuration = CacheConfiguration()

    /// NULL gives the defaults.
    init(_ source: UnsafePointer<imgdl_cache_config>?) throws(Failure) {
        guard source != nil else { return }
        let config = try imgdl_cache_config.read(source)
        guard config.reserved == 0 else { throw Failure(.unsupportedOption, "imgdl_cache_config.reserved is not 0") }
        configuration.directory = try Self.directory(config.directory)
        let bytes = try Self.size(config.max_bytes, "max_bytes")
        let memoryBytes = try Self.size(config.max_memory_bytes, "max_memory_bytes")
        if bytes > 0 { configuration.maximumBytes = bytes }
        configuration.maximumMemoryBytes = memoryBytes
        configuration.maximumImageBytes = try Self.size(config.max_image_bytes, "max_image_bytes")
        if configuration.directory == nil, memoryBytes == 0 {
            configuration.maximumMemoryBytes = CacheConfiguration.defaultMemoryBytes
        }
        let whole = configuration.directory == nil ? configuration.maximumMemoryBytes : configuration.maximumBytes
        let partialBytes = try Self.size(config.max_partial_bytes, "max_partial_bytes")
        configuration.maximumPartialBytes = partialBytes > 0 ? min(partialBytes, whole) : whole / 8
        guard config.max_age_s >= 0 else { throw Failure(.invalidArgument, "max_age_s is negative") }
        // What is longer than any clock runs means for ever, too.
        let isForEver = CheckedNumber(config.max_age_s).within(1...StoredResponse.times.upperBound) == nil
        configuration.maximumAge = isForEver ? nil : config.max_age_s
    }

    private static func size(_ value: UInt64, _ name: String) throws(Failure) -> Int64 {
        guard let size = Int64(exactly: value) else { throw Failure(.invalidArgument, "\(name) is above INT64_MAX") }
        return size
    }

    /// Absolute: the host may change its working directory while the cache lives.
    private static func directory(_ source: UnsafePointer<CChar>?) throws(Failure) -> String? {
        guard source != nil else { return nil }
        guard let path = string(source), !path.isEmpty else {
            throw Failure(.invalidArgument, "directory is empty or not UTF-8")
        }
        guard !path.hasPrefix("/"), let working = getcwd(nil, 0) else { return path }
        defer { free(working) }
        return "\(String(cString: working))/\(path)"
    }
}

extension StaleLimit {
    /// `milliseconds`: as a request or a config has them.
    init(_ milliseconds: UInt64, otherwise: StaleLimit) {
        switch milliseconds {
        case 0: self = otherwise
        case UInt64.max: self = .none
        case UInt64.max - 1: self = .never
        default: self.init(seconds: Int64(clamping: milliseconds / 1000))
        }
    }
}

extension CacheMode {
    /// IMGDL_CACHE_…; `otherwise` for IMGDL_CACHE_DEFAULT. Throws `invalidArgument`.
    init(_ mode: imgdl_cache_mode, otherwise: CacheMode) throws(Failure) {
        guard mode != UInt32(IMGDL_CACHE_DEFAULT) else {
            self = otherwise
            return
        }
        guard let value = UInt8(exactly: mode), let known = CacheMode(rawValue: value - 1) else {
            throw Failure(.invalidArgument, "\(mode) is no cache mode")
        }
        self = known
    }
}
