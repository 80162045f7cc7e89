import CCurl
import ImgdlCore

/// libcurl's process-wide state: set up once, before anything else of curl, and never taken down, since the host may
/// use libcurl too.
enum CurlGlobal {
    /// Those that libcurl undoes, as in Accept-Encoding; but for deflate, which servers understand in two ways (RFC 9110
    /// section 8.4.1.2): it is undone where it comes, and not asked for.
    static let contentCodings: String = {
        let features = ccurl_features()
        // Text alone: arrays, and what joins their elements, would be types that are put together for this, a fifth of
        // what Swift's runtime does before the first request.
        var codings = ""
        func add(_ coding: String, _ feature: Int32) {
            guard features & feature != 0 else { return }
            codings += codings.isEmpty ? coding : ", \(coding)"
        }
        add("gzip", CURL_VERSION_LIBZ)
        add("br", CURL_VERSION_BROTLI)
        add("zstd", CURL_VERSION_ZSTD)
        return codings.isEmpty ? "identity" : codings
    }()

    static func setUp() throws(Failure) {
        let status = ccurl_global_init()
        guard status == CURLE_OK else {
            throw Failure(.internal, "libcurl does not start: \(String(cString: curl_easy_strerror(status)))")
        }
    }
}
