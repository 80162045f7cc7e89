import Glibc

/// Netscape's format for a file of cookies, as curl and others read and write it: a line for each, of seven parts between
/// tabs: domain, whether hosts below it are meant, path, whether TLS is needed, seconds since 1970 or 0 for no date, name,
/// value.
enum CookieFile {
    /// As such files begin, the second with those of older programs; in capitals or not.
    static let beginnings = ["# Netscape HTTP Cookie File", "# HTTP Cookie File"]
    /// What a full jar of the largest cookies comes to. A larger file is none.
    static let maximumBytes = 16 << 20
    /// A line of this length could be of a cookie.
    private static let maximumLineBytes =
        Cookie.maximumPairBytes + Cookie.maximumAttributeBytes + maximumDomainBytes + 64
    /// A domain with its dots; URLs have at most 253 (RFC 1035 section 2.3.4).
    private static let maximumDomainBytes = 255
    /// In front of the domain.
    private static let httpOnly = Array("#HttpOnly_".utf8)
    private static let tab = UInt8(ascii: "\t")

    /// Blank, or begun as such files are, or with a cookie's line first: blank lines and comments may come before either.
    /// What has comments alone is somebody's own.
    static func isOne(_ bytes: [UInt8]) -> Bool {
        var isBlank = true
        for line in Lines(bytes) where !line.allSatisfy({ $0 == 0x20 || $0 == tab || $0 == 0x0D }) {
            isBlank = false
            if isBeginning(line) { return true }
            if !isComment(line) { return parts(of: line) != nil }
        }
        return isBlank
    }

    private static func isBeginning(_ line: ArraySlice<UInt8>) -> Bool {
        beginnings.contains { line.prefix($0.utf8.count).map(Cookie.lowercased) == $0.utf8.map(Cookie.lowercased) }
    }

    private static func isComment(_ line: ArraySlice<UInt8>) -> Bool {
        line.first == UInt8(ascii: "#") && !line.starts(with: httpOnly)
    }

    /// One after another: a file may have millions of lines. Each line that is of no cookie is passed over.
    static func cookies(_ bytes: [UInt8]) -> some Sequence<Cookie> { Lines(bytes).lazy.compactMap { cookie($0) } }

    private static func cookie(_ line: ArraySlice<UInt8>) -> Cookie? {
        guard let parts = parts(of: line), let isHostOnly = flag(parts[1]).map({ !$0 }), let isSecure = flag(parts[3]),
            let domain = domain(parts[0]), let expiry = number(parts[4])
        else { return nil }
        return Cookie(
            name: Array(parts[5]), value: Array(parts[6]), domain: domain, isHostOnly: isHostOnly,
            path: Array(parts[2]), isSecure: isSecure, isHTTPOnly: line.starts(with: httpOnly),
            expiry: expiry == 0 ? nil : expiry)
    }

    /// The seven of a line that is made as a cookie's are, without what says that it is HTTP's alone.
    private static func parts(of line: ArraySlice<UInt8>) -> [ArraySlice<UInt8>]? {
        guard !line.isEmpty, line.count <= maximumLineBytes, !isComment(line) else { return nil }
        var rest = line
        if rest.last == UInt8(ascii: "\r") { rest.removeLast() }
        if rest.starts(with: httpOnly) { rest = rest.dropFirst(httpOnly.count) }
        var parts = rest.split(separator: tab, maxSplits: 7, omittingEmptySubsequences: false)
        // Some leave out the tab in front of an empty value.
        if parts.count == 6 { parts.append([]) }
        return parts.count == 7 && flag(parts[1]) != nil && flag(parts[3]) != nil ? parts : nil
    }

    private static func flag(_ text: ArraySlice<UInt8>) -> Bool? {
        func says(_ word: StaticString) -> Bool {
            let bytes = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
            return text.lazy.map(Cookie.lowercased).elementsEqual(bytes)
        }
        switch text.count {
        case 4: return says("true") ? true : nil
        case 5: return says("false") ? false : nil
        default: return nil
        }
    }

    private static func domain(_ text: ArraySlice<UInt8>) -> String? {
        let name = text.dropFirst(text.first == UInt8(ascii: ".") ? 1 : 0).map(Cookie.lowercased)
        guard (1...maximumDomainBytes).contains(name.count), ![UInt8(ascii: "#"), UInt8(ascii: ".")].contains(name[0]),
            name.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    /// More than a number holds is as late as a date can be.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.count > 18 ? .max : digits.reduce(0) { 10 * $0 + Int64($1 - 0x30) }
    }

    static func bytes(_ cookies: [Cookie]) -> [UInt8] {
        var bytes = Array("\(beginnings[0])\n".utf8)
        for cookie in cookies {
            if cookie.isHTTPOnly { bytes += httpOnly }
            let domain = cookie.isHostOnly ? cookie.domain : ".\(cookie.domain)"
            bytes += "\(domain)\t\(cookie.isHostOnly ? "FALSE" : "TRUE")\t".utf8
            bytes += cookie.path
            bytes += "\t\(cookie.isSecure ? "TRUE" : "FALSE")\t\(cookie.expiry ?? 0)\t".utf8
            bytes += cookie.name + [tab] + cookie.value + [UInt8(ascii: "\n")]
        }
        return bytes
    }
}

/// The lines of a file, without their ends and without the mark that some editors put in front of the first.
private struct Lines: Sequence, IteratorProtocol {
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes.dropFirst(bytes.starts(with: Self.byteOrderMark) ? 3 : 0) }

    mutating func next() -> ArraySlice<UInt8>? {
        guard !rest.isEmpty else { return nil }
        let count = rest.withUnsafeBytes { bytes in
            memchr(bytes.baseAddress!, 0x0A, bytes.count).map { bytes.baseAddress!.distance(to: UnsafeRawPointer($0)) }
        }
        let line = rest.prefix(count ?? rest.count)
        rest = rest.dropFirst(line.count + 1)
        return line
    }
}
