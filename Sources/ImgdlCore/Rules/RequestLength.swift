/// How long the URL and header of a request may be together, over HTTP.
package enum RequestLength {
    /// libcurl writes them into a buffer of 1 MiB, with what it adds itself: Host, credentials, cookies, conditions. Of more it
    /// says what it says of a header that a server sent.
    package static let most = 1_000_000

    package static func refusal(of request: TransportRequest) -> Failure? {
        let url = request.url.withUTF8 { $0.count }
        let header = request.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard url > most - min(header, most) else { return nil }
        return Failure(
            url > header ? .invalidURL : .invalidHeader,
            "the request's URL has \(url) bytes and its header \(header), and no more than \(most) together are sent")
    }
}
