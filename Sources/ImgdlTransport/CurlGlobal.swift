import CCurl
import ImgdlCore

/// libcurl's process-wide state: set up once, before anything else of curl, and never taken down, since the host may
/// use libcurl too.
enum CurlGlobal {
    static func setUp() throws(Failure) {
        let status = ccurl_global_init()
        guard status == CURLE_OK else {
            throw Failure(.internal, "libcurl does not start: \(String(cString: curl_easy_strerror(status)))")
        }
    }
}
