import CImgdl
import ImgdlCore

private func downloader(_ handle: OpaquePointer?) throws(Failure) -> Downloader { try object(handle, .downloader) }

/// Negative: without limit.
func waitLimit(_ milliseconds: Int64) -> Int64? { milliseconds < 0 ? nil : milliseconds }

@_cdecl("imgdl_config_init") @implementation
public func imgdl_config_init(_ config: UnsafeMutablePointer<imgdl_config>?, _ size: Int) {
    imgdl_config.initialize(config, size)
}

@_cdecl("imgdl_downloader_create") @implementation
public func imgdl_downloader_create(
    _ config: UnsafePointer<imgdl_config>?, _ downloader: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let downloader else { throw Failure(.invalidArgument, "downloader is NULL") }
        let read = try ConfigReader(config)
        let new = try Process.makeDownloader(read.configuration, executor: read.executor)
        downloader.pointee = HandleTable.shared.insert(new, .downloader)
    }
}

@_cdecl("imgdl_downloader_shared") @implementation
public func imgdl_downloader_shared(_ downloader: UnsafeMutablePointer<OpaquePointer?>?) -> imgdl_status {
    call { () throws(Failure) in
        guard let downloader else { throw Failure(.invalidArgument, "downloader is NULL") }
        downloader.pointee = try Process.sharedDownloader()
    }
}

@_cdecl("imgdl_downloader_retain") @implementation
public func imgdl_downloader_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .downloader) }

@_cdecl("imgdl_downloader_release") @implementation
public func imgdl_downloader_release(_ handle: OpaquePointer?) {
    inLibrary {
        (HandleTable.shared.release(handle, .downloader) as? Downloader)?.shutDown(cancelling: false, completion: nil)
    }
}

@_cdecl("imgdl_downloader_cancel_all") @implementation
public func imgdl_downloader_cancel_all(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).cancelAll() }
}

@_cdecl("imgdl_downloader_current_count") @implementation
public func imgdl_downloader_current_count(_ handle: OpaquePointer?) -> UInt64 {
    inLibrary { UInt64((try? downloader(handle))?.currentCount ?? 0) }
}

@_cdecl("imgdl_downloader_wait_idle") @implementation
public func imgdl_downloader_wait_idle(_ handle: OpaquePointer?, _ timeout: Int64) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).waitUntilIdle(milliseconds: waitLimit(timeout)) }
}

@_cdecl("imgdl_downloader_shutdown") @implementation
public func imgdl_downloader_shutdown(
    _ handle: OpaquePointer?, _ mode: imgdl_shutdown_mode, _ done: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?,
    _ userData: UnsafeMutableRawPointer?
) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try downloader(handle)
        guard mode <= UInt32(IMGDL_SHUTDOWN_CANCEL) else {
            throw Failure(.invalidArgument, "\(mode) is no shutdown mode")
        }
        try refuseShared(handle)
        downloader.shutDown(
            cancelling: mode == UInt32(IMGDL_SHUTDOWN_CANCEL),
            completion: done.map { done in { HostCode.run { done(userData) } } })
    }
}

@_cdecl("imgdl_downloader_destroy") @implementation
public func imgdl_downloader_destroy(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in
        let found = Result { () throws(Failure) in try downloader(handle) }
        if case .success = found { try refuseShared(handle) }
        _ = HandleTable.shared.release(handle, .downloader)
        try found.get().destroy()
    }
}
