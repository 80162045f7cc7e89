/// Where bodies come from, as far as one stands still for the same reason as another: a server, or all that has a scheme other
/// than http and https, which one loader of the host's gives.
struct Source: Hashable, Comparable {
    private let name: String
    private let port: UInt16

    init(_ url: ParsedURL) {
        let isServer = url.scheme == "https" || url.scheme == "http"
        name = isServer ? url.host : "\(url.scheme):"
        port = isServer ? url.port : 0
    }

    static func < (left: Source, right: Source) -> Bool { (left.name, left.port) < (right.name, right.port) }
}
