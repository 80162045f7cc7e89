/// The secondary key of a stored response: what its request sent in the fields that Vary names (RFC 9111 section 4.1).
enum VaryRules {
    /// More than this many names stand for more than can be compared, too.
    static let maximumNames = 100

    /// nil: nothing will ever match.
    static func varying(
        _ request: CacheRequest, _ context: StoredContext, _ fields: [HeaderField]
    ) -> [VaryingField]? {
        var names: [String] = []
        var known = FieldNames([])
        for field in fields where isNamed(field, "Vary") {
            for name in listMembers(field.value).map({ $0.lowercased() }) where known.insert(name) {
                names.append(name)
            }
        }
        guard names.count <= maximumNames else { return nil }
        // "*", and what is no field name, stand for more than can be compared.
        guard names.allSatisfy({ $0 != "*" && HeaderRules.isToken($0) }) else { return nil }
        return names.map { VaryingField(name: $0, value: value(of: $0, request.fields, context)) }
    }

    /// Whether a stored response is one for this request: by who asks, and by what Vary names.
    static func matches(_ request: CacheRequest, _ stored: StoredEntry, _ freshness: Freshness) -> Bool {
        matches(request, stored.response, isForAll: freshness.control.isForAll)
    }

    static func matches(_ request: CacheRequest, _ stored: StoredResponse, isForAll: Bool) -> Bool {
        guard let context = request.context, stored.context.answers(context, isForAll: isForAll) else { return false }
        return stored.varying.allSatisfy { field in
            let asked = VaryingField(name: field.name, value: value(of: field.name, request.fields, context))
            return field.name == partName || asked == field
        }
    }

    /// No field name, so that a Vary never says it.
    private static let partName = "(part)"

    /// Parts of one body are kept beside each other and beside the whole.
    static func part(_ range: Range<Int64>) -> VaryingField {
        VaryingField(name: partName, value: "\(range.lowerBound)-\(range.upperBound - 1)")
    }

    static func parts(_ varying: [VaryingField]) -> [VaryingField] { varying.filter { $0.name == partName } }

    /// Whether a Vary has named any.
    static func hasNames(_ varying: [VaryingField]) -> Bool { varying.contains { $0.name != partName } }

    /// As one field, as far as that changes nothing in its meaning; nil when it was not sent. What a transport makes of
    /// cookies and passwords is not among the fields, and any field that is not for all may be a secret, which is not to be
    /// stored: of these the context knows whether they are the same.
    private static func value(of name: String, _ fields: [HeaderField], _ context: StoredContext) -> String? {
        if ContextFields.areCredentials(name) { return context.credentials.text }
        if !ContextFields.areForAll(name) { return context.request.text }
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
        default:
            return members.joined(separator: ",")
        }
    }

    private static func withoutSpace(_ member: String) -> String {
        String(decoding: member.utf8.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self).lowercased()
    }
}
