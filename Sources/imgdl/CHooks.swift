import CImgdl
import ImgdlCore

/// An imgdl_hooks_table as the core sees it.
final class CHooks: Hooks, @unchecked Sendable {
    private let table: imgdl_hooks_table
    let kinds: HookKinds

    init(_ table: imgdl_hooks_table) {
        self.table = table
        var kinds: HookKinds = []
        if table.modify_request != nil { kinds.insert(.modifyRequest) }
        if table.modify_response != nil { kinds.insert(.modifyResponse) }
        if table.transform_body != nil { kinds.insert(.transformBody) }
        if table.redirect != nil { kinds.insert(.redirect) }
        if table.authenticate != nil { kinds.insert(.authenticate) }
        self.kinds = kinds
    }

    deinit { dispose(table.destructor, table.user_data) }

    func modifyRequest(_ request: OutgoingRequest, answer: @escaping @Sendable (HookAnswer<OutgoingRequest>) -> Void) {
        let next = Continuation.handle(.request(request, answer))
        OutgoingStruct(request).withPointer { outgoing in
            _ = HostCode.run { table.modify_request?(outgoing, next, table.user_data) }
        }
    }

    func modifyResponse(_ response: Response, answer: @escaping @Sendable (HookAnswer<ModifiedResponse>) -> Void) {
        let next = Continuation.handle(.response(answer))
        ResponseStruct(response, showsFullURLs: true).withPointer { response in
            _ = HostCode.run { table.modify_response?(response, next, table.user_data) }
        }
    }

    func transformBody(_ body: BodySlice, answer: @escaping @Sendable (HookAnswer<[UInt8]>) -> Void) {
        let next = Continuation.handle(.body(answer))
        let data = dataHandle(body)
        HostCode.run { table.transform_body?(data, next, table.user_data) }
        _ = HandleTable.shared.release(data, .data)
    }

    func redirect(_ response: Response, to url: ParsedURL, answer: @escaping @Sendable (HookAnswer<String>) -> Void) {
        let next = Continuation.handle(.redirect(answer))
        ResponseStruct(response, showsFullURLs: true).withPointer { response in
            url.canonical.withCString { url in
                _ = HostCode.run { table.redirect?(response, url, next, table.user_data) }
            }
        }
    }

    func authenticate(_ challenge: Response, answer: @escaping @Sendable (HookAnswer<Credential>) -> Void) {
        let next = Continuation.handle(.challenge(answer))
        ResponseStruct(challenge, showsFullURLs: true).withPointer { challenge in
            _ = HostCode.run { table.authenticate?(challenge, next, table.user_data) }
        }
    }
}

/// A question of a hook that waits for its answer; the handle has one reference, which the answer takes.
final class Continuation {
    enum Question {
        case request(OutgoingRequest, @Sendable (HookAnswer<OutgoingRequest>) -> Void)
        case response(@Sendable (HookAnswer<ModifiedResponse>) -> Void)
        case body(@Sendable (HookAnswer<[UInt8]>) -> Void)
        case redirect(@Sendable (HookAnswer<String>) -> Void)
        case challenge(@Sendable (HookAnswer<Credential>) -> Void)
    }

    let question: Question

    private init(_ question: Question) { self.question = question }

    static func handle(_ question: Question) -> OpaquePointer? {
        HandleTable.shared.insert(Continuation(question), .continuation)
    }

    func answerUnchanged() {
        switch question {
        case .request(_, let answer): answer(.unchanged)
        case .response(let answer): answer(.unchanged)
        case .body(let answer): answer(.unchanged)
        case .redirect(let answer): answer(.unchanged)
        case .challenge(let answer): answer(.unchanged)
        }
    }

    func answerRefused(_ code: ErrorCode?, _ message: String?) {
        func failure(_ ownCode: ErrorCode, _ ownMessage: String) -> Failure {
            Failure(code ?? ownCode, message ?? ownMessage)
        }
        switch question {
        case .request(_, let answer): answer(.refused(failure(.invalidOperation, "the request hook refused it")))
        case .response(let answer): answer(.refused(failure(.invalidResponse, "the response hook refused it")))
        case .body(let answer): answer(.refused(failure(.badImageData, "the body hook refused it")))
        case .redirect(let answer): answer(.refused(failure(.redirectRefused, "the redirect hook refused it")))
        case .challenge(let answer): answer(.refused(failure(.invalidStatus, "no credentials for a protected picture")))
        }
    }
}

/// An imgdl_outgoing and what it points to.
final class OutgoingStruct {
    private let request: OutgoingRequest
    private let headers: HeaderArray

    init(_ request: OutgoingRequest) {
        self.request = request
        headers = HeaderArray(request.fields)
    }

    /// Valid during the call.
    func withPointer(_ use: (UnsafePointer<imgdl_outgoing>) -> Void) {
        request.url.canonical.withCString { url in
            request.method.withCString { method in
                (request.body ?? []).withUnsafeBytes { body in
                    let outgoing = imgdl_outgoing(
                        struct_size: UInt32(MemoryLayout<imgdl_outgoing>.stride), reserved: 0, url: url, method: method,
                        headers: headers.pointer, header_count: headers.count, body: body.baseAddress,
                        body_length: body.count)
                    withUnsafePointer(to: outgoing) { outgoing in withExtendedLifetime(headers) { use(outgoing) } }
                }
            }
        }
    }
}
