/// Port: the host's functions that a transfer asks on its way (features R1–R3, M16, K11, B23). Called on the engine's
/// thread, once for each question; `answer` may be called inside the call or later, on any thread, once.
package protocol Hooks: AnyObject, Sendable {
    /// Which questions are asked at all.
    var kinds: HookKinds { get }
    func modifyRequest(_ request: OutgoingRequest, answer: @escaping @Sendable (HookAnswer<OutgoingRequest>) -> Void)
    func modifyResponse(_ response: Response, answer: @escaping @Sendable (HookAnswer<ModifiedResponse>) -> Void)
    func transformBody(_ body: BodySlice, answer: @escaping @Sendable (HookAnswer<[UInt8]>) -> Void)
    /// The new target, not parsed yet, when it is replaced.
    func redirect(_ response: Response, to url: ParsedURL, answer: @escaping @Sendable (HookAnswer<String>) -> Void)
    func authenticate(_ challenge: Response, answer: @escaping @Sendable (HookAnswer<Credential>) -> Void)
}

package struct HookKinds: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let modifyRequest = HookKinds(rawValue: 1 << 0)
    package static let modifyResponse = HookKinds(rawValue: 1 << 1)
    package static let transformBody = HookKinds(rawValue: 1 << 2)
    package static let redirect = HookKinds(rawValue: 1 << 3)
    package static let authenticate = HookKinds(rawValue: 1 << 4)
}

package enum HookAnswer<Replacement: Sendable>: Sendable {
    case unchanged
    case replaced(Replacement)
    case refused(Failure)
}

/// A request as it will be sent.
package struct OutgoingRequest: Sendable {
    package var url: ParsedURL
    package var method: String
    package var fields: [HeaderField]
    package var body: [UInt8]?

    package init(url: ParsedURL, method: String, fields: [HeaderField], body: [UInt8]?) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
    }
}

/// What a response is to be taken for.
package struct ModifiedResponse: Sendable {
    package var status: Int32
    package var fields: [HeaderField]

    package init(status: Int32, fields: [HeaderField]) {
        self.status = status
        self.fields = fields
    }
}
