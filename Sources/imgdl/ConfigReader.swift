import CImgdl
import Glibc
import ImgdlCache
import ImgdlCore
import ImgdlTransport

/// imgdl_config, read. Throws what imgdl_downloader_create returns.
struct ConfigReader {
    private(set) var configuration = DownloaderConfiguration(userAgent: Process.userAgent)
    /// nil: a thread of the downloader's own.
    private(set) var executor: (any Executor)?

    /// NULL gives the defaults.
    init(_ source: UnsafePointer<imgdl_config>?) throws(Failure) {
        guard source != nil else { return }
        let config = try imgdl_config.read(source)
        guard config.reserved == 0, config.reserved2 == 0 else {
            throw Failure(.unsupportedOption, "imgdl_config.reserved or reserved2 is not 0")
        }
        try readLimits(config)
        try readTransport(config)
        try readDefaults(config)
        try readCache(config)
        guard config.decode_threads <= 256 else { throw Failure(.invalidArgument, "decode_threads is above 256") }
        configuration.decodeThreads = Int(config.decode_threads)
        if config.user_agent != nil {
            guard let agent = string(config.user_agent) else {
                throw Failure(.invalidHeader, "user_agent is not UTF-8")
            }
            try HeaderRules.check(HeaderField("User-Agent", agent))
            configuration.userAgent = agent
        }
        executor = try imgdl.executor(config.executor)
    }

    private mutating func readLimits(_ config: imgdl_config) throws(Failure) {
        if config.max_concurrent > 0 {
            configuration.limits.maximumConcurrent = try Self.maximumConcurrent(config.max_concurrent)
        }
        configuration.limits.maximumPerHost = try Self.maximumPerHost(config.max_per_host)
        configuration.limits.order = try Self.order(config.order)
        if config.connect_timeout_ms > 0 { configuration.limits.connectTimeout = Int64(config.connect_timeout_ms) }
        if config.idle_timeout_ms > 0 { configuration.limits.idleTimeout = Int64(config.idle_timeout_ms) }
        guard config.max_redirects <= 100 else { throw Failure(.invalidArgument, "max_redirects is above 100") }
        if config.max_redirects > 0 { configuration.limits.maximumRedirects = Int(config.max_redirects) }
        if config.memory_budget > 0 { configuration.limits.memoryBudget = Int64(clamping: config.memory_budget) }
        configuration.limits.failureLifetime = Int64(config.failure_ttl_ms)
        guard config.progress_interval >= 0, config.progress_interval <= 1 else {
            throw Failure(.invalidArgument, "progress_interval is not between 0 and 1")
        }
        configuration.limits.progressInterval = config.progress_interval
    }

    private mutating func readTransport(_ config: imgdl_config) throws(Failure) {
        let known =
            UInt32(IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES) | UInt32(IMGDL_CONFIG_ALLOW_FILE_URLS)
            | UInt32(IMGDL_CONFIG_ALLOW_DATA_URLS) | UInt32(IMGDL_CONFIG_FINISH_NEARLY_DONE)
            | UInt32(IMGDL_CONFIG_BASIC_OVER_HTTP) | UInt32(IMGDL_CONFIG_REQUIRE_TLS_1_3)
        guard config.flags & ~known == 0 else {
            throw Failure(.unsupportedOption, "imgdl_config.flags has a bit that this version does not know")
        }
        configuration.transport.deniesPrivateAddresses = config.flags & UInt32(IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES) != 0
        configuration.transport.allowsFileURLs = config.flags & UInt32(IMGDL_CONFIG_ALLOW_FILE_URLS) != 0
        configuration.transport.allowsDataURLs = config.flags & UInt32(IMGDL_CONFIG_ALLOW_DATA_URLS) != 0
        configuration.transport.certificateAuthorities = try text(config.ca_file, "ca_file")
        if let file = configuration.transport.certificateAuthorities {
            try TrustFile.checkCertificates(file, option: "ca_file")
        }
        configuration.transport.proxy = try text(config.proxy, "proxy")
        configuration.transport.cookieFile = try text(config.cookie_file, "cookie_file")
        configuration.transport.nameServers = try text(config.dns_servers, "dns_servers")
        configuration.transport.revocationLists = try text(config.crl_file, "crl_file")
        if let file = configuration.transport.revocationLists {
            try TrustFile.checkRevocationLists(file, option: "crl_file")
        }
        configuration.transport.requiresTLS13 = config.flags & UInt32(IMGDL_CONFIG_REQUIRE_TLS_1_3) != 0
        if let prefixes = try text(config.nat64_prefixes, "nat64_prefixes") {
            configuration.transport.translators = try TranslationPrefixes.parse(prefixes)
            guard configuration.transport.deniesPrivateAddresses else {
                throw Failure(.invalidArgument, "nat64_prefixes without DENY_PRIVATE_ADDRESSES would deny nothing")
            }
        }
    }

    private mutating func readDefaults(_ config: imgdl_config) throws(Failure) {
        var tls = try TLSOptions(
            certificate: try text(config.client_certificate, "client_certificate"),
            key: try text(config.client_key, "client_key"), password: config.client_key_password,
            pin: config.pinned_public_key)
        // Each request looks anew; what has not changed is held here for all of them.
        try tls.readFiles()
        if let unusable = tls.unusable { throw Failure(.invalidOperation, unusable) }
        let partition = try partition(config.partition) ?? ""
        configuration.transport.cookiePartition = partition
        configuration.defaults.identity = RequestIdentity(
            trust: RequestTrust(tls: tls, partition: partition),
            credential: try credential(config.user, config.password),
            allowsBasicOverHTTP: config.flags & UInt32(IMGDL_CONFIG_BASIC_OVER_HTTP) != 0, usesCookies: false)
        if config.hooks != nil { configuration.defaults.hooks = try object(config.hooks, .hooks, as: CHooks.self) }
        configuration.defaults.retry.override(
            count: config.retry_count, base: config.retry_base_ms, maximum: config.retry_max_ms)
        configuration.defaults.validation = try Validation(
            statuses: config.accepted_statuses, config.accepted_status_count, types: config.accepted_types,
            config.accepted_type_count)
    }

    private mutating func readCache(_ config: imgdl_config) throws(Failure) {
        if config.cache != nil { configuration.store = try object(config.cache, .cache, as: Cache.self) }
        configuration.defaults.cacheMode = try CacheMode(config.cache_mode, otherwise: .off)
        configuration.defaults.staleLimit = StaleLimit(config.max_stale_ms, otherwise: .none)
        configuration.finishesNearlyDone = config.flags & UInt32(IMGDL_CONFIG_FINISH_NEARLY_DONE) != 0
    }

    static func maximumConcurrent(_ value: UInt32) throws(Failure) -> Int {
        guard (1...UInt32(IMGDL_MAX_CONCURRENT_LIMIT)).contains(value) else {
            throw Failure(.invalidArgument, "max_concurrent is not between 1 and \(IMGDL_MAX_CONCURRENT_LIMIT)")
        }
        return Int(value)
    }

    static func maximumPerHost(_ value: UInt32) throws(Failure) -> Int {
        guard value <= UInt32(IMGDL_MAX_CONCURRENT_LIMIT) else {
            throw Failure(.invalidArgument, "max_per_host is above \(IMGDL_MAX_CONCURRENT_LIMIT)")
        }
        return Int(value)
    }

    static func order(_ value: UInt32) throws(Failure) -> ExecutionOrder {
        guard let order = ExecutionOrder(rawValue: value) else {
            throw Failure(.invalidArgument, "\(value) is no order")
        }
        return order
    }
}
