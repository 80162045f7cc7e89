/// One request as it arrived.
package struct Request: Sendable {
    package var method: String
    /// The request target, byte for byte.
    package var target: String
    /// The target's path, percent-decoded, without query.
    package var path: String
    package var query: Query
    package var version: String
    package var headers: Headers
    package var body: [UInt8] = []
    /// The head as received, request line and blank line included. Empty over HTTP/2.
    package var head: [UInt8] = []
    /// Connections are numbered from 1 in the order they were accepted.
    package var connection = 0
    /// The stream's id over HTTP/2, else 0.
    package var stream: Int32 = 0
    /// Position in the log, from 0. Control requests (`/_log` and so on) have none: -1.
    package var sequence = -1

    package init(method: String, target: String, version: String, headers: Headers) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        var local = Substring(target)
        if let scheme = local.range(of: "://"), !local.hasPrefix("/") {
            // The absolute form, as sent to a proxy.
            local = local[scheme.upperBound...].drop { $0 != "/" }
        }
        let parts = local.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = percentDecoded(parts.first ?? "")
        query = Query(parts.count > 1 ? parts[1] : "")
    }
}

/// The items of a query in order, decoded.
package struct Query: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package var items: [Item] = []

    package init(_ text: some StringProtocol) {
        items = text.split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return Item(
                name: percentDecoded(parts[0], plusIsSpace: true),
                value: parts.count > 1 ? percentDecoded(parts[1], plusIsSpace: true) : "")
        }
    }

    package subscript(name: String) -> String? { items.first { $0.name == name }?.value }
    package func all(_ name: String) -> [String] { items.filter { $0.name == name }.map(\.value) }
}

func percentDecoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String {
    func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): return byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): return byte - UInt8(ascii: "A") + 10
        default: return nil
        }
    }
    let bytes = Array(text.utf8)
    var decoded: [UInt8] = []
    var index = 0
    while index < bytes.count {
        if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
            let high = hex(bytes[index + 1]), let low = hex(bytes[index + 2])
        {
            decoded.append(high << 4 | low)
            index += 3
            continue
        }
        decoded.append(plusIsSpace && bytes[index] == UInt8(ascii: "+") ? UInt8(ascii: " ") : bytes[index])
        index += 1
    }
    return String(decoding: decoded, as: UTF8.self)
}

func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF")
    var encoded = ""
    for byte in text.utf8 {
        let character = Character(UnicodeScalar(byte))
        if character.isASCII, character.isLetter || character.isNumber || "-._~/".contains(character) {
            encoded.append(character)
        } else {
            encoded += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
        }
    }
    return encoded
}

extension StringProtocol {
    /// Where a short text first occurs; Foundation's name for it, without Foundation.
    func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
