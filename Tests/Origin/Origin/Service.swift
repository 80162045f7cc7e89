/// Which script answers which request: the test's own routes first, then the built-in paths.
struct Service {
    let pictures: Pictures
    let shared: Monitor<Origin.Shared>
    private let authentication = Authentication()

    init(pictures: Pictures, shared: Monitor<Origin.Shared>) {
        self.pictures = pictures
        self.shared = shared
    }

    func script(for path: String) -> Origin.Script {
        if let own = shared.read({ $0.routes[path] }) { return own }
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        let rest = parts.count > 1 ? parts[1] : ""
        switch parts.first {
        case "pictures": return { try pictures.answer($0, named: rest) }
        case "files": return { try pictures.answer($0, pictures.content.file(rest)) }
        case "status": return { try status($0, rest) }
        case "redirect": return { try redirect($0, rest) }
        case "redirect-loop": return { try $0.respond(302, headers: ["Location": "/redirect-loop"]) }
        case "echo":
            return { try $0.respond(headers: ["Content-Type": "application/json"], text: $0.request.jsonWithBody.text) }
        case "garbage":
            return { exchange in
                try exchange.send(raw: "\u{1}\u{2} this is not HTTP\r\n\r\n")
            }
        case "flaky": return flaky
        case "auth": return { try authenticate($0, rest) }
        case "cookies" where rest == "set": return setCookies
        case "huge": return huge
        default: return { try $0.respond(404, text: "nothing at \(path)\n") }
        }
    }

    // MARK: Built-in paths

    private func status(_ exchange: Exchange, _ text: String) throws {
        guard let status = Int(text), (200...999).contains(status) else {
            return try exchange.respond(400, text: "not a final status: \(text)\n")
        }
        var headers = retryAfter(exchange.request.query)
        for header in exchange.request.query.all("header") {
            let parts = header.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { headers.add(String(parts[0]), parts[1].trimmed) }
        }
        try exchange.respond(status, headers: headers, text: "status \(status)\n")
    }

    /// `/redirect?to=URL&code=302`, or N hops of it: `/redirect/N?to=URL`.
    private func redirect(_ exchange: Exchange, _ hops: String) throws {
        let query = exchange.request.query
        guard let to = query["to"], let code = Int(query["code"] ?? "302"), (300...399).contains(code) else {
            return try exchange.respond(400, text: "needs to=URL and a code between 300 and 399\n")
        }
        var location = to
        if let hops = Int(hops), hops > 1 { location = "/redirect/\(hops - 1)?code=\(code)&to=\(percentEncoded(to))" }
        try exchange.respond(code, headers: ["Location": location])
    }

    /// Fails the first `fail` requests with that `id`, then answers 200 (or the picture that is named).
    private func flaky(_ exchange: Exchange) throws {
        let query = exchange.request.query
        guard let fail = Int(query["fail"] ?? "1"), let status = Int(query["status"] ?? "503") else {
            return try exchange.respond(400, text: "fail and status are numbers\n")
        }
        let hasFailed = shared.change { shared in
            let count = shared.failures[query["id"] ?? "", default: 0]
            shared.failures[query["id"] ?? ""] = count + 1
            return count
        }
        if hasFailed < fail {
            try exchange.respond(
                status, headers: retryAfter(query), text: "failure \(hasFailed + 1) of \(fail)\n")
        } else {
            try respond(exchange, text: "recovered\n")
        }
    }

    /// `retry_after` says it as it is, such as seconds; `retry_after_date` as the date so many seconds from now.
    private func retryAfter(_ query: Query) -> Headers {
        var headers: Headers = [:]
        if let text = query["retry_after"] { headers.add("Retry-After", text) }
        if let seconds = query["retry_after_date"].flatMap({ Int($0) }) {
            headers.add("Retry-After", httpDate(secondsFromNow: seconds))
        }
        return headers
    }

    /// 200 with the picture that the query names, or with the text.
    private func respond(_ exchange: Exchange, headers: Headers = [:], text: String) throws {
        guard let name = exchange.request.query["picture"] else {
            return try exchange.respond(headers: headers, text: text)
        }
        guard let picture = pictures.content[name] ?? pictures.content.file(name) else {
            return try exchange.respond(404, text: "no picture \(name)\n")
        }
        var headers = headers
        headers.add("Content-Type", picture.type)
        try exchange.respond(headers: headers, body: picture.bytes)
    }

    /// `/auth/basic`, `/auth/digest`, `/auth/any` with `user` and `password`; Digest with `algorithm=sha-256`.
    private func authenticate(_ exchange: Exchange, _ kind: String) throws {
        let query = exchange.request.query
        let schemes: [String: Set<Scheme>] = ["basic": [.basic], "digest": [.digest], "any": [.basic, .digest]]
        guard let offered = schemes[kind], let user = query["user"], let password = query["password"],
            let algorithm = Algorithm(query: query["algorithm"])
        else { return try exchange.respond(400, text: "needs user, password, and an algorithm that is known\n") }
        let login = Login(user: user, password: password)
        let challenges = authentication.challenges(
            exchange.request, schemes: offered, algorithm: algorithm, login)
        guard let challenges else { return try respond(exchange, text: "welcome\n") }
        var headers: Headers = [:]
        for challenge in challenges { headers.add("WWW-Authenticate", challenge) }
        try exchange.respond(401, headers: headers, text: "who are you?\n")
    }

    /// `/cookies/set?name=value&path=/a&domain=d&max_age=5`: every other item is a cookie, and the attributes are theirs.
    private func setCookies(_ exchange: Exchange) throws {
        let names = ["path": "Path", "domain": "Domain", "max_age": "Max-Age", "same_site": "SameSite"]
        var attributes = ""
        var cookies: [Query.Item] = []
        for item in exchange.request.query.items {
            if let name = names[item.name] {
                attributes += "; \(name)=\(item.value)"
            } else if item.name == "secure", item.value == "1" {
                attributes += "; Secure"
            } else if item.name != "picture" {
                cookies.append(item)
            }
        }
        var headers: Headers = [:]
        for cookie in cookies { headers.add("Set-Cookie", "\(cookie.name)=\(cookie.value)\(attributes)") }
        try respond(exchange, headers: headers, text: "set\n")
    }

    /// `/huge?bytes=N`: made as it is sent. The kernel keeps little of it, so `bytes_sent` follows what the client takes.
    private func huge(_ exchange: Exchange) throws {
        let query = exchange.request.query
        guard let count = query["bytes"].flatMap({ Int($0) }), count >= 0 else {
            return try exchange.respond(400, text: "needs bytes=N\n")
        }
        exchange.keepLittleUnsent()
        try exchange.send(
            status: 200,
            headers: [
                "Content-Type": query["type"] ?? "application/octet-stream", "Content-Length": String(count),
            ])
        let part = (0..<16384).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var rest = exchange.request.method == "HEAD" ? 0 : count
        while rest > 0 {
            let size = min(rest, part.count)
            try exchange.send(body: part[..<size])
            rest -= size
        }
        try exchange.end()
    }
}
