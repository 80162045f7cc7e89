import ImgdlCore

/// Hooks that answer inside the call.
final class TestHooks: Hooks, @unchecked Sendable {
    let kinds: HookKinds
    var request: (OutgoingRequest) -> HookAnswer<OutgoingRequest> = { _ in .unchanged }
    var response: (Response) -> HookAnswer<ModifiedResponse> = { _ in .unchanged }
    var body: (BodySlice) -> HookAnswer<[UInt8]> = { _ in .unchanged }
    var credential: (Response) -> HookAnswer<Credential> = { _ in .unchanged }

    init(_ kinds: HookKinds) { self.kinds = kinds }

    func modifyRequest(_ request: OutgoingRequest, answer: @escaping @Sendable (HookAnswer<OutgoingRequest>) -> Void) {
        answer(self.request(request))
    }

    func modifyResponse(_ response: Response, answer: @escaping @Sendable (HookAnswer<ModifiedResponse>) -> Void) {
        answer(self.response(response))
    }

    func transformBody(_ body: BodySlice, answer: @escaping @Sendable (HookAnswer<[UInt8]>) -> Void) {
        answer(self.body(body))
    }

    func redirect(_ response: Response, to url: ParsedURL, answer: @escaping @Sendable (HookAnswer<String>) -> Void) {
        answer(.unchanged)
    }

    func authenticate(_ challenge: Response, answer: @escaping @Sendable (HookAnswer<Credential>) -> Void) {
        answer(credential(challenge))
    }
}
