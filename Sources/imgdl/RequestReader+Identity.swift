import CImgdl
import ImgdlCore
import ImgdlTransport

/// Bytes of a partition's name.
private let maximumPartitionBytes = 256

extension imgdl_request {
    /// Flags that belong to the security context.
    static let identityFlags =
        UInt32(IMGDL_REQUEST_COOKIES) | UInt32(IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES)
        | UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP)
    /// Flags that do not.
    static let otherFlags =
        UInt32(IMGDL_REQUEST_BODY) | UInt32(IMGDL_REQUEST_ANY_STATUS) | UInt32(IMGDL_REQUEST_NO_REDIRECTS)
        | UInt32(IMGDL_REQUEST_ALLOW_DOWNGRADE) | UInt32(IMGDL_REQUEST_CONTINUE_IN_BACKGROUND)
        | UInt32(IMGDL_REQUEST_RETRY_FAILED) | UInt32(IMGDL_REQUEST_FULL_URLS) | UInt32(IMGDL_REQUEST_IGNORE_CACHED)
        | UInt32(IMGDL_REQUEST_DECODE)

    /// What of it belongs to the security context, besides URL, header fields and body, which belong to it whole; the
    /// rest is as in a request that says nothing. A member that the header gains is missing here, and this does not
    /// compile: whoever adds it says on which side it stands.
    var identity: imgdl_request {
        imgdl_request(
            struct_size: struct_size, priority: 0, flags: flags & Self.identityFlags, event_mask: 0, url: nil,
            method: nil,
            headers: nil, header_count: 0, body: nil, body_length: 0, max_body_bytes: 0, total_timeout_ms: 0,
            partial_interval_ms: 0, decode: nil, executor: nil, callback: nil, destructor: nil, user_data: nil,
            user: user, password: password, connect_timeout_ms: 0, idle_timeout_ms: 0, retry_count: 0, retry_base_ms: 0,
            retry_max_ms: 0, reserved: 0, accepted_statuses: nil, accepted_status_count: 0, accepted_types: nil,
            accepted_type_count: 0, ca_file: ca_file, client_certificate: client_certificate, client_key: client_key,
            client_key_password: client_key_password, pinned_public_key: pinned_public_key,
            // They are asked about what is sent: their answers belong to it.
            hooks: nil, scale_factor: 0, cache_mode: 0, reserved2: 0, partition: partition,
            max_stale_ms: 0)
    }
}

extension RequestIdentity {
    /// `request`: its `identity` alone. What it does not say is the downloader's.
    init(_ request: imgdl_request, _ url: ParsedURL, _ defaults: RequestIdentity) throws(Failure) {
        self.init(
            trust: RequestTrust(
                tls: try TLSOptions(request, defaults.trust.tls),
                partition: try imgdl.partition(request.partition) ?? defaults.trust.partition),
            credential: try imgdl.credential(request.user, request.password) ?? url.credential ?? defaults.credential,
            allowsBasicOverHTTP: defaults.allowsBasicOverHTTP
                || request.flags & UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP) != 0,
            usesCookies: request.flags & UInt32(IMGDL_REQUEST_COOKIES) != 0)
    }
}

/// nil for NULL.
func partition(_ source: UnsafePointer<CChar>?) throws(Failure) -> String? {
    guard let name = try text(source, "partition") else { return nil }
    guard name.utf8.count <= maximumPartitionBytes else {
        throw Failure(.invalidArgument, "partition is longer than \(maximumPartitionBytes) bytes")
    }
    return name
}

extension TLSOptions {
    /// Each of the request's own in place of the downloader's; a client certificate and its key are one.
    fileprivate init(_ request: imgdl_request, _ defaults: TLSOptions) throws(Failure) {
        let own = try TLSOptions(
            certificate: try text(request.client_certificate, "client_certificate"),
            key: try text(request.client_key, "client_key"), password: request.client_key_password,
            pin: request.pinned_public_key)
        self = defaults
        if let file = try text(request.ca_file, "ca_file") {
            certificateAuthorities = file
        }
        if let certificate = own.clientCertificate {
            clientCertificate = certificate
            clientKey = own.clientKey
            clientKeyPassword = own.clientKeyPassword
        }
        if let pin = own.pinnedPublicKey { pinnedPublicKey = pin }
        try readFiles()
        allowsInvalidCertificates = request.flags & UInt32(IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES) != 0
    }
}
