import CImgdl
import ImgdlCore

@_cdecl("imgdl_request_init") @implementation
public func imgdl_request_init(_ request: UnsafeMutablePointer<imgdl_request>?, _ size: Int) {
    imgdl_request.initialize(request, size)
}

@_cdecl("imgdl_download") @implementation
public func imgdl_download(
    _ handle: OpaquePointer?, _ request: UnsafePointer<imgdl_request>?, _ token: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        do throws(Failure) {
            let request = try imgdl_request.read(request)
            try accept(request, try object(handle, .downloader, as: Downloader.self), token)
        } catch {
            disposeUserData(request)
            throw error
        }
    }
}

/// A refused request's user_data has no other end.
func disposeUserData(_ request: UnsafePointer<imgdl_request>?) {
    guard let request, imgdl_request.hasFirstFields(request) else { return }
    dispose(request.pointee.destructor, request.pointee.user_data)
}

private func accept(
    _ request: imgdl_request, _ downloader: Downloader, _ token: UnsafeMutablePointer<OpaquePointer?>?
) throws(Failure) {
    let read = try RequestReader(request, downloader)
    let hasCallback = request.callback != nil
    var handle: OpaquePointer?
    try downloader.download(
        read.url, read.template, on: read.pumped, userData: request.user_data
    ) { subscription in
        guard hasCallback || token != nil else { return }
        // One reference is the caller's, one the library's for as long as there are events.
        handle = HandleTable.shared.insert(subscription, .token, references: hasCallback && token != nil ? 2 : 1)
        if hasCallback { subscription.handle = handle }
    }
    token?.pointee = handle
    // Nothing will be called with it.
    if !hasCallback { dispose(request.destructor, request.user_data) }
}
