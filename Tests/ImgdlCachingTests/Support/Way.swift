import XCTest

@testable import ImgdlCore

/// One way in which requests differ in who asks and whom they trust; `isTrust`: in whom they trust.
struct Way {
    let name: String
    var fields: [HeaderField] = []
    var body: [UInt8]?
    var identity = RequestIdentity()
    var cookies: String?
    var trust: [UInt8] = []
    var isTrust = false
    var hooks: TestHooks?
}

extension Way {
    static func identity(_ change: (inout RequestIdentity) -> Void) -> RequestIdentity {
        var identity = RequestIdentity()
        change(&identity)
        return identity
    }

    static func trusting(_ name: String, _ change: (inout RequestTrust) -> Void) -> Way {
        Way(name: name, identity: identity { change(&$0.trust) }, isTrust: true)
    }

    static func field(_ name: String, _ value: String) -> Way {
        Way(name: "\(name): \(value)", fields: [HeaderField(name, value)])
    }

    static func modifying(_ field: HeaderField) -> Way {
        let hooks = TestHooks([.modifyRequest])
        hooks.request = { outgoing in
            var changed = outgoing
            changed.fields.append(field)
            return .replaced(changed)
        }
        return Way(name: "a hook adds \(field.name)", hooks: hooks)
    }

    static var all: [Way] {
        [
            Way(name: "nobody"),
            Way(name: "u", identity: identity { $0.credential = Credential(user: "u", password: "p") }),
            Way(name: "u, otherwise", identity: identity { $0.credential = Credential(user: "u", password: "q") }),
            Way(name: "Basic", identity: identity { $0.allowsBasicOverHTTP = true }),
            field("Authorization", "Bearer 1"), field("Authorization", "Bearer 2"),
            field("Authorization", "Bearer 1,,2"), field("Authorization", "Bearer 1, 2"), field("Cookie", "a=1"),
            field("Cookie", "a=1,2"), field("Cookie", "a=1, 2"),
            field("Host", "b.example"), field("Host", "b.example:443"), field("X-Api-Key", "1"),
            field("X-Api-Key", "2"), field("X-Api-Key", "1,2"), field("X-Api-Key", "1,,2"), field("X-Api-Key", "1, 2"),
            field("X-Account", "1"), field("X-Forwarded-For", "192.0.2.1"), field("Forwarded", "for=192.0.2.1"),
            Way(name: "a body", body: [1]), Way(name: "another body", body: [2]),
            Way(name: "an empty body", body: []),
            field("Origin", "https://b.example"),
            Way(name: "jar 1", identity: identity { $0.usesCookies = true }, cookies: "Cookie: a=3"),
            Way(name: "jar 2", identity: identity { $0.usesCookies = true }, cookies: "Cookie: a=2"),
            trusting("CA") { $0.tls.certificateAuthorities = "/ca" },
            trusting("changed CA") {
                $0.tls.certificateAuthorities = "/ca"
                $0.tls.authorities = FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 0, digest: [1])
            },
            trusting("client") { $0.tls.clientCertificate = "/c" },
            trusting("client key") {
                $0.tls.clientCertificate = "/c"
                $0.tls.clientKey = "/k"
            },
            trusting("client key's password") {
                $0.tls.clientCertificate = "/c"
                $0.tls.clientKey = "/k"
                $0.tls.clientKeyPassword = "p"
            },
            trusting("renewed client") {
                $0.tls.clientCertificate = "/c"
                $0.tls.certificate = FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 0, digest: [1])
            },
            trusting("pin") { $0.tls.pinnedPublicKey = "sha256//x" },
            trusting("partition") { $0.partition = "a" }, trusting("other partition") { $0.partition = "b" },
            Way(name: "proxy", trust: [1], isTrust: true),
            modifying(HeaderField("X-Signature", "1")),
        ]
    }

    /// Each with another spelling of the same context.
    static var spelledTwice: [(one: Way, other: Way)] {
        func fields(_ name: String, _ fields: [(String, String)]) -> Way {
            Way(name: name, fields: fields.map { HeaderField($0.0, $0.1) })
        }
        func user(_ fields: [(String, String)]) -> Way {
            var way = Way(name: "u", identity: identity { $0.credential = Credential(user: "u", password: "p") })
            way.fields = fields.map { HeaderField($0.0, $0.1) }
            return way
        }
        func client() -> Way {
            trusting("client") {
                $0.tls.certificate = FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 0, digest: [1])
            }
        }
        return [
            (
                fields("order", [("Accept", "a"), ("X-Api-Key", "1"), ("Authorization", "b")]),
                fields("another order", [("Authorization", "b"), ("X-Api-Key", "1"), ("Accept", "a")])
            ),
            (
                fields("letters", [("ACCEPT", "a"), ("x-api-key", "1"), ("AUTHORIZATION", "b"), ("cookie", "c=1")]),
                fields("others", [("Accept", "a"), ("X-Api-Key", "1"), ("Authorization", "b"), ("Cookie", "c=1")])
            ),
            (user([("Host", "b.example"), ("Origin", "a")]), user([("origin", "a"), ("host", "b.example")])),
            (client(), client()),
        ]
    }

    /// Nothing that it is answered with is stored.
    static let unverified = trusting("anybody") { $0.tls.allowsInvalidCertificates = true }

    /// Whether they ask the same, but for credentials and cookies.
    func asksAlike(_ other: Way) -> Bool {
        func own(_ way: Way) -> [HeaderField] {
            way.fields.filter { !["Authorization", "Cookie"].contains($0.name) }
        }
        return hooks == nil && other.hooks == nil && own(self) == own(other) && body == other.body
    }
}

/// Requests that differ in who asks and whom they trust.
class ContextTestCase: CachingTestCase {
    func get(
        _ way: Way, _ path: String, mode: CacheMode = .use, method: String = "GET",
        _ change: (inout SubscriberOptions) -> Void = { _ in }
    ) throws -> Ended {
        try end(try start(way, path, mode: mode, method: method, change))
    }

    func start(
        _ way: Way, _ path: String, mode: CacheMode = .use, method: String = "GET",
        _ change: (inout SubscriberOptions) -> Void = { _ in }
    ) throws -> Heard {
        if network.trust != way.trust {
            network.trust = way.trust
            try downloader.reconfigure(configuration)
        }
        network.cookies = way.cookies.map { Array($0.utf8) }
        return try start(
            path, mode, method: method, fields: way.fields, body: way.body, hooks: way.hooks, identity: way.identity,
            change)
    }

    /// Each way gets a body of its own.
    func serveEach(_ fields: [(String, String)]) {
        var count: UInt8 = 0
        network.answers { _ in
            count += 1
            return Reply(200, fields + [("ETag", "\"\(count)\"")], [UInt8](repeating: count, count: 10))
        }
    }
}
