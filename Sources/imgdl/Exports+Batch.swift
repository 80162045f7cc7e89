import CImgdl
import ImgdlCore

/// A C callback for the progress of a batch, with its user_data.
private final class CallbackBatchSink: BatchSink, @unchecked Sendable {
    private let callback: (@convention(c) (UnsafePointer<imgdl_batch_progress>?, UnsafeMutableRawPointer?) -> Void)?
    private let destructor: imgdl_destructor?
    private let userData: UnsafeMutableRawPointer?

    init(_ options: imgdl_batch_options) {
        callback = options.progress
        destructor = options.destructor
        userData = options.user_data
    }

    func deliver(_ progress: BatchProgress) -> Bool {
        guard let callback else { return false }
        let told = progressStruct(progress)
        return withUnsafePointer(to: told) { pointer in HostCode.run { callback(pointer, userData) } }
    }

    func close() { dispose(destructor, userData) }
}

private func progressStruct(_ progress: BatchProgress) -> imgdl_batch_progress {
    imgdl_batch_progress(
        struct_size: UInt32(MemoryLayout<imgdl_batch_progress>.stride), is_finished: progress.isFinished ? 1 : 0,
        finished: progress.finished, failed: progress.failed, cancelled: progress.cancelled, total: progress.total)
}

/// An array of imgdl_request as the caller's compiler laid it out: its elements are as large as the first one says.
private struct RequestArray {
    private let start: UnsafeRawPointer?
    private let stride: Int
    let count: Int

    /// Throws `invalidArgument`, `unsupportedOption`.
    init(_ start: UnsafePointer<imgdl_request>?, _ count: Int) throws(Failure) {
        guard count >= 0 else { throw Failure(.invalidArgument, "count is out of range") }
        guard let start else {
            guard count == 0 else { throw Failure(.invalidArgument, "requests is NULL") }
            self.start = nil
            stride = 0
            self.count = 0
            return
        }
        let raw = UnsafeRawPointer(start)
        let size = count > 0 ? Int(raw.load(as: UInt32.self)) : imgdl_request.firstSize
        guard count == 0 || imgdl_request.hasFirstFields(start), size % MemoryLayout<imgdl_request>.alignment == 0
        else {
            throw Failure(
                .unsupportedOption,
                "requests[0]: struct_size is \(size): call imgdl_request_init with sizeof(imgdl_request) first")
        }
        guard !count.multipliedReportingOverflow(by: size).overflow else {
            throw Failure(.invalidArgument, "count is out of range")
        }
        self.start = raw
        stride = size
        self.count = count
    }

    func pointer(_ index: Int) -> UnsafePointer<imgdl_request>? {
        start.map { ($0 + index * stride).assumingMemoryBound(to: imgdl_request.self) }
    }

    /// Throws what imgdl_download does.
    func read(_ index: Int) throws(Failure) -> imgdl_request {
        let request = pointer(index)
        guard let request, Int(request.pointee.struct_size) == stride else {
            throw Failure(
                .unsupportedOption, "its struct_size is not that of the first: call imgdl_request_init for each")
        }
        return try imgdl_request.read(request)
    }
}

@_cdecl("imgdl_batch_options_init") @implementation
public func imgdl_batch_options_init(_ options: UnsafeMutablePointer<imgdl_batch_options>?, _ size: Int) {
    imgdl_batch_options.initialize(options, size)
}

@_cdecl("imgdl_downloader_prefetch") @implementation
public func imgdl_downloader_prefetch(
    _ handle: OpaquePointer?, _ requests: UnsafePointer<imgdl_request>?, _ count: Int,
    _ options: UnsafePointer<imgdl_batch_options>?, _ batch: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        var array: RequestArray?
        do throws(Failure) {
            let requests = try RequestArray(requests, count)
            array = requests
            try prefetch(try object(handle, .downloader), requests, options, batch)
        } catch {
            if let array { for index in 0..<array.count { disposeUserData(array.pointer(index)) } }
            if let options, imgdl_batch_options.hasFirstFields(options) {
                dispose(options.pointee.destructor, options.pointee.user_data)
            }
            throw error
        }
    }
}

private func prefetch(
    _ downloader: Downloader, _ requests: RequestArray, _ options: UnsafePointer<imgdl_batch_options>?,
    _ batch: UnsafeMutablePointer<OpaquePointer?>?
) throws(Failure) {
    var chosen = imgdl_batch_options()
    if options != nil { chosen = try imgdl_batch_options.read(options) }
    guard chosen.reserved == 0 else { throw Failure(.unsupportedOption, "imgdl_batch_options.reserved is not 0") }
    let executor = try executor(chosen.executor)
    var read: [BatchRequest] = []
    var unused: [imgdl_request] = []
    for index in 0..<requests.count {
        // There may be a million, and none is anybody's yet.
        if index % 256 == 255 { Thread.letForkPass() }
        do throws(Failure) {
            let request = try requests.read(index)
            read.append(try batchRequest(request, downloader, keepsPriority: chosen.keeps_priority != 0))
            if request.callback == nil, request.destructor != nil { unused.append(request) }
        } catch {
            throw Failure(error.code, "requests[\(index)]: \(error.message)", status: error.status)
        }
    }
    try downloader.prefetch(
        read, width: chosen.max_concurrent == 0 ? Int(IMGDL_DEFAULT_BATCH_WIDTH) : Int(chosen.max_concurrent),
        executor: executor, sink: CallbackBatchSink(chosen)
    ) { subscription in
        if subscription.hasSink { subscription.handle = HandleTable.shared.insert(subscription, .token) }
    } willStart: { made in
        batch?.pointee = HandleTable.shared.insert(made, .batch)
    }
    // Nothing will be called with these.
    for request in unused { dispose(request.destructor, request.user_data) }
}

private func batchRequest(
    _ request: imgdl_request, _ downloader: Downloader, keepsPriority: Bool
) throws(Failure) -> BatchRequest {
    let read = try RequestReader(request, downloader)
    return BatchRequest(
        url: read.url, keepsPriority ? read.template : read.template.with(.low), pumped: read.pumped,
        userData: request.user_data)
}

private func batch(_ handle: OpaquePointer?) throws(Failure) -> Batch { try object(handle, .batch) }

@_cdecl("imgdl_batch_cancel") @implementation
public func imgdl_batch_cancel(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try batch(handle).cancel() }
}

@_cdecl("imgdl_batch_set_paused") @implementation
public func imgdl_batch_set_paused(_ handle: OpaquePointer?, _ paused: Int32) -> imgdl_status {
    call { () throws(Failure) in try batch(handle).setPaused(paused != 0) }
}

@_cdecl("imgdl_batch_set_priority") @implementation
public func imgdl_batch_set_priority(_ handle: OpaquePointer?, _ priority: imgdl_priority) -> imgdl_status {
    call { () throws(Failure) in try batch(handle).setPriority(try checkedPriority(priority)) }
}

@_cdecl("imgdl_batch_progress_get") @implementation
public func imgdl_batch_progress_get(
    _ handle: OpaquePointer?, _ progress: UnsafeMutablePointer<imgdl_batch_progress>?
) -> imgdl_status {
    call { () throws(Failure) in
        let now = try batch(handle).progress
        try progressStruct(now).write(to: progress)
    }
}

@_cdecl("imgdl_batch_retain") @implementation
public func imgdl_batch_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .batch) }

@_cdecl("imgdl_batch_release") @implementation
public func imgdl_batch_release(_ handle: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(handle, .batch) }
}
