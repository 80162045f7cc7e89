import CCurl
import ImgdlCore

/// libcurl's process-wide state: set up once, before anything else of curl, and never taken down, since the host may
/// use libcurl too.
package enum CurlGlobal {
    /// Before anything is made that exit() may find at work.
    package static func keepOpenSSL() { ccurl_keep_openssl() }

    package static func setUp() throws(Failure) {
        let status = ccurl_global_init()
        guard status == CURLE_OK else {
            throw Failure(.internal, "libcurl does not start: \(String(cString: curl_easy_strerror(status)))")
        }
    }
}

/// The version of libcurl that runs, which may be newer than the one that this was built with.
enum CurlVersion {
    /// 0x080100 is 8.1.0.
    static let number: UInt32 = curl_version_info(CURLVERSION_FIRST).pointee.version_num

    /// Below 8.1.0 a second response on the same easy handle that begins with a folded line writes into memory that the
    /// first one has freed (curl's pull request 11103): there each transfer has a handle of its own.
    static let canReuseHandles = number >= 0x080100

    /// Below 8.23.0 a stream of HTTP/2 that is refused while it sends a body has a freed handle used (CVE-2026-92392): there
    /// bodies are sent over HTTP/1.1.
    static let canSendBodiesInHTTP2 = number >= 0x081700

    /// From 8.14.0 on CURLE_HTTP2 is for frames that break the rules, and not for a GOAWAY, as in 7.88.1. Those between have
    /// not been looked at.
    static let tellsGoawayApart = number >= 0x080E00

    /// In 7.88.1 a body of HTTP/2 may never end whose stream's buffer is full when its last frame is read, for another stream:
    /// nobody is run for it, or nghttp2 is not called again to say that it has ended. Where one stream reads for others all the
    /// time, these get nothing out for a millisecond: what is read puts their turn off. 8.14.1 has none of this. Those between have
    /// not been looked at.
    static let needsRoomInStreams = number < 0x080E00
}
