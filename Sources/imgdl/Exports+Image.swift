import CImgdl
import ImgdlCore

/// What an imgdl_image handle stands for.
final class ImageObject {
    let image: DecodedImage

    init(_ image: DecodedImage) { self.image = image }

    /// A new handle with one reference.
    static func handle(_ image: DecodedImage) -> OpaquePointer? {
        HandleTable.shared.insert(ImageObject(image), .image)
    }
}

/// What an imgdl_data handle stands for.
final class DataObject {
    let bytes: BodySlice

    init(_ bytes: BodySlice) { self.bytes = bytes }

    static func handle(_ bytes: BodySlice) -> OpaquePointer? { HandleTable.shared.insert(DataObject(bytes), .data) }
}

/// The objects, and not what is in them: of that a copy is not free.
private func image(_ handle: OpaquePointer?) -> ImageObject? {
    HandleTable.shared.object(handle, .image) as? ImageObject
}
private func data(_ handle: OpaquePointer?) -> DataObject? { HandleTable.shared.object(handle, .data) as? DataObject }

@_cdecl("imgdl_image_width") @implementation
public func imgdl_image_width(_ handle: OpaquePointer?) -> UInt32 { UInt32(image(handle)?.image.pixels.width ?? 0) }

@_cdecl("imgdl_image_height") @implementation
public func imgdl_image_height(_ handle: OpaquePointer?) -> UInt32 { UInt32(image(handle)?.image.pixels.height ?? 0) }

@_cdecl("imgdl_image_stride") @implementation
public func imgdl_image_stride(_ handle: OpaquePointer?) -> Int { image(handle)?.image.pixels.stride ?? 0 }

@_cdecl("imgdl_image_format") @implementation
public func imgdl_image_format(_ handle: OpaquePointer?) -> imgdl_format {
    image(handle)?.image.header.format.rawValue ?? 0
}

@_cdecl("imgdl_image_pixel_format") @implementation
public func imgdl_image_pixel_format(_ handle: OpaquePointer?) -> imgdl_pixel_format {
    image(handle)?.image.pixels.format.rawValue ?? 0
}

@_cdecl("imgdl_image_pixels") @implementation
public func imgdl_image_pixels(_ handle: OpaquePointer?) -> UnsafeRawPointer? {
    image(handle).map { UnsafeRawPointer($0.image.pixels.bytes) }
}

@_cdecl("imgdl_image_frame_count") @implementation
public func imgdl_image_frame_count(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle)?.image.header.frameCount ?? 0)
}

@_cdecl("imgdl_image_frame") @implementation
public func imgdl_image_frame(
    _ handle: OpaquePointer?, _ index: UInt32, _ frame: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        let image = try object(handle, .image, as: ImageObject.self).image
        guard let frame else { throw Failure(.invalidArgument, "frame is NULL") }
        guard let found = image.frame(Int(index)) else {
            let count = max(1, image.header.frameCount, image.frames.count)
            guard index >= count else { throw Failure(.notReady, "frame \(index) was not decoded") }
            throw Failure(.invalidArgument, "there is no frame \(index), but \(count)")
        }
        frame.pointee = ImageObject.handle(found)
    }
}

@_cdecl("imgdl_image_frame_duration_ms") @implementation
public func imgdl_image_frame_duration_ms(_ handle: OpaquePointer?, _ index: UInt32) -> UInt32 {
    guard let frames = image(handle)?.image.frames, index < frames.count else { return 0 }
    return UInt32(clamping: frames[Int(index)].milliseconds)
}

@_cdecl("imgdl_image_loop_count") @implementation
public func imgdl_image_loop_count(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle)?.image.loopCount ?? 0)
}

@_cdecl("imgdl_image_scale_factor") @implementation
public func imgdl_image_scale_factor(_ handle: OpaquePointer?) -> Double { image(handle)?.image.scaleFactor ?? 0 }

@_cdecl("imgdl_image_orientation") @implementation
public func imgdl_image_orientation(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle)?.image.header.orientation ?? 0)
}

@_cdecl("imgdl_image_is_complete") @implementation
public func imgdl_image_is_complete(_ handle: OpaquePointer?) -> Int32 {
    image(handle)?.image.isComplete == true ? 1 : 0
}

@_cdecl("imgdl_image_is_good_enough") @implementation
public func imgdl_image_is_good_enough(_ handle: OpaquePointer?) -> Int32 {
    image(handle)?.image.isGoodEnough == true ? 1 : 0
}

@_cdecl("imgdl_image_colour_notes") @implementation
public func imgdl_image_colour_notes(_ handle: OpaquePointer?) -> imgdl_colour_notes {
    image(handle)?.image.colour.notes.rawValue ?? 0
}

@_cdecl("imgdl_image_icc_profile") @implementation
public func imgdl_image_icc_profile(_ handle: OpaquePointer?, _ length: UnsafeMutablePointer<Int>?) -> UnsafeRawPointer?
{
    let profile = image(handle)?.image.colour.profile
    length?.pointee = profile?.bytes.count ?? 0
    return profile?.bytes.baseAddress
}

@_cdecl("imgdl_image_pass") @implementation
public func imgdl_image_pass(_ handle: OpaquePointer?) -> UInt32 { UInt32(clamping: image(handle)?.image.pass ?? 0) }

@_cdecl("imgdl_image_ready") @implementation
public func imgdl_image_ready(_ handle: OpaquePointer?) -> imgdl_rectangle {
    guard let ready = image(handle)?.image.ready else { return imgdl_rectangle() }
    return imgdl_rectangle(
        x: UInt32(ready.x), y: UInt32(ready.y), width: UInt32(ready.width), height: UInt32(ready.height))
}

@_cdecl("imgdl_image_retain") @implementation
public func imgdl_image_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .image) }

@_cdecl("imgdl_image_release") @implementation
public func imgdl_image_release(_ handle: OpaquePointer?) { _ = HandleTable.shared.release(handle, .image) }

@_cdecl("imgdl_data_bytes") @implementation
public func imgdl_data_bytes(_ handle: OpaquePointer?) -> UnsafeRawPointer? {
    data(handle).flatMap { $0.bytes.count > 0 ? $0.bytes.start : nil }
}

@_cdecl("imgdl_data_length") @implementation
public func imgdl_data_length(_ handle: OpaquePointer?) -> Int { data(handle)?.bytes.count ?? 0 }

@_cdecl("imgdl_data_retain") @implementation
public func imgdl_data_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .data) }

@_cdecl("imgdl_data_release") @implementation
public func imgdl_data_release(_ handle: OpaquePointer?) { _ = HandleTable.shared.release(handle, .data) }
