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
func disposeUserData(_ request: UnsafePointer<imgdl_request>?) {
    guard let request, Int(UnsafeRawPointer(request).load(as: UInt32.self)) >= requestSize1 else { return }
    request.pointee.destructor?(request.pointee.user_data)
}

/// nil for a request without a callback.
func callbackSink(_ request: imgdl_request, _ read: RequestReader) -> CallbackSink? {
    request.callback.map {
        CallbackSink($0, request.destructor, request.user_data, showsFullURLs: read.options.showsFullURLs)
    }
}

private func accept(
    _ request: imgdl_request, _ downloader: Downloader, _ token: UnsafeMutablePointer<OpaquePointer?>?
) throws(Failure) {
    let read = try RequestReader(request, downloader)
    let sink = callbackSink(request, read)
    var callersToken: OpaquePointer?
    try downloader.download(read.transfer, read.$options, executor: read.executor, sink: sink) { subscription in
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
