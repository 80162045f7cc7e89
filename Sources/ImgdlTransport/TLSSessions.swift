import CCurl
import ImgdlCore

/// The TLS sessions of one lane, which its later connections resume. They are not left to the easy handles, which may
/// serve a single transfer. For one thread.
final class TLSSessions {
    let share: UnsafeMutableRawPointer

    init() throws(Failure) {
        guard let share = ccurl_share_of_tls_sessions() else {
            throw Failure(.outOfMemory, "no memory for TLS sessions")
        }
        self.share = share
    }

    /// No handle has it any more.
    deinit { curl_share_cleanup(share) }
}
