/// The secondary key of a stored response: what its request sent in the fields that Vary names (RFC 9111 section 4.1).
enum VaryRules {
    /// More than this many names stand for more than can be compared, too.
    static let maximumNames = 100

    /// nil: nothing will ever match.
    static func varying(_ request: CacheRequest, _ fields: [HeaderField], _ control: CacheControl) -> [VaryingField]? {
        var names: [String] = []
        var known = FieldNames([])
        for field in fields where isNamed(field, "Vary") {
            for name in listMembers(field.value).map({ $0.lowercased() }) where known.insert(name) {
                names.append(name)
            }
        }
        guard names.count <= maximumNames else { return nil }
        // "*", and what is no field name, stand for more than can be compared.
        guard names.allSatisfy({ $0 != "*" && HeaderRules.isToken($0) && !request.unknownFields.contains($0) }) else {
            return nil
        }
        var varying = names.map { VaryingField(name: $0, value: value(of: $0, request.fields)) }
        // One program may speak for several users. What was sent with one's credentials answers nobody else, unless the
        // response says that it may be shared (the directives of section 3.5).
        let isShareable = control.isPublic || control.mustRevalidate || control.hasSharedMaxAge
        if !isShareable, let authorization = authorization(request), !names.contains(credentialName) {
            varying.append(VaryingField(name: credentialName, value: authorization))
        }
        return varying
    }

    static func matches(_ request: CacheRequest, _ varying: [VaryingField]) -> Bool {
        varying.allSatisfy { field in
            if field.name == credentialName { return authorization(request) == field.value }
            if field.name == partName { return true }
            return !request.unknownFields.contains(field.name) && value(of: field.name, request.fields) == field.value
        }
    }

    /// No field names, so that a Vary never says them.
    private static let credentialName = "(credential)"
    private static let partName = "(part)"

    /// Parts of one body are kept beside each other and beside the whole.
    static func part(_ range: Range<Int64>) -> VaryingField {
        VaryingField(name: partName, value: "\(range.lowerBound)-\(range.upperBound - 1)")
    }

    private static func authorization(_ request: CacheRequest) -> String? {
        if let field = value(of: "authorization", request.fields) { return field }
        return request.credential.map { digest("\($0.user)\u{0}\($0.password)") }
    }

    /// As one field, as far as that changes nothing in its meaning; nil when it was not sent.
    static func value(of name: String, _ fields: [HeaderField]) -> String? {
        var members: [String] = []
        var isSent = false
        for field in fields where equalIgnoringCase(field.name, name) {
            isSent = true
            members += listMembers(field.value)
        }
        guard isSent else { return nil }
        switch name {
        case "accept-language", "accept-encoding", "accept-charset":
            // Names without regard to case, in an order that means nothing (RFC 9110 section 12.5); weights stay with
            // them.
            return members.map(withoutSpace).sorted().joined(separator: ",")
        case "authorization", "cookie", "proxy-authorization":
            // Kept on disk: enough to compare by.
            return digest(members.joined(separator: ","))
        default:
            return members.joined(separator: ",")
        }
    }

    private static func withoutSpace(_ member: String) -> String {
        String(decoding: member.utf8.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self).lowercased()
    }

    /// 128 bits of FNV-1a: tells two values apart, and does not show them.
    private static func digest(_ text: String) -> String {
        let hashes = [0xCBF2_9CE4_8422_2325, 0x8422_2325_CBF2_9CE4].map { (start: UInt64) in
            text.utf8.reduce(start) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        }
        return hashes.map { String($0, radix: 16) }.joined(separator: "-")
    }
}
