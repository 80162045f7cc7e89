import COriginTLS

/// `/auth/basic`, `/auth/digest` and `/auth/any`: who has the user's name and password of the query gets an answer.
final class Authentication: Sendable {
    private static let realm = "origin"

    /// Nonces that were given out, and the highest count that was used with each.
    private let nonces = Monitor([String: UInt32]())

    /// The challenges that belong to the refusal; nil lets the request pass.
    func challenges(_ request: Request, schemes: Set<Scheme>, algorithm: Algorithm, _ login: Login) -> [String]? {
        var isStale = false
        for value in request.headers.all("Authorization") {
            let parts = value.split(separator: " ", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { continue }
            if schemes.contains(.basic), parts[0].equalsIgnoringCase("Basic"), parts[1].trimmed == login.basic {
                return nil
            }
            if schemes.contains(.digest), parts[0].equalsIgnoringCase("Digest") {
                switch check(DigestFields(parts[1]), request, algorithm, login) {
                case .right: return nil
                case .stale: isStale = true
                case .wrong: break
                }
            }
        }
        var challenges: [String] = []
        if schemes.contains(.digest) {
            challenges.append(
                "Digest realm=\"\(Self.realm)\", qop=\"auth\", algorithm=\(algorithm.rawValue), nonce=\"\(freshNonce())\""
                    + ", opaque=\"o\"" + (isStale ? ", stale=true" : ""))
        }
        if schemes.contains(.basic) { challenges.append("Basic realm=\"\(Self.realm)\"") }
        return challenges
    }

    private func freshNonce() -> String {
        let nonce = String(UInt64.random(in: 0...UInt64.max), radix: 16)
        nonces.change { $0[nonce] = 0 }
        return nonce
    }

    private enum Verdict { case right, wrong, stale }

    /// RFC 7616 section 3.4.
    private func check(_ fields: DigestFields, _ request: Request, _ algorithm: Algorithm, _ login: Login) -> Verdict {
        guard fields["username"] == login.user, fields["realm"] == Self.realm, fields["uri"] == request.target,
            fields["qop"] == "auth", fields["opaque"] == "o", let nonce = fields["nonce"],
            let cnonce = fields["cnonce"], !cnonce.isEmpty, let nc = fields["nc"], nc.utf8.count == 8,
            let count = UInt32(nc, radix: 16), algorithm == .md5 || fields["algorithm"] == algorithm.rawValue,
            fields["algorithm"] ?? algorithm.rawValue == algorithm.rawValue
        else { return .wrong }
        func hash(_ text: String) -> String { digest(algorithm.openSSLName, text) }
        let secret = hash("\(login.user):\(Self.realm):\(login.password)")
        let what = hash("\(request.method):\(request.target)")
        guard fields["response"] == hash("\(secret):\(nonce):\(nc):\(cnonce):auth:\(what)") else { return .wrong }
        // Each count is good once: an answer that is heard on the wire cannot be said again.
        return nonces.change { nonces in
            guard let last = nonces[nonce], count > last else { return .stale }
            nonces[nonce] = count
            return .right
        }
    }
}

enum Scheme { case basic, digest }

enum Algorithm: String {
    case md5 = "MD5"
    case sha256 = "SHA-256"

    init?(query: String?) {
        switch query?.lowercased() {
        case nil, "md5": self = .md5
        case "sha-256": self = .sha256
        default: return nil
        }
    }

    var openSSLName: String { self == .md5 ? "MD5" : "SHA256" }
}

struct Login: Sendable {
    var user: String
    var password: String
    /// As Basic writes it.
    var basic: String { base64(Array("\(user):\(password)".utf8)) }
}

/// `name=value, name="quoted value"`: the parameters of a credential.
struct DigestFields {
    private var fields: [String: String] = [:]

    init(_ text: String) {
        var rest = text[...]
        while let equals = rest.firstIndex(of: "=") {
            let name = rest[..<equals].drop { $0 == "," || $0 == " " }.trimmed.lowercased()
            rest = rest[rest.index(after: equals)...]
            var value = ""
            if rest.first == "\"" {
                rest.removeFirst()
                while let character = rest.popFirst(), character != "\"" {
                    if character == "\\", let escaped = rest.popFirst() {
                        value.append(escaped)
                    } else {
                        value.append(character)
                    }
                }
            } else {
                let end = rest.firstIndex(of: ",") ?? rest.endIndex
                value = rest[..<end].trimmed
                rest = rest[end...]
            }
            fields[name] = value
        }
    }

    subscript(name: String) -> String? { fields[name] }
}
