import CImgdl
import ImgdlCore

// What a downloader goes by while it lives: header fields, limits, background, its session.

private func downloader(_ handle: OpaquePointer?) throws(Failure) -> Downloader { try object(handle, .downloader) }

@_cdecl("imgdl_downloader_set_header") @implementation
public func imgdl_downloader_set_header(
    _ handle: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try downloader(handle)
        guard name != nil else { throw Failure(.invalidArgument, "name is NULL") }
        guard let name = string(name), value == nil || string(value) != nil else {
            throw Failure(.invalidHeader, "the header is not UTF-8")
        }
        if let value = string(value) {
            try HeaderRules.checkRequest(HeaderField(name, value))
        } else {
            try HeaderRules.check(HeaderField(name, ""))
        }
        downloader.setField(name, string(value))
    }
}

@_cdecl("imgdl_downloader_get_header") @implementation
public func imgdl_downloader_get_header(
    _ handle: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int,
    _ length: UnsafeMutablePointer<Int>?
) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try downloader(handle)
        guard let name = string(name) else { throw Failure(.invalidArgument, "name is NULL or not UTF-8") }
        guard size >= 0, size == 0 || buffer != nil else { throw Failure(.invalidArgument, "buffer is NULL") }
        guard let value = downloader.field(named: name) else { throw Failure(.notReady, "no header of that name") }
        let bytes = Array(value.utf8)
        if let buffer, size > 0 {
            let count = min(bytes.count, size - 1)
            for index in 0..<count { buffer[index] = CChar(bitPattern: bytes[index]) }
            buffer[count] = 0
        }
        length?.pointee = bytes.count
    }
}

@_cdecl("imgdl_downloader_set_max_concurrent") @implementation
public func imgdl_downloader_set_max_concurrent(_ handle: OpaquePointer?, _ maximum: UInt32) -> imgdl_status {
    call { () throws(Failure) in
        try downloader(handle).setMaximumConcurrent(try ConfigReader.maximumConcurrent(maximum))
    }
}

@_cdecl("imgdl_downloader_max_concurrent") @implementation
public func imgdl_downloader_max_concurrent(_ handle: OpaquePointer?) -> UInt32 {
    inLibrary { UInt32(clamping: (try? downloader(handle))?.maximumConcurrent ?? 0) }
}

@_cdecl("imgdl_downloader_set_max_per_host") @implementation
public func imgdl_downloader_set_max_per_host(_ handle: OpaquePointer?, _ maximum: UInt32) -> imgdl_status {
    call { () throws(Failure) in
        try downloader(handle).setMaximumPerHost(try ConfigReader.maximumPerHost(maximum))
    }
}

@_cdecl("imgdl_downloader_set_order") @implementation
public func imgdl_downloader_set_order(_ handle: OpaquePointer?, _ value: imgdl_order) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).setOrder(try ConfigReader.order(value)) }
}

@_cdecl("imgdl_downloader_set_suspended") @implementation
public func imgdl_downloader_set_suspended(_ handle: OpaquePointer?, _ suspended: Int32) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).setSuspended(suspended != 0) }
}

@_cdecl("imgdl_downloader_is_suspended") @implementation
public func imgdl_downloader_is_suspended(_ handle: OpaquePointer?) -> Int32 {
    inLibrary { (try? downloader(handle))?.isSuspended == true ? 1 : 0 }
}

@_cdecl("imgdl_downloader_enter_background") @implementation
public func imgdl_downloader_enter_background(_ handle: OpaquePointer?, _ grace: UInt32) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).enterBackground(grace: grace == 0 ? nil : Int64(grace)) }
}

@_cdecl("imgdl_downloader_enter_foreground") @implementation
public func imgdl_downloader_enter_foreground(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).enterForeground() }
}

@_cdecl("imgdl_downloader_network_changed") @implementation
public func imgdl_downloader_network_changed(_ handle: OpaquePointer?) -> imgdl_status {
    call { () throws(Failure) in try downloader(handle).networkChanged() }
}

@_cdecl("imgdl_downloader_invalidate") @implementation
public func imgdl_downloader_invalidate(_ handle: OpaquePointer?, _ cancels: Int32) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try downloader(handle)
        try refuseShared(handle)
        downloader.invalidate(cancels: cancels != 0)
    }
}

@_cdecl("imgdl_downloader_reconfigure") @implementation
public func imgdl_downloader_reconfigure(
    _ handle: OpaquePointer?, _ config: UnsafePointer<imgdl_config>?
) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try downloader(handle)
        try refuseShared(handle)
        // Files that the config names are read before the downloader is asked, and would be told of in its place.
        if HostCode.isOver { throw .processExits }
        try downloader.reconfigure(try ConfigReader(config).configuration)
    }
}

/// What would end it for the whole process.
func refuseShared(_ handle: OpaquePointer?) throws(Failure) {
    if Process.isShared(handle) {
        throw Failure(
            .invalidOperation, "the shared downloader belongs to the whole process: its session cannot be ended")
    }
}
