/// Which schemes a URL may have beside http and https.
struct URLSchemes {
    var allowsFiles = false
    var allowsData = false
    /// Whether the host has a loader for it.
    var isRegistered: (String) -> Bool = { _ in false }

    static var web: URLSchemes { URLSchemes() }

    func allows(_ scheme: String) -> Bool {
        switch scheme {
        case "http", "https": true
        case "file" where allowsFiles: true
        case "data" where allowsData: true
        default: isRegistered(scheme)
        }
    }
}
