import CImgdl
import ImgdlCodecs
import ImgdlCore

/// What an imgdl_coder handle stands for.
final class CoderObject {
    /// In the registry.
    let id: UInt64

    init(_ id: UInt64) { self.id = id }
}

@_cdecl("imgdl_coder_register") @implementation
public func imgdl_coder_register(
    _ table: UnsafePointer<imgdl_coder_table>?, _ coder: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        guard let coder else { throw Failure(.invalidArgument, "coder is NULL") }
        let codec = try HostCodec(try imgdl_coder_table.read(table))
        coder.pointee = HandleTable.shared.insert(CoderObject(Process.codec.registry.add(codec)), .coder)
    }
}

@_cdecl("imgdl_coder_release") @implementation
public func imgdl_coder_release(_ coder: OpaquePointer?) {
    inLibrary {
        guard let released = HandleTable.shared.release(coder, .coder) as? CoderObject else { return }
        Process.codec.registry.remove(released.id)
    }
}
