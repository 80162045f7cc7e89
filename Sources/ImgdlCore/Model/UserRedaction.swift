/// Leaves users and passwords out of what a parser took for a part of a path: http://http://user:password@host/ is a URL with
/// a host "http", and the path of another may be a URL itself, as those of proxies are.
///
/// An authority may begin behind two slashes, and behind a scheme. In it, all up to the last @ is a user; in a path without a
/// scheme in front only where a colon stands ahead of the @, since names of files have one, too (a@2x.png). A colon
/// without a port behind it says that the password goes on behind the slash or the question mark that seems to end it.
struct UserRedaction {
    private static let schemes = ["http", "https", "ftp", "ftps"]

    /// The URL with @, :, / and \ as plain characters where they are encoded.
    private var text: [UInt8] = []
    /// Where each of them begins in the URL, and where that ends.
    private var places: [Int] = []
    private var shown: [UInt8] = []
    /// The place of the last @ in `text`; -1: there is none.
    private var lastSign = -1
    /// In `text`: all ahead of it has been shown or left out.
    private var shownEnd = 0

    private let url: UnsafeBufferPointer<UInt8>

    /// The canonical URL without users and passwords; nil: it has none.
    static func redacted(_ url: UnsafeBufferPointer<UInt8>) -> String? {
        guard let colon = url.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        // A thousand downloads that are cancelled at once have a message each.
        guard mayHaveUser(url, from: colon + 1) else { return nil }
        let scheme = String(decoding: url[..<colon], as: UTF8.self)
        guard scheme != "data" else { return nil }
        var redaction = UserRedaction(url)
        redaction.leaveOut(behind: colon + 1, scheme: scheme)
        guard redaction.shownEnd > 0 else { return nil }
        redaction.show(upTo: redaction.text.count)
        return String(decoding: redaction.shown, as: UTF8.self)
    }

    /// Behind its own authority; most have neither an @ nor a colon there.
    private static func mayHaveUser(_ url: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
        let slash = UInt8(ascii: "/")
        var index = start
        if index + 1 < url.count, url[index] == slash, url[index + 1] == slash {
            index += 2
            while index < url.count, url[index] != slash { index += 1 }
        }
        while index < url.count {
            switch url[index] {
            case UInt8(ascii: "@"), UInt8(ascii: ":"): return true
            // %40 or %3A
            case UInt8(ascii: "%"):
                if index + 1 < url.count, url[index + 1] == 0x34 || url[index + 1] == 0x33 { return true }
            default: break
            }
            index += 1
        }
        return false
    }

    private init(_ url: UnsafeBufferPointer<UInt8>) {
        self.url = url
        var index = 0
        while index < url.count {
            places.append(index)
            let plain = Self.plain(url[index...].prefix(3))
            text.append(plain ?? url[index])
            index += plain == nil ? 1 : 3
        }
        places.append(url.count)
        lastSign = text.lastIndex(of: UInt8(ascii: "@")) ?? -1
    }

    private static func plain(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> UInt8? {
        guard bytes.first == UInt8(ascii: "%") else { return nil }
        switch String(decoding: bytes, as: UTF8.self) {
        case "%40": return UInt8(ascii: "@")
        case "%3A", "%3a": return UInt8(ascii: ":")
        case "%2F", "%2f": return UInt8(ascii: "/")
        case "%5C", "%5c": return UInt8(ascii: "\\")
        default: return nil
        }
    }

    /// The text in front of a place where an authority may begin.
    private enum Front {
        /// The URL's host, which is the name of a scheme: nobody knows where a password ends.
        case schemeForHost
        case scheme
        /// The URL's host and two slashes: it may have been a scheme, without its colon by now.
        case host
        case slashes
        /// No authority begins there.
        case name
    }

    private mutating func leaveOut(behind start: Int, scheme: String) {
        var end = text.firstIndex(of: UInt8(ascii: "?")) ?? text.count
        let isNetwork = Self.schemes.contains(scheme)
        var front = isNetwork || scheme == "file" ? Front.name : .slashes
        var (position, isFirst) = (start, true)
        while position < end {
            let segment = text[position..<end].firstIndex { !Self.isSlash($0) } ?? end
            if front == .name, !isFirst, segment - position > 1 { front = .slashes }
            position = segment
            if let named = endOfScheme(position, end) {
                position = named
                if front != .schemeForHost { front = .scheme }
            }
            if let next = leaveOutUser(position, end, front) {
                position = next
                if next > end { end = text[next...].firstIndex(of: UInt8(ascii: "?")) ?? text.count }
            }
            let slash = text[position..<end].firstIndex(where: Self.isSlash) ?? end
            front = self.front(text[position..<slash], slash, isHost: isFirst && isNetwork)
            (position, isFirst) = (slash, false)
        }
    }

    /// The front that a segment is to the one behind it. `slash`: where it ends.
    private func front(_ segment: ArraySlice<UInt8>, _ slash: Int, isHost: Bool) -> Front {
        let slashes = text[slash...].prefix(while: Self.isSlash).count
        let isNamed = segment.last == UInt8(ascii: ":")
        let name = isNamed ? segment.dropLast() : segment
        if Self.isKnown(name) {
            if isHost { return .schemeForHost }
            if isNamed || slashes > 1 { return .scheme }
        }
        guard slashes > 1 else { return .name }
        if isHost, !segment.contains(UInt8(ascii: ":")) { return .host }
        return isNamed && !name.isEmpty && name.allSatisfy(SchemeName.isCharacter) ? .scheme : .slashes
    }

    /// Behind the colon of a scheme without slashes, as in http:user:password@host.
    private func endOfScheme(_ start: Int, _ end: Int) -> Int? {
        let longest = 1 + Self.schemes.reduce(0) { max($0, $1.utf8.count) }
        guard let colon = text[start..<end].prefix(longest).firstIndex(of: UInt8(ascii: ":")), colon + 1 < end,
            !Self.isSlash(text[colon + 1]), Self.isKnown(text[start..<colon])
        else { return nil }
        return colon + 1
    }

    /// Behind the user, where there is one.
    private mutating func leaveOutUser(_ start: Int, _ end: Int, _ front: Front) -> Int? {
        guard front != .name, start < end else { return nil }
        let at = UInt8(ascii: "@")
        let segment = text[start..<end].prefix { !Self.isSlash($0) }
        if front == .schemeForHost, lastSign >= start { return leaveOut(start, lastSign + 1) }
        let colon = segment.firstIndex(of: UInt8(ascii: ":"))
        if let last = segment.lastIndex(of: at), front == .scheme || colon.map({ $0 < last }) ?? false {
            return leaveOut(start, last + 1)
        }
        guard front != .slashes, !segment.contains(at), let colon, segment.first != UInt8(ascii: "["),
            colon + 1 < segment.endIndex,
            !segment[(colon + 1)...].allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        if lastSign >= start { return leaveOut(start, lastSign + 1) }
        guard front != .host else { return nil }
        let next = leaveOut(start, segment.endIndex)
        shown += QueryRedaction.mark.utf8
        return next
    }

    private mutating func leaveOut(_ start: Int, _ end: Int) -> Int {
        show(upTo: start)
        shownEnd = end
        return end
    }

    private mutating func show(upTo end: Int) {
        shown += url[places[shownEnd]..<places[end]]
        shownEnd = end
    }

    private static func isKnown(_ name: ArraySlice<UInt8>) -> Bool {
        (3...5).contains(name.count) && schemes.contains { $0.utf8.elementsEqual(name.lazy.map { $0 | 0x20 }) }
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
}
