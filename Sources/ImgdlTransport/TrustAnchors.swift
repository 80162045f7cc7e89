import CCurl
import Glibc
import ImgdlCore

/// Where certificate authorities come from: the configuration, else the environment as the curl program reads it, else
/// the file that libcurl was built with.
struct TrustAnchors: Equatable {
    var file: String?
    /// Nil: libcurl's built-in directory is switched off. With a directory set, libcurl parses the whole file again for
    /// each connection, 16 ms with Debian's bundle; without one it keeps the parsed authorities.
    var directory: String?
    /// There is no file that could be read, so libcurl's own defaults are left as they are.
    var usesBuiltIn = false

    init(
        configured: String?, builtIn: String?, environment: (String) -> String? = ProxyRules.variable,
        isReadable: (String) -> Bool = { access($0, R_OK) == 0 }
    ) {
        if let configured {
            file = configured
            return
        }
        if let bundle = environment("CURL_CA_BUNDLE") {
            file = bundle
            return
        }
        directory = environment("SSL_CERT_DIR")
        file = environment("SSL_CERT_FILE") ?? builtIn
        if file == builtIn, file.map(isReadable) != true {
            file = nil
            usesBuiltIn = directory == nil
        }
    }
}
