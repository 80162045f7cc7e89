/// What may stand in a request's method and header fields (RFC 9110 sections 5.1, 5.5, 5.6.2 and 9.1).
///
/// Checked before anything reaches a transport: a line break in a value would let its author write requests of their
/// own. Values are never repeated in a message, since they may be credentials.
package enum HeaderRules {
    package static func checkMethod(_ method: String) throws(Failure) {
        guard isToken(method) else {
            throw Failure(.invalidHeader, "“\(printable(method))” is not a method: a token is needed")
        }
        // In another case it is another method, which servers do not know.
        guard method != "CONNECT" else {
            throw Failure(.invalidHeader, "CONNECT makes a tunnel, and is no request for what is at a URL")
        }
    }

    /// Of a request. Beyond what holds for any field, those that frame the message or are for one connection alone are the
    /// library's own: a second Content-Length would make of the body's rest a request of somebody else (RFC 9112 section 11.2).
    package static func checkRequest(_ field: HeaderField) throws(Failure) {
        try check(field)
        guard let reason = reasonAgainst(field.name) else { return }
        throw Failure(.invalidHeader, "the header field “\(field.name)” is the library's own: \(reason)")
    }

    /// Fields of one request together: a second Host would be another server's to believe (RFC 9112 section 3.2).
    package static func checkRequest(_ fields: [HeaderField]) throws(Failure) {
        var hasHost = false
        for field in fields {
            try checkRequest(field)
            guard isSameName(field.name, "host") else { continue }
            guard !hasHost else { throw Failure(.invalidHeader, "the header field “Host” is given twice") }
            hasHost = true
            guard isHost(field.value) else {
                throw Failure(
                    .invalidHeader, "the value of the header field “Host” is not a host with or without a port")
            }
        }
    }

    /// Host = uri-host [ ":" port ] (RFC 9110 section 7.2), with the characters of names and addresses alone: of what else
    /// RFC 3986 would let stand in a name, servers and proxies make different things.
    static func isHost(_ value: String) -> Bool {
        var host = trimmed(Array(value.utf8)[...])
        if let colon = host.lastIndex(of: UInt8(ascii: ":")), !host[colon...].contains(UInt8(ascii: "]")) {
            guard let port = CheckedNumber(digits: host[(colon + 1)...])?.length, port <= UInt16.max else {
                return false
            }
            host = host[..<colon]
        }
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            let address = host.dropFirst().dropLast()
            return address.contains(UInt8(ascii: ":")) && address.allSatisfy(isOfAddress)
        }
        return !host.isEmpty && host.allSatisfy(isOfName)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let rest = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        return rest.prefix((rest.lastIndex { $0 != 0x20 && $0 != 0x09 } ?? rest.startIndex - 1) + 1 - rest.startIndex)
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Names of fields that only the transport may write, and why.
    package static let reserved: [(name: String, reason: String)] = [
        ("content-length", "it says where the request ends"),
        ("transfer-encoding", "it says where the request ends"),
        ("trailer", "it says how the request ends"),
        ("connection", "it is about one connection"),
        ("keep-alive", "it is about one connection"),
        ("proxy-connection", "it is about one connection"),
        ("te", "it is about one connection"),
        ("upgrade", "it changes the protocol of the connection"),
        ("http2-settings", "it changes the protocol of the connection"),
        ("expect", "it changes when the body is sent"),
    ]

    private static func reasonAgainst(_ name: String) -> String? {
        reserved.first { isSameName(name, $0.name) }?.reason
    }

    /// Without regard to case, and to the two signs that servers with variables for fields (CGI, WSGI) take for one. `known`: in
    /// lower case.
    static func isSameName(_ name: String, _ known: String) -> Bool {
        name.utf8.count == known.utf8.count
            && zip(name.utf8, known.utf8).allSatisfy { ($0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : lower($0)) == $1 }
    }

    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    package static func check(_ field: HeaderField) throws(Failure) {
        guard isToken(field.name) else {
            throw Failure(.invalidHeader, "“\(printable(field.name))” is not a header field name: a token is needed")
        }
        guard isValue(field.value) else {
            throw Failure(.invalidHeader, "the value of the header field “\(field.name)” has a control character in it")
        }
    }

    /// token = 1*tchar
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && areAll(text, isTokenCharacter)
    }

    /// Visible characters, bytes above ASCII, spaces and tabs. Spaces at the ends are not part of a value (section
    /// 5.5), so they do no harm.
    package static func isValue(_ text: String) -> Bool {
        areAll(text) { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
    }

    /// In one piece, several times as fast as by the string's own view.
    @inline(__always) private static func areAll(_ text: String, _ isGood: (UInt8) -> Bool) -> Bool {
        var text = text
        return text.withUTF8 { $0.allSatisfy(isGood) }
    }

    static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            return true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            return true
        default:
            return false
        }
    }

    /// For a message: no control characters, and not without end.
    private static func printable(_ text: String) -> String {
        PrintableText.escaped(PrintableText.shortened(text, to: 40))
    }
}
