import CCurl
import ImgdlCore

/// libcurl's process-wide state: set up once, before anything else of curl, and never taken down, since the host may
/// use libcurl too.
enum CurlGlobal {
    /// Those that libcurl undoes, as in Accept-Encoding; but for deflate, which servers understand in two ways (RFC 9110
    /// section 8.4.1.2): it is undone where it comes, and not asked for.
    static let contentCodings: String = {
        let features = ccurl_features()
        let codings: [(Int32, [String])] = [
            (CURL_VERSION_LIBZ, ["gzip"]), (CURL_VERSION_BROTLI, ["br"]), (CURL_VERSION_ZSTD, ["zstd"]),
        ]
        let known = codings.flatMap { feature, names in features & feature != 0 ? names : [] }
        return known.isEmpty ? "identity" : known.joined(separator: ", ")
    }()

    static func setUp() throws(Failure) {
        let status = ccurl_global_init()
        guard status == CURLE_OK else {
            throw Failure(.internal, "libcurl does not start: \(String(cString: curl_easy_strerror(status)))")
        }
    }
}
