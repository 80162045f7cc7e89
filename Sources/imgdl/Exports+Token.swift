import CImgdl
import Glibc
import ImgdlCore

/// What C has borrowed of a token's subscription, once it has asked; guarded by the handle table's lock, since there
/// are many tokens and few are asked.
private final class Lent {
    var result: BorrowedResult?
    /// What imgdl_token_metrics has given.
    var addresses: [String: UnsafeMutablePointer<CChar>] = [:]

    deinit { for address in addresses.values { free(address) } }

    /// Under the lock.
    static func lent(by subscription: Subscription) -> Lent {
        let lent = subscription.extras.lent as? Lent ?? Lent()
        subscription.extras.lent = lent
        return lent
    }
}

/// What an imgdl_token handle stands for.
extension Subscription {
    /// The text for as long as the token lives.
    func keep(address: String) -> UnsafePointer<CChar>? {
        HandleTable.shared.lock.withLock {
            let lent = Lent.lent(by: self)
            let kept = lent.addresses[address] ?? strdup(address)
            lent.addresses[address] = kept
            return UnsafePointer(kept)
        }
    }

    /// The result in the form in which C borrows it; made once, nil before the end.
    fileprivate func borrowedResult() -> imgdl_result? {
        guard let result = recipient.downloader.result(of: self) else { return nil }
        let lock = HandleTable.shared.lock
        if let known = lock.withLock({ (extras.lent as? Lent)?.result }) { return known.result }
        // It makes handles: not under the lock. Another thread may be quicker.
        let made = BorrowedResult(result, options)
        return lock.withLock {
            let lent = Lent.lent(by: self)
            let kept = lent.result ?? made
            lent.result = kept
            return kept.result
        }
    }
}

/// An imgdl_result and what it points to.
private final class BorrowedResult {
    let result: imgdl_result
    private let message: UnsafeMutablePointer<CChar>?
    private let response: ResponseStruct?
    private let address: UnsafeMutablePointer<CChar>?
    private let metrics: UnsafeMutablePointer<imgdl_metrics>
    private let contentType: UnsafeMutablePointer<CChar>?
    private let preview: UnsafeMutableRawBufferPointer

    init(_ source: DownloadResult, _ options: SubscriberOptions) {
        message = strdup(source.message)
        response = source.response.map { ResponseStruct($0, showsFullURLs: options.showsFullURLs) }
        address = source.metrics.address.withCString { strdup($0) }
        metrics = .allocate(capacity: 1)
        metrics.initialize(to: metricsStruct(source.metrics, address: address))
        contentType = strdup(source.contentType)
        preview = .allocate(byteCount: source.preview.count, alignment: 1)
        preview.copyBytes(from: source.preview)
        var result = imgdl_result()
        result.struct_size = UInt32(MemoryLayout<imgdl_result>.stride)
        result.code = source.code.rawValue
        result.http_status = source.status
        result.message = UnsafePointer(message)
        result.image = source.image.flatMap { ImageObject.handle($0) }
        result.data = dataHandle(source.body)
        result.response = response?.pointer
        result.content_type = UnsafePointer(contentType)
        if !preview.isEmpty { result.preview = UnsafeRawPointer(preview.baseAddress) }
        result.preview_length = preview.count
        result.metrics = UnsafePointer(metrics)
        self.result = result
    }

    deinit {
        if result.image != nil { _ = HandleTable.shared.release(result.image, .image) }
        if result.data != nil { _ = HandleTable.shared.release(result.data, .data) }
        free(message)
        free(contentType)
        preview.deallocate()
        free(address)
        metrics.deallocate()
    }
}

private func token(_ handle: OpaquePointer?) throws(Failure) -> Subscription { try object(handle, .token) }

@_cdecl("imgdl_token_cancel") @implementation
public func imgdl_token_cancel(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in
        let token = try token(handle)
        token.recipient.downloader.cancel(token)
    }
}

@_cdecl("imgdl_token_set_priority") @implementation
public func imgdl_token_set_priority(_ handle: OpaquePointer?, _ priority: imgdl_priority) -> imgdl_status {
    call { () throws(Failure) in
        let token = try token(handle)
        token.recipient.downloader.setPriority(token, try checkedPriority(priority))
    }
}

@_cdecl("imgdl_token_wait") @implementation
public func imgdl_token_wait(_ handle: OpaquePointer?, _ timeout: Int64) -> imgdl_status {
    call { () throws(Failure) in
        let token = try token(handle)
        try token.recipient.downloader.wait(for: token, milliseconds: waitLimit(timeout))
    }
}

@_cdecl("imgdl_result_init") @implementation
public func imgdl_result_init(_ result: UnsafeMutablePointer<imgdl_result>?, _ size: Int) {
    guard let result, imgdl_result.initialize(result, size) else {
        return
    }
    // Both are within the first version's size. A request that was refused has no token to fill it.
    result.pointee.code = ErrorCode.notReady.rawValue
    result.pointee.message = staticText(
        "there is no result: the request was refused, which imgdl_last_error tells of, or it has not ended")
}

@_cdecl("imgdl_token_result") @implementation
public func imgdl_token_result(_ handle: OpaquePointer?, _ result: UnsafeMutablePointer<imgdl_result>?) -> imgdl_status
{
    call { () throws(Failure) in
        let token = try token(handle)
        try imgdl_result.checkSize(of: result)
        guard let value = token.borrowedResult() else { throw Failure(.notReady, "the download has not ended yet") }
        try value.write(to: result)
    }
}

@_cdecl("imgdl_token_id") @implementation
public func imgdl_token_id(_ handle: OpaquePointer?) -> UInt64 {
    inLibrary { (try? token(handle))?.id ?? 0 }
}

@_cdecl("imgdl_token_retain") @implementation
public func imgdl_token_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .token) }

@_cdecl("imgdl_token_release") @implementation
public func imgdl_token_release(_ handle: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(handle, .token) }
}

func checkedPriority(_ value: Int32) throws(Failure) -> Priority {
    guard let priority = Int8(exactly: value).flatMap({ Priority(rawValue: $0) }) else {
        throw Failure(.invalidArgument, "\(value) is no priority")
    }
    return priority
}
