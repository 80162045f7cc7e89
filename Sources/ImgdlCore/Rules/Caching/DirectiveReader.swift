/// One member of a list like that of Cache-Control: token [ "=" ( token / quoted-string ) ].
struct Directive: Equatable {
    enum Argument: Equatable {
        case none
        case text(String)
        /// Neither a token nor a whole quoted string, or space where there must be none.
        case malformed
    }

    /// In lower case.
    var name: String
    var argument: Argument

    /// Of an argument that is a list of field names, in lower case; empty where one of them is no name.
    var fieldNames: [String] {
        guard case .text(let text) = argument else { return [] }
        let names = listMembers(text).map { $0.lowercased() }
        return names.allSatisfy(HeaderRules.isToken) ? names : []
    }
}

/// Takes a comma-separated list of directives apart (RFC 9110 sections 5.6.1 to 5.6.4). What is no directive is passed
/// over, up to the next comma; empty members too.
struct DirectiveReader {
    private let bytes: [UInt8]
    private var position = 0
    /// A quoted string that never ends was met: of those that begin behind it, none does either.
    private(set) var hasOpenQuote = false

    init(_ value: String) { bytes = Array(value.utf8) }

    mutating func next() -> Directive? {
        while position < bytes.count {
            skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
            let name = take(while: isTokenByte)
            guard !name.isEmpty else {
                skipMember()
                continue
            }
            let lowerCased = String(decoding: name, as: UTF8.self).lowercased()
            return Directive(name: lowerCased, argument: argument())
        }
        return nil
    }

    private mutating func argument() -> Directive.Argument {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else {
            return isAtEndOfMember() ? .none : malformed()
        }
        position += 1
        let text: [UInt8]?
        if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
            text = quotedString()
        } else {
            let token = take(while: isTokenByte)
            text = token.isEmpty ? nil : Array(token)
        }
        guard let text, isAtEndOfMember() else { return malformed() }
        return .text(String(decoding: text, as: UTF8.self))
    }

    private mutating func malformed() -> Directive.Argument {
        skipMember()
        return .malformed
    }

    /// nil, and nothing taken, when it never ends: it must not hide the directives behind it.
    private mutating func quotedString() -> [UInt8]? {
        guard !hasOpenQuote else { return nil }
        var text: [UInt8] = []
        var place = position + 1
        while place < bytes.count {
            HeaderSteps.take()
            switch bytes[place] {
            case UInt8(ascii: "\""):
                position = place + 1
                return text
            case UInt8(ascii: "\\"):
                place += 1
                if place < bytes.count { text.append(bytes[place]) }
            default: text.append(bytes[place])
            }
            place += 1
        }
        hasOpenQuote = true
        return nil
    }

    private mutating func isAtEndOfMember() -> Bool {
        let start = position
        skip { $0 == 0x20 || $0 == 0x09 }
        if position == bytes.count || bytes[position] == UInt8(ascii: ",") { return true }
        position = start
        return false
    }

    /// To the comma that ends it: not one within a quoted string.
    private mutating func skipMember() {
        while position < bytes.count, bytes[position] != UInt8(ascii: ",") {
            if bytes[position] == UInt8(ascii: "\""), quotedString() != nil { continue }
            position += 1
        }
    }

    private mutating func skip(while holds: (UInt8) -> Bool) {
        while position < bytes.count, holds(bytes[position]) {
            HeaderSteps.take()
            position += 1
        }
    }

    private mutating func take(while holds: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        skip(while: holds)
        return bytes[start..<position]
    }
}

/// The members of a list (RFC 9110 section 5.6.1), without the space around them; a comma within a quoted string is
/// part of its member. Empty ones are left out.
func listMembers(_ value: String) -> [String] {
    var members: [String] = []
    var member: [UInt8] = []
    var isQuoted = false
    var isEscaped = false
    func end() {
        while let last = member.last, last == 0x20 || last == 0x09 { member.removeLast() }
        let start = member.firstIndex { $0 != 0x20 && $0 != 0x09 } ?? member.count
        if start < member.count { members.append(String(decoding: member[start...], as: UTF8.self)) }
        member.removeAll(keepingCapacity: true)
    }
    HeaderSteps.take(value.utf8.count)
    for byte in value.utf8 {
        if byte == UInt8(ascii: ","), !isQuoted {
            end()
            continue
        }
        if isEscaped {
            isEscaped = false
        } else if isQuoted, byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isQuoted.toggle()
        }
        member.append(byte)
    }
    end()
    return members
}

func isNamed(_ field: HeaderField, _ name: String) -> Bool { equalIgnoringCase(field.name, name) }

func isTokenByte(_ byte: UInt8) -> Bool { HeaderRules.isTokenCharacter(byte) }
