import ImgdlCore

/// A content coding that is undone here, whatever libcurl knows (RFC 9110 section 8.4.1).
enum ContentCoding: Equatable {
    case gzip
    case deflate
    case brotli
    case zstd

    /// As in Accept-Encoding; but for deflate, which servers understand in two ways (RFC 9110 section 8.4.1.2): it is
    /// undone where it comes, and not asked for.
    static func accepted(usesBrotli: Bool = BrotliStream.isMended) -> String {
        usesBrotli ? "gzip, br, zstd" : "gzip, zstd"
    }
    /// Each is a decoder with a window of its own.
    static let maximumLayers = 5

    init?(_ name: String) {
        if equalIgnoringCase(name, "gzip") || equalIgnoringCase(name, "x-gzip") {
            self = .gzip
        } else if equalIgnoringCase(name, "deflate") {
            self = .deflate
        } else if equalIgnoringCase(name, "br") {
            self = .brotli
        } else if equalIgnoringCase(name, "zstd") {
            self = .zstd
        } else {
            return nil
        }
    }

    var name: String {
        switch self {
        case .gzip: "gzip"
        case .deflate: "deflate"
        case .brotli: "br"
        case .zstd: "zstd"
        }
    }
}
