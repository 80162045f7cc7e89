import CImgdl
import ImgdlCore
import ImgdlTransport

@_cdecl("imgdl_outgoing_init") @implementation
public func imgdl_outgoing_init(_ outgoing: UnsafeMutablePointer<imgdl_outgoing>?, _ size: Int) {
    imgdl_outgoing.initialize(outgoing, size)
}

@_cdecl("imgdl_hooks_create") @implementation
public func imgdl_hooks_create(
    _ table: UnsafePointer<imgdl_hooks_table>?, _ hooks: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let hooks else { throw Failure(.invalidArgument, "hooks is NULL") }
        let table = try imgdl_hooks_table.read(table)
        guard table.reserved == 0 else { throw Failure(.unsupportedOption, "imgdl_hooks_table.reserved is not 0") }
        guard
            table.modify_request != nil || table.modify_response != nil || table.transform_body != nil
                || table.redirect != nil || table.authenticate != nil
        else { throw Failure(.invalidArgument, "the table has no function") }
        hooks.pointee = HandleTable.shared.insert(CHooks(table), .hooks)
    }
}

@_cdecl("imgdl_hooks_retain") @implementation
public func imgdl_hooks_retain(_ hooks: OpaquePointer?) -> OpaquePointer? { retain(hooks, .hooks) }

@_cdecl("imgdl_hooks_release") @implementation
public func imgdl_hooks_release(_ hooks: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(hooks, .hooks) }
}

/// Looks at the question, then takes it: what `prepare` throws leaves it to be answered.
private func answer<Answer>(
    _ next: OpaquePointer?, _ prepare: (Continuation.Question) throws(Failure) -> Answer?,
    _ give: (Continuation, Answer) -> Void
) -> imgdl_status {
    call { () throws(Failure) in
        let continuation = try object(next, .continuation, as: Continuation.self)
        guard let answer = try prepare(continuation.question) else {
            throw Failure(.invalidArgument, "this is no answer to that hook")
        }
        guard HandleTable.shared.release(next, .continuation) != nil else {
            throw Failure(.invalidHandle, "the hook has been answered already")
        }
        give(continuation, answer)
    }
}

@_cdecl("imgdl_continue_unchanged") @implementation
public func imgdl_continue_unchanged(_ next: OpaquePointer?) -> imgdl_status {
    answer(next, { (_) throws(Failure) in () }) { continuation, _ in continuation.answerUnchanged() }
}

@_cdecl("imgdl_continue_refused") @implementation
public func imgdl_continue_refused(
    _ next: OpaquePointer?, _ code: imgdl_status, _ message: UnsafePointer<CChar>?
) -> imgdl_status {
    answer(
        next,
        { (_) throws(Failure) in
            guard let code = ErrorCode(rawValue: code) else {
                throw Failure(.invalidArgument, "\(code) is no error code")
            }
            guard message == nil || string(message) != nil else {
                throw Failure(.invalidArgument, "message is not UTF-8")
            }
            return code
        }
    ) { continuation, code in continuation.answerRefused(code == .ok ? nil : code, string(message)) }
}

@_cdecl("imgdl_continue_with_request") @implementation
public func imgdl_continue_with_request(
    _ next: OpaquePointer?, _ replacement: UnsafePointer<imgdl_outgoing>?
) -> imgdl_status {
    answer(
        next,
        { (question) throws(Failure) -> (() -> Void)? in
            let read = try imgdl_outgoing.read(replacement)
            switch question {
            case .request(let original, let answer):
                let request = try outgoing(read, original)
                return { answer(.replaced(request)) }
            case .redirect(let answer):
                guard let url = string(read.url) else { throw Failure(.invalidURL, "the URL is NULL or not UTF-8") }
                return { answer(.replaced(url)) }
            case .response, .body, .challenge: return nil
            }
        }
    ) { _, give in give() }
}

/// NULL url, method, headers or body: as it was.
private func outgoing(_ read: imgdl_outgoing, _ original: OutgoingRequest) throws(Failure) -> OutgoingRequest {
    var request = original
    if read.url != nil {
        guard let text = string(read.url) else { throw Failure(.invalidURL, "the URL is not UTF-8") }
        if text != original.url.canonical { request.url = try CurlTransport.parse(text) }
    }
    if read.method != nil {
        guard let method = string(read.method) else { throw Failure(.invalidHeader, "the method is not UTF-8") }
        try HeaderRules.checkMethod(method)
        request.method = method
    }
    if read.headers != nil || read.header_count != 0 {
        request.fields = try requestFields(read.headers, read.header_count).compactMap { field in
            field.value.map { HeaderField(field.name, $0) }
        }
    }
    let body = try checkedCount(read.body_length, read.body, "body")
    if read.body != nil { request.body = body.isEmpty ? nil : Array(body) }
    return request
}

@_cdecl("imgdl_continue_with_response") @implementation
public func imgdl_continue_with_response(
    _ next: OpaquePointer?, _ status: Int32, _ headers: UnsafePointer<imgdl_header>?, _ count: Int
) -> imgdl_status {
    answer(
        next,
        { (question) throws(Failure) -> (() -> Void)? in
            guard case .response(let answer) = question else { return nil }
            guard (100...999).contains(status) else { throw Failure(.invalidArgument, "\(status) is no HTTP status") }
            let fields = try headerFields(headers, count).map { HeaderField($0.name, $0.value ?? "") }
            return { answer(.replaced(ModifiedResponse(status: status, fields: fields))) }
        }
    ) { _, give in give() }
}

@_cdecl("imgdl_continue_with_data") @implementation
public func imgdl_continue_with_data(_ next: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ length: Int) -> imgdl_status
{
    answer(
        next,
        { (question) throws(Failure) -> (() -> Void)? in
            guard case .body(let answer) = question else { return nil }
            let body = Array(try checkedCount(length, bytes, "bytes"))
            return { answer(.replaced(body)) }
        }
    ) { _, give in give() }
}

@_cdecl("imgdl_continue_with_credentials") @implementation
public func imgdl_continue_with_credentials(
    _ next: OpaquePointer?, _ user: UnsafePointer<CChar>?, _ password: UnsafePointer<CChar>?
) -> imgdl_status {
    answer(
        next,
        { (question) throws(Failure) -> (() -> Void)? in
            guard case .challenge(let answer) = question else { return nil }
            guard let credential = try credential(user, password) else {
                throw Failure(.invalidArgument, "user and password are NULL")
            }
            return { answer(.replaced(credential)) }
        }
    ) { _, give in give() }
}
