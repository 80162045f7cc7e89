/// How long the URL and header of a request may be together, over HTTP.
package enum RequestLength {
    /// libcurl writes them into a buffer of 1 MiB, with what it adds itself: Host, credentials, cookies, conditions. Of more it
    /// says what it says of a header that a server sent.
    package static let most = 1_000_000
    /// A cache adds conditions with what a server has sent: these are not the caller's to answer for, and there is room for them.
    package static let mostConditions = 2 * EntityTag.mostBytes

    package static func refusal(of request: TransportRequest) -> Failure? {
        let url = request.url.withUTF8 { $0.count }
        var (header, conditions) = (0, 0)
        for field in request.fields {
            let length = field.name.utf8.count + field.value.utf8.count
            header += length
            if isOfCache(field.name) { conditions += length }
        }
        // In base64.
        if let credential = request.credential {
            header += (credential.user.utf8.count + credential.password.utf8.count) / 3 * 4
        }
        guard url + header - min(conditions, mostConditions) > most else { return nil }
        return Failure(
            url > header ? .invalidURL : .invalidHeader,
            "the request's URL has \(url) bytes and its header \(header), and no more than \(most) together are sent")
    }

    private static func isOfCache(_ name: String) -> Bool {
        ["If-None-Match", "If-Modified-Since", "If-Range", "Range"].contains { equalIgnoringCase($0, name) }
    }
}
