/// What becomes of a 3xx response (RFC 9110 section 15.4).
package enum RedirectRules {
    package enum Decision: Equatable {
        /// No redirect, or the caller wants to see it.
        case none
        case follow(Redirect)
        case refuse(Failure)
    }

    package static func isRedirect(_ status: Int32) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// `location` is the Location field resolved against `hops.last`, or why it could not be; nil when there is none.
    /// `hops` are the URLs asked so far, the first one included; `method` is that of the last hop. `latestCookie`: the last of
    /// them whose answer set a cookie that the next request will send; nil for none.
    package static func decide(
        status: Int32, location: Result<ParsedURL, Failure>?, hops: [ParsedURL], method: String, sendsBody: Bool,
        latestCookie: Int?, maximum: Int, allowsDowngrade: Bool
    ) -> Decision {
        guard isRedirect(status), let first = hops.first, let last = hops.last else { return .none }
        func refuse(_ code: ErrorCode, _ message: String) -> Decision {
            .refuse(Failure(code, message, status: status))
        }
        guard let location else { return refuse(.redirectRefused, "the server answered \(status) without a Location") }
        let target: ParsedURL
        switch location {
        case .success(let url): target = url
        case .failure(let failure):
            let isMalformed = failure.code != .unsupportedScheme
            let reason = isMalformed ? "its Location is malformed: \(failure.message)" : failure.message
            return refuse(.redirectRefused, "a redirect is not followed: \(reason)")
        }
        // Whatever else the downloader loads: a server must not choose from it (features T32).
        guard target.scheme == "http" || target.scheme == "https" else {
            return refuse(
                .redirectRefused, "a redirect to \(target.redacted) is not followed: http and https alone are")
        }
        if last.scheme == "https", target.scheme == "http", !allowsDowngrade {
            return refuse(.redirectRefused, "a redirect from https to http (\(target.redacted)) is not followed")
        }
        guard hops.count <= maximum else {
            let count = maximum == 1 ? "1 redirect" : "\(maximum) redirects"
            return refuse(.tooManyRedirects, "more than \(count): the next would lead to \(target.redacted)")
        }
        let nextMethod = methodAfter(status, method)
        // Asked again with a cookie that it was asked without, it may well answer something else, as sites do that want to
        // know whether a client keeps them. One that goes on so meets the limit of redirects.
        if nextMethod == method, let asked = hops.lastIndex(of: target), latestCookie.map({ $0 < asked }) ?? true {
            return refuse(.tooManyRedirects, "a redirect loop: \(target.redacted) leads back to itself")
        }
        // Once left it stays left: who was in between chose what is asked of the first origin now.
        let leavesOrigin = !(hops.dropFirst() + [target]).allSatisfy { $0.isSameOrigin(as: first) }
        let keepsBody = sendsBody && nextMethod == method
        return .follow(Redirect(url: target, method: nextMethod, sendsBody: keepsBody, leavesOrigin: leavesOrigin))
    }

    /// 303 asks for a GET; 301 and 302 turn a POST into one, as all clients do; 307 and 308 keep the method.
    private static func methodAfter(_ status: Int32, _ method: String) -> String {
        switch status {
        case 303: return method == "HEAD" ? "HEAD" : "GET"
        case 301, 302: return method == "POST" ? "GET" : method
        default: return method
        }
    }

    /// What is sent to the next hop, by what was sent to the first. Another origin does not see what was meant for that
    /// one (features I24), and a request without body says nothing about one.
    package static func request(for redirect: Redirect, of first: TransportRequest) -> TransportRequest {
        let dropped = (redirect.leavesOrigin ? secretFields : []) + (redirect.sendsBody ? [] : bodyFields)
        var next = first
        next.url = redirect.url
        next.method = redirect.method
        next.fields = first.fields.filter { field in !dropped.contains { HeaderRules.isSameName(field.name, $0) } }
        next.body = redirect.sendsBody ? first.body : nil
        next.credential = redirect.url.credential ?? (redirect.leavesOrigin ? nil : first.credential)
        if redirect.leavesOrigin { next.forgetClient() }
        return next
    }

    private static let secretFields = ContextFields.credentials + ["host"]
    private static let bodyFields = [
        "content-type", "content-encoding", "content-language", "content-location",
    ]
}
