import CImgdl
import Glibc
import ImgdlCore

/// imgdl_request, read and checked. Throws what imgdl_download returns.
struct RequestReader {
    let url: ParsedURL
    let template: RequestTemplate
    /// Where its callbacks run; nil: as the recipient's.
    let pumped: PumpedExecutor?

    init(_ request: imgdl_request, _ downloader: Downloader) throws(Failure) {
        pumped = Self.hasOwnExecutor(request) ? try object(request.executor, .executor) : nil
        if Self.isPlain(request) {
            (url, template) = try Self.readPlain(request, downloader)
        } else {
            (url, template) = try Self.readWhole(request, downloader, downloader.desk(for: nil))
        }
    }

    private static func readWhole(
        _ request: imgdl_request, _ downloader: Downloader, _ desk: Downloader.Desk
    ) throws(Failure) -> (ParsedURL, RequestTemplate) {
        let defaults = downloader.defaults
        let options = Boxed(wrappedValue: try subscriberOptions(request, defaults))
        let url = try url(request, downloader, desk)
        let template = RequestTemplate(
            options: options, profile: try profile(request, url, downloader, defaults),
            recipient: recipient(request, downloader, options.wrappedValue))
        return (url, template)
    }

    // MARK: Whom it speaks to

    /// One of the host's handles, not NULL or IMGDL_EXECUTOR_INLINE.
    private static func hasOwnExecutor(_ request: imgdl_request) -> Bool { UInt(bitPattern: request.executor) > 1 }

    private static func recipient(
        _ request: imgdl_request, _ downloader: Downloader, _ options: SubscriberOptions
    ) -> Recipient {
        Recipient(
            downloader, executor: UInt(bitPattern: request.executor) == 1 ? InlineExecutor.shared : nil,
            sink: request.callback.map {
                CallbackSink($0, request.destructor, showsFullURLs: options.showsFullURLs)
            })
    }

    // MARK: What many have in common

    /// It points to nothing but its URL: what it asks for stands in its bytes.
    private static func isPlain(_ request: imgdl_request) -> Bool {
        // A member that the header gains is missing here, and this does not compile: whoever adds a pointer compares it.
        _ =
            imgdl_request.init(
                struct_size:priority:flags:event_mask:url:method:headers:header_count:body:body_length:max_body_bytes:
                total_timeout_ms:partial_interval_ms:decode:executor:callback:destructor:user_data:user:password:
                connect_timeout_ms:idle_timeout_ms:retry_count:retry_base_ms:retry_max_ms:reserved:accepted_statuses:
                accepted_status_count:accepted_types:accepted_type_count:ca_file:client_certificate:client_key:
                client_key_password:pinned_public_key:hooks:scale_factor:cache_mode:reserved2:partition:max_stale_ms:)
        return request.method == nil && request.headers == nil && request.header_count == 0 && request.body == nil
            && request.body_length == 0 && request.decode == nil && request.user == nil && request.password == nil
            && request.accepted_statuses == nil && request.accepted_status_count == 0 && request.accepted_types == nil
            && request.accepted_type_count == 0 && request.ca_file == nil && request.client_certificate == nil
            && request.client_key == nil && request.client_key_password == nil && request.pinned_public_key == nil
            && request.hooks == nil && request.partition == nil
    }

    private static func readPlain(
        _ request: imgdl_request, _ downloader: Downloader
    ) throws(Failure) -> (ParsedURL, RequestTemplate) {
        var given = request
        given.url = nil
        given.user_data = nil
        // A template holds no executor of the host's, which ends when the host lets go of it.
        if hasOwnExecutor(request) { given.executor = nil }
        if let bytes = bytes(of: request.url),
            let known = withUnsafeBytes(of: &given, { downloader.known(bytes, $0) })
        {
            return known
        }
        let desk = withUnsafeBytes(of: &given) { downloader.desk(for: $0) }
        if let known = desk.template {
            let url = try url(request, downloader, desk)
            if !url.hasCredential { return (url, known) }
        }
        let (url, template) = try readWhole(request, downloader, desk)
        // What is in the files of a client certificate may be another one's by the next request.
        if !url.hasCredential, downloader.defaults.identity.trust.tls.clientCertificate == nil {
            withUnsafeBytes(of: &given) { downloader.keep(template, for: $0, desk.epoch) }
        }
        return (url, template)
    }

    // MARK: About the subscriber

    private static func subscriberOptions(
        _ request: imgdl_request, _ defaults: RequestDefaults
    ) throws(Failure) -> SubscriberOptions {
        var options = SubscriberOptions()
        options.priority = try checkedPriority(request.priority)
        try checkBits(request)
        options.events = request.callback == nil ? [] : EventMask(rawValue: request.event_mask)
        options.wantsBody = has(request, IMGDL_REQUEST_BODY)
        options.acceptsAnyStatus = has(request, IMGDL_REQUEST_ANY_STATUS)
        options.continuesInBackground = has(request, IMGDL_REQUEST_CONTINUE_IN_BACKGROUND)
        options.retriesFailed = has(request, IMGDL_REQUEST_RETRY_FAILED)
        options.showsFullURLs = has(request, IMGDL_REQUEST_FULL_URLS)
        options.ignoresCached = has(request, IMGDL_REQUEST_IGNORE_CACHED)
        let decode = try DecodeRequest(request.decode)
        options.decode = !options.wantsBody || has(request, IMGDL_REQUEST_DECODE) ? decode.options : nil
        options.salvages = decode.salvages
        if request.max_body_bytes > 0 { options.maximumBodyBytes = Int64(clamping: request.max_body_bytes) }
        options.totalTimeout = Int64(request.total_timeout_ms)
        options.connectTimeout = Int64(request.connect_timeout_ms)
        options.idleTimeout = Int64(request.idle_timeout_ms)
        if request.partial_interval_ms > 0 { options.partialInterval = Int64(request.partial_interval_ms) }
        options.retry = defaults.retry
        options.retry.override(count: request.retry_count, base: request.retry_base_ms, maximum: request.retry_max_ms)
        options.validation = defaults.validation
        let own = try Validation(
            statuses: request.accepted_statuses, request.accepted_status_count, types: request.accepted_types,
            request.accepted_type_count)
        if own.statuses != nil { options.validation.statuses = own.statuses }
        if own.contentTypes != nil { options.validation.contentTypes = own.contentTypes }
        guard request.scale_factor >= 0, request.scale_factor <= 100 else {
            throw Failure(.invalidArgument, "scale_factor is not between 0 and 100")
        }
        options.scaleFactor = request.scale_factor
        return options
    }

    private static func checkBits(_ request: imgdl_request) throws(Failure) {
        guard request.flags & ~(imgdl_request.identityFlags | imgdl_request.otherFlags) == 0 else {
            throw Failure(.unsupportedOption, "imgdl_request.flags has a bit that this version does not know")
        }
        guard request.event_mask & ~EventMask.all.rawValue == 0 else {
            throw Failure(.unsupportedOption, "imgdl_request.event_mask has a bit that this version does not know")
        }
        guard request.reserved == 0, request.reserved2 == 0 else {
            throw Failure(.unsupportedOption, "imgdl_request.reserved or reserved2 is not 0")
        }
    }

    private static func has(_ request: imgdl_request, _ flag: some BinaryInteger) -> Bool {
        request.flags & UInt32(flag) != 0
    }

    // MARK: About the bytes

    private static func url(
        _ request: imgdl_request, _ downloader: Downloader, _ desk: Downloader.Desk
    ) throws(Failure) -> ParsedURL {
        guard let bytes = bytes(of: request.url) else { throw Failure(.invalidURL, "the URL is NULL") }
        return try downloader.parse(bytes, desk)
    }

    private static func bytes(of text: UnsafePointer<CChar>?) -> UnsafeBufferPointer<UInt8>? {
        guard let text else { return nil }
        let count = strlen(text)
        return UnsafeBufferPointer(
            start: UnsafeRawPointer(text).bindMemory(to: UInt8.self, capacity: count), count: count)
    }

    private static func profile(
        _ request: imgdl_request, _ url: ParsedURL, _ downloader: Downloader, _ defaults: RequestDefaults
    ) throws(Failure) -> TransferRequest.Profile {
        var method = "GET"
        if request.method != nil {
            guard let given = string(request.method) else { throw Failure(.invalidHeader, "the method is not UTF-8") }
            try HeaderRules.checkMethod(given)
            method = given
        }
        let body = try checkedCount(request.body_length, request.body, "body")
        let own = try requestFields(request.headers, request.header_count)
        var hooks = defaults.hooks
        if request.hooks != nil { hooks = try object(request.hooks, .hooks, as: CHooks.self) }
        return TransferRequest.Profile(
            method: method, fields: downloader.merge(own), body: body.isEmpty ? nil : Array(body),
            identity: try RequestIdentity(request.identity, url, defaults.identity),
            followsRedirects: !has(request, IMGDL_REQUEST_NO_REDIRECTS),
            allowsDowngrade: has(request, IMGDL_REQUEST_ALLOW_DOWNGRADE),
            cacheMode: try CacheMode(request.cache_mode, otherwise: defaults.cacheMode),
            staleLimit: StaleLimit(request.max_stale_ms, otherwise: defaults.staleLimit), hooks: hooks)
    }
}

/// A request's fields. One that is not to be sent does no harm, whatever its name. Throws as `headerFields`.
func requestFields(
    _ headers: UnsafePointer<imgdl_header>?, _ count: Int
) throws(Failure) -> [(name: String, value: String?)] {
    let fields = try headerFields(headers, count)
    if !fields.isEmpty {
        try HeaderRules.checkRequest(fields.compactMap { field in field.value.map { HeaderField(field.name, $0) } })
    }
    return fields
}

/// An array of imgdl_header, checked; a NULL value stays nil. Throws `invalidArgument`, `invalidHeader`.
func headerFields(
    _ headers: UnsafePointer<imgdl_header>?, _ count: Int
) throws(Failure) -> [(name: String, value: String?)] {
    guard count > 0 else {
        guard count == 0 else { throw Failure(.invalidArgument, "header_count is out of range") }
        return []
    }
    guard let headers, count <= 10_000 else {
        throw Failure(.invalidArgument, "headers is NULL, or more than 10 000")
    }
    var fields: [(name: String, value: String?)] = []
    for header in UnsafeBufferPointer(start: headers, count: count) {
        guard header.name != nil else { throw Failure(.invalidArgument, "the name of a header is NULL") }
        guard let name = string(header.name), header.value == nil || string(header.value) != nil else {
            throw Failure(.invalidHeader, "a header is not UTF-8")
        }
        try HeaderRules.check(HeaderField(name, string(header.value) ?? ""))
        fields.append((name, string(header.value)))
    }
    return fields
}
