/// What becomes of a 3xx response (RFC 9110 section 15.4).
package enum RedirectRules {
    package enum Decision: Equatable {
        /// No redirect, or the caller wants to see it.
        case none
        case follow(Redirect)
        case refuse(Failure)
    }

    package static func isRedirect(_ status: Int32) -> Bool {
        [301, 302, 303, 307, 308].contains(status)
    }

    /// `location` is the Location field resolved against `hops.last`, or why it could not be; nil when there is none.
    /// `hops` are the URLs asked so far, the first one included; `method` is that of the last hop.
    package static func decide(
        status: Int32, location: Result<ParsedURL, Failure>?, hops: [ParsedURL], method: String, sendsBody: Bool,
        maximum: Int, allowsDowngrade: Bool
    ) -> Decision {
        guard isRedirect(status), let last = hops.last else { return .none }
        guard let location else {
            return .refuse(Failure(.redirectRefused, "the server answered \(status) without a Location", status: status))
        }
        let target: ParsedURL
        switch location {
        case .success(let url): target = url
        case .failure(let failure):
            let reason = failure.code == .unsupportedScheme ? failure.message : "its Location is malformed: \(failure.message)"
            return .refuse(Failure(.redirectRefused, "a redirect is not followed: \(reason)", status: status))
        }
        if last.scheme == "https", target.scheme == "http", !allowsDowngrade {
            return .refuse(
                Failure(.redirectRefused, "a redirect from https to http (\(target.redacted)) is not followed", status: status))
        }
        guard hops.count <= maximum else {
            return .refuse(Failure(.tooManyRedirects, "more than \(maximum) redirects", status: status))
        }
        let nextMethod = methodAfter(status, method)
        if nextMethod == method, hops.contains(target) {
            return .refuse(Failure(.tooManyRedirects, "a redirect loop: \(target.redacted) leads back to itself", status: status))
        }
        let first = hops[0]
        let leavesOrigin = target.scheme != first.scheme || target.host != first.host || target.port != first.port
        return .follow(
            Redirect(url: target, method: nextMethod, sendsBody: sendsBody && nextMethod == method, leavesOrigin: leavesOrigin))
    }

    /// 303 asks for a GET; 301 and 302 turn a POST into one, as all clients do; 307 and 308 keep the method.
    private static func methodAfter(_ status: Int32, _ method: String) -> String {
        switch status {
        case 303: return method == "HEAD" ? "HEAD" : "GET"
        case 301, 302: return method == "POST" ? "GET" : method
        default: return method
        }
    }

    /// What is sent to the next hop. Another origin does not see what was meant for the first (features I24), and a
    /// request without body says nothing about one.
    package static func request(for redirect: Redirect, of first: TransferRequest, maximumHeaderBytes: Int) -> TransportRequest {
        let fields = first.fields.filter { field in
            let isSecret = ["authorization", "cookie", "host", "proxy-authorization"].contains { equalIgnoringCase($0, field.name) }
            let isAboutBody = ["content-type", "content-length", "content-encoding", "content-language", "content-location"]
                .contains { equalIgnoringCase($0, field.name) }
            return !(redirect.leavesOrigin && isSecret) && (redirect.sendsBody || !isAboutBody)
        }
        var url = redirect.url
        if !redirect.leavesOrigin, url.user == nil {
            url = ParsedURL(
                canonical: url.canonical, scheme: url.scheme, host: url.host, port: url.port, user: first.url.user,
                password: first.url.password, redacted: url.redacted)
        }
        return TransportRequest(
            url: url, method: redirect.method, fields: fields, body: redirect.sendsBody ? first.body : nil,
            maximumHeaderBytes: maximumHeaderBytes)
    }
}
