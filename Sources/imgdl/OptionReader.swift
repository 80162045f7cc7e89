import CImgdl
import ImgdlCore
import ImgdlTransport

// Options that imgdl_config and imgdl_request have in common.

/// nil for NULL. Throws `invalidArgument` for what is not UTF-8, `invalidHeader` for control characters.
func text(_ source: UnsafePointer<CChar>?, _ name: String) throws(Failure) -> String? {
    guard source != nil else { return nil }
    guard let text = string(source) else { throw Failure(.invalidArgument, "\(name) is not UTF-8") }
    guard HeaderRules.isValue(text) else { throw Failure(.invalidHeader, "\(name) has a control character in it") }
    return text
}

/// nil when both are NULL. A user name with a colon cannot be sent (RFC 7617 section 2).
func credential(_ user: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?) throws(Failure) -> Credential? {
    let user = try text(user, "user")
    let password = try text(password, "password")
    guard user != nil || password != nil else { return nil }
    guard user?.utf8.contains(UInt8(ascii: ":")) != true else {
        throw Failure(.invalidHeader, "user has a colon in it")
    }
    return Credential(user: user ?? "", password: password ?? "")
}

extension TLSOptions {
    init(
        certificate: String?, key: String?, password: UnsafePointer<CChar>?, pin: UnsafePointer<CChar>?
    ) throws(Failure) {
        self.init()
        clientCertificate = certificate
        clientKey = key
        clientKeyPassword = try text(password, "client_key_password")
        pinnedPublicKey = try text(pin, "pinned_public_key")
        guard certificate != nil || (key == nil && clientKeyPassword == nil) else {
            let option = key == nil ? "client_key_password" : "client_key"
            throw Failure(.invalidArgument, "\(option) without client_certificate")
        }
        if let pinnedPublicKey, let complaint = Self.complaint(aboutPin: pinnedPublicKey) {
            throw Failure(.invalidArgument, complaint)
        }
    }
}

extension RetryPolicy {
    /// 0 leaves what is there.
    mutating func override(count: UInt32, base: UInt32, maximum: UInt32) {
        if count > 0 { self.count = count == .max ? 0 : Int(count) }
        if base > 0 { self.base = Int64(base) }
        if maximum > 0 { self.maximum = Int64(maximum) }
    }
}

extension Validation {
    init(
        statuses: UnsafePointer<imgdl_status_range>?, _ statusCount: Int,
        types: UnsafePointer<UnsafePointer<CChar>?>?, _ typeCount: Int
    ) throws(Failure) {
        self.init()
        guard (0...1000).contains(statusCount), (0...1000).contains(typeCount) else {
            throw Failure(.invalidArgument, "accepted_status_count or accepted_type_count is above 1000")
        }
        if let statuses {
            var ranges: [StatusRange] = []
            for range in UnsafeBufferPointer(start: statuses, count: statusCount) {
                guard (100...999).contains(range.first), (range.first...999).contains(range.last) else {
                    throw Failure(.invalidArgument, "accepted_statuses: \(range.first) to \(range.last) is no range")
                }
                ranges.append(StatusRange(first: range.first, last: range.last))
            }
            self.statuses = ranges
        }
        if let types {
            var accepted: [String] = []
            for type in UnsafeBufferPointer(start: types, count: typeCount) {
                guard let text = try text(type, "accepted_types"), Self.isMediaType(text) else {
                    throw Failure(.invalidArgument, "accepted_types: not a media type such as image/png or image/*")
                }
                accepted.append(text.lowercased())
            }
            contentTypes = accepted
        }
    }

    /// type "/" subtype, each a token (RFC 9110 section 8.3.1); the asterisk is one.
    private static func isMediaType(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { HeaderRules.isToken(String($0)) }
    }
}
