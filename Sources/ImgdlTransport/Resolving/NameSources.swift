/// Where the system has names looked up: the line "hosts" of nsswitch.conf, read as far as this library goes by it.
///
/// Files and name servers are asked without a thread, by c-ares. What else there is (systemd's `resolve` and
/// `mymachines`, `mdns4`, `nis`, `ldap`, `wins` …) and conditions such as `[NOTFOUND=return]` are known to
/// getaddrinfo alone. Two services matter for some names only: `mdns4_minimal` and its like for those below "local",
/// and `myhostname` for this machine's own and those without a dot.
struct NameSources: Equatable, Sendable {
    enum Answerer: Equatable {
        /// The services in order, as c-ares spells them: "f" for files, "b" for name servers.
        case ares(String)
        case system
    }

    /// Larger ones, and a larger /etc/hosts, are left to the system.
    static let maximumFileSize = 64 << 10

    /// nil: the system's alone.
    private let services: String?
    private let hasMulticast: Bool
    private let hasOwnName: Bool

    /// The texts of /etc/nsswitch.conf and /etc/resolv.conf: empty where there is none, nil for one that is not read.
    /// `hostsSize`: bytes of /etc/hosts.
    init(switches: String?, resolving: String?, hostsSize: Int) {
        var services = ""
        var hasMulticast = false
        var hasOwnName = false
        var isPlain =
            switches != nil && hostsSize <= Self.maximumFileSize && resolving.map(Self.hasPlainServers) == true
        var conditionsMatter = false
        let lines = Self.hostsLines(switches ?? "")
        isPlain = isPlain && lines.count <= 1
        for word in lines.first ?? ["files", "dns"] where isPlain {
            switch word {
            case "files", "dns":
                services += word == "files" ? "f" : "b"
                conditionsMatter = true
            case "mdns_minimal", "mdns4_minimal", "mdns6_minimal":
                hasMulticast = true
                conditionsMatter = false
            case "myhostname":
                hasOwnName = true
                conditionsMatter = false
            default:
                isPlain = word.hasPrefix("[") && !conditionsMatter
            }
        }
        isPlain = isPlain && ["f", "b", "fb", "bf"].contains(services)
        self.services = isPlain ? services : nil
        self.hasMulticast = hasMulticast
        self.hasOwnName = hasOwnName
    }

    /// `host`: in lower case. `ownName`: this machine's.
    func answerer(of host: String, ownName: String) -> Answerer {
        guard let services else { return .system }
        var name = Substring(host)
        if name.last == "." { name = name.dropLast() }
        if hasMulticast, name == "local" || name.hasSuffix(".local") { return .system }
        if hasOwnName, !name.contains(".") || name == ownName { return .system }
        return .ares(services)
    }

    /// The words of each line that is for hosts; a condition is one word.
    private static func hostsLines(_ text: String) -> [[String]] {
        lines(text).compactMap { line in
            guard let colon = line.firstIndex(of: ":"), words(line[..<colon]) == ["hosts"] else { return nil }
            return words(line[line.index(after: colon)...])
        }
    }

    /// c-ares 1.18 passes over a server with a zone, such as fe80::1%eth0.
    private static func hasPlainServers(_ text: String) -> Bool {
        lines(text).allSatisfy { line in
            let words = words(line)
            return words.first != "nameserver" || words.dropFirst().first?.contains("%") != true
        }
    }

    /// Without comments.
    private static func lines(_ text: String) -> [Substring] {
        text.split(whereSeparator: \.isNewline).map { $0.prefix { $0 != "#" && $0 != ";" } }
    }

    private static func words(_ line: Substring) -> [String] {
        var words: [String] = []
        var isInside = false
        var word = ""
        for character in line {
            if character == "[" { isInside = true }
            if isInside || !(character == " " || character == "\t") {
                word.append(character)
            } else if !word.isEmpty {
                words.append(word)
                word = ""
            }
            if character == "]" {
                isInside = false
                words.append(word)
                word = ""
            }
        }
        if !word.isEmpty { words.append(word) }
        return words
    }
}
