import CImgdl
import ImgdlCore

@_cdecl("imgdl_trim") @implementation
public func imgdl_trim(_ level: imgdl_trim_level) -> UInt64 {
    inLibrary {
        guard level >= UInt32(IMGDL_TRIM_UNUSED) else { return 0 }
        return Process.trim(
            connections: level >= UInt32(IMGDL_TRIM_CONNECTIONS), caches: level >= UInt32(IMGDL_TRIM_CACHES))
    }
}
