import CImgdl
import ImgdlCore

@_cdecl("imgdl_executor_create_pumped") @implementation
public func imgdl_executor_create_pumped(_ executor: UnsafeMutablePointer<OpaquePointer?>?) -> imgdl_status {
    call { () throws(Failure) in
        guard let executor else { throw Failure(.invalidArgument, "executor is NULL") }
        executor.pointee = HandleTable.shared.insert(try PumpedExecutor(), .executor)
    }
}

@_cdecl("imgdl_executor_fd") @implementation
public func imgdl_executor_fd(_ executor: OpaquePointer?) -> Int32 {
    inLibrary { (try? object(executor, .executor, as: PumpedExecutor.self))?.descriptor ?? -1 }
}

@_cdecl("imgdl_executor_dispatch") @implementation
public func imgdl_executor_dispatch(
    _ executor: OpaquePointer?, _ maximum: UInt32, _ dispatched: UnsafeMutablePointer<UInt32>?
) -> imgdl_status {
    call { () throws(Failure) in
        let executor = try object(executor, .executor, as: PumpedExecutor.self)
        let count = try executor.dispatch(maximum: Int(maximum))
        dispatched?.pointee = UInt32(clamping: count)
    }
}

@_cdecl("imgdl_executor_retain") @implementation
public func imgdl_executor_retain(_ executor: OpaquePointer?) -> OpaquePointer? { retain(executor, .executor) }

@_cdecl("imgdl_executor_release") @implementation
public func imgdl_executor_release(_ executor: OpaquePointer?) {
    inLibrary { (HandleTable.shared.release(executor, .executor) as? PumpedExecutor)?.close() }
}
