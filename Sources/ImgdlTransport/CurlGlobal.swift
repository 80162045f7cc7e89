import CCurl
import ImgdlCore

/// libcurl's process-wide state: set up once, before anything else of curl, and never taken down, since the host may
/// use libcurl too.
enum CurlGlobal {
    private static let status = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    static func setUp() throws(Failure) {
        guard status == CURLE_OK else {
            throw Failure(.internal, "libcurl does not start: \(String(cString: curl_easy_strerror(status)))")
        }
    }
}
