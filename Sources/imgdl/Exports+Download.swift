import CImgdl
import ImgdlCore

@_cdecl("imgdl_request_init") @implementation
public func imgdl_request_init(_ request: UnsafeMutablePointer<imgdl_request>?, _ size: Int) {
    SizedStruct.initialize(request, size, version1: requestSize1)
}

@_cdecl("imgdl_download") @implementation
public func imgdl_download(
    _ handle: OpaquePointer?, _ request: UnsafePointer<imgdl_request>?, _ token: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        do throws(Failure) {
            let request = try SizedStruct.read(request, version1: requestSize1)
            try accept(request, try object(handle, .downloader, as: Downloader.self), token)
        } catch {
            disposeUserData(request)
            throw error
        }
    }
}

/// A refused request's user_data has no other end. A struct too small to hold a destructor has none.
private func disposeUserData(_ request: UnsafePointer<imgdl_request>?) {
    guard let request, Int(UnsafeRawPointer(request).load(as: UInt32.self)) >= requestSize1 else { return }
    request.pointee.destructor?(request.pointee.user_data)
}

private func accept(
    _ request: imgdl_request, _ downloader: Downloader, _ token: UnsafeMutablePointer<OpaquePointer?>?
) throws(Failure) {
    let options = try subscriberOptions(request)
    let transfer = try transferRequest(request, downloader)
    let executor = try executor(request.executor)
    let sink = request.callback.map { CallbackSink($0, request.destructor, request.user_data) }
    var callersToken: OpaquePointer?
    try downloader.download(transfer, options, executor: executor, sink: sink) { subscription in
        guard sink != nil || token != nil else { return }
        let handle = HandleTable.shared.insert(Token(downloader, subscription), .token)
        if sink != nil, token != nil { _ = HandleTable.shared.retain(handle, .token) }
        sink?.token = handle
        if token != nil { callersToken = handle }
    }
    token?.pointee = callersToken
    // Nothing will be called with it.
    if sink == nil { request.destructor?(request.user_data) }
}

private func subscriberOptions(_ request: imgdl_request) throws(Failure) -> SubscriberOptions {
    var options = SubscriberOptions()
    options.priority = try checkedPriority(request.priority)
    let known = UInt32(IMGDL_REQUEST_BODY) | UInt32(IMGDL_REQUEST_DECODE) | UInt32(IMGDL_REQUEST_NO_REDIRECTS)
        | UInt32(IMGDL_REQUEST_ALLOW_DOWNGRADE) | UInt32(IMGDL_REQUEST_ANY_STATUS)
    guard request.flags & ~known == 0 else {
        throw Failure(.unsupportedOption, "imgdl_request.flags has a bit that this version does not know")
    }
    guard request.event_mask & ~EventMask.all.rawValue == 0 else {
        throw Failure(.unsupportedOption, "imgdl_request.event_mask has a bit that this version does not know")
    }
    options.events = request.callback == nil ? [] : EventMask(rawValue: request.event_mask)
    options.wantsBody = request.flags & UInt32(IMGDL_REQUEST_BODY) != 0
    options.acceptsAnyStatus = request.flags & UInt32(IMGDL_REQUEST_ANY_STATUS) != 0
    let decode = try DecodeRequest(request.decode)
    let decodes = !options.wantsBody || request.flags & UInt32(IMGDL_REQUEST_DECODE) != 0
    options.decode = decodes ? decode.options : nil
    options.salvages = decode.salvages
    if request.max_body_bytes > 0 { options.maximumBodyBytes = Int64(clamping: request.max_body_bytes) }
    options.totalTimeout = Int64(request.total_timeout_ms)
    if request.partial_interval_ms > 0 { options.partialInterval = Int64(request.partial_interval_ms) }
    return options
}

private func transferRequest(_ request: imgdl_request, _ downloader: Downloader) throws(Failure) -> TransferRequest {
    guard request.url != nil else { throw Failure(.invalidURL, "the URL is NULL") }
    guard let text = string(request.url) else { throw Failure(.invalidURL, "the URL is not UTF-8") }
    let url = try downloader.parse(text)
    var method = "GET"
    if request.method != nil {
        guard let given = string(request.method) else { throw Failure(.invalidHeader, "the method is not UTF-8") }
        try HeaderRules.checkMethod(given)
        method = given
    }
    let body = try checkedCount(request.body_length, request.body, "body")
    return TransferRequest(
        url: url, method: method, fields: downloader.merge(try ownFields(request)), body: body.isEmpty ? nil : Array(body),
        followsRedirects: request.flags & UInt32(IMGDL_REQUEST_NO_REDIRECTS) == 0,
        allowsDowngrade: request.flags & UInt32(IMGDL_REQUEST_ALLOW_DOWNGRADE) != 0, credential: url.credential)
}

private func ownFields(_ request: imgdl_request) throws(Failure) -> [(name: String, value: String?)] {
    guard request.header_count > 0 else {
        guard request.header_count == 0 else { throw Failure(.invalidArgument, "header_count is out of range") }
        return []
    }
    guard let headers = request.headers, request.header_count <= 10_000 else {
        throw Failure(.invalidArgument, "headers is NULL, or more than 10 000")
    }
    var fields: [(name: String, value: String?)] = []
    for header in UnsafeBufferPointer(start: headers, count: request.header_count) {
        guard header.name != nil else { throw Failure(.invalidArgument, "the name of a header is NULL") }
        guard let name = string(header.name), header.value == nil || string(header.value) != nil else {
            throw Failure(.invalidHeader, "a header is not UTF-8")
        }
        try HeaderRules.check(HeaderField(name, string(header.value) ?? ""))
        fields.append((name, string(header.value)))
    }
    return fields
}
