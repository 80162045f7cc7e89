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

/// A new imgdl_data handle with one reference; nil for nil.
func dataHandle(_ bytes: BodySlice?) -> OpaquePointer? {
    guard let bytes else { return nil }
    return HandleTable.shared.insert(bytes.held, .data)
}

/// What is asked of an image, looked at where it lies; nil where the handle is none.
private func image<Part>(_ handle: OpaquePointer?, _ part: (DecodedImage) -> Part) -> Part? {
    HandleTable.shared.read(handle, .image) { (object: ImageObject) in part(object.image) }
}

private func data<Part>(_ handle: OpaquePointer?, _ part: (HeldBytes) -> Part) -> Part? {
    HandleTable.shared.read(handle, .data, part)
}

@_cdecl("imgdl_image_width") @implementation
public func imgdl_image_width(_ handle: OpaquePointer?) -> UInt32 { UInt32(image(handle) { $0.pixels.width } ?? 0) }

@_cdecl("imgdl_image_height") @implementation
public func imgdl_image_height(_ handle: OpaquePointer?) -> UInt32 { UInt32(image(handle) { $0.pixels.height } ?? 0) }

@_cdecl("imgdl_image_stride") @implementation
public func imgdl_image_stride(_ handle: OpaquePointer?) -> Int { image(handle) { $0.pixels.stride } ?? 0 }

@_cdecl("imgdl_image_format") @implementation
public func imgdl_image_format(_ handle: OpaquePointer?) -> imgdl_format {
    image(handle) { $0.header.format.rawValue } ?? 0
}

@_cdecl("imgdl_image_pixel_format") @implementation
public func imgdl_image_pixel_format(_ handle: OpaquePointer?) -> imgdl_pixel_format {
    image(handle) { $0.pixels.format.rawValue } ?? 0
}

@_cdecl("imgdl_image_pixels") @implementation
public func imgdl_image_pixels(_ handle: OpaquePointer?) -> UnsafeRawPointer? {
    image(handle) { UnsafeRawPointer($0.pixels.bytes) }
}

@_cdecl("imgdl_image_frame_count") @implementation
public func imgdl_image_frame_count(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle) { $0.knownFrameCount } ?? 0)
}

@_cdecl("imgdl_image_frame") @implementation
public func imgdl_image_frame(
    _ handle: OpaquePointer?, _ index: UInt32, _ frame: UnsafeMutablePointer<OpaquePointer?>?
) -> imgdl_status {
    call { () throws(Failure) in
        let image = try object(handle, .image, as: ImageObject.self).image
        guard let frame else { throw Failure(.invalidArgument, "frame is NULL") }
        guard let found = image.frame(Int(index)) else {
            let count = image.knownFrameCount
            guard index >= count else { throw Failure(.notReady, "frame \(index) was not decoded") }
            throw Failure(.invalidArgument, "there is no frame \(index), but \(count)")
        }
        frame.pointee = ImageObject.handle(found)
    }
}

@_cdecl("imgdl_image_frame_duration_ms") @implementation
public func imgdl_image_frame_duration_ms(_ handle: OpaquePointer?, _ index: UInt32) -> UInt32 {
    image(handle) { index < $0.frames.count ? UInt32(clamping: $0.frames[Int(index)].milliseconds) : 0 } ?? 0
}

@_cdecl("imgdl_image_loop_count") @implementation
public func imgdl_image_loop_count(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle) { $0.loopCount } ?? 0)
}

@_cdecl("imgdl_image_scale_factor") @implementation
public func imgdl_image_scale_factor(_ handle: OpaquePointer?) -> Double { image(handle) { $0.scaleFactor } ?? 0 }

@_cdecl("imgdl_image_orientation") @implementation
public func imgdl_image_orientation(_ handle: OpaquePointer?) -> UInt32 {
    UInt32(clamping: image(handle) { $0.header.orientation } ?? 0)
}

@_cdecl("imgdl_image_is_complete") @implementation
public func imgdl_image_is_complete(_ handle: OpaquePointer?) -> Int32 {
    image(handle) { $0.isComplete } == true ? 1 : 0
}

@_cdecl("imgdl_image_notes") @implementation
public func imgdl_image_notes(_ handle: OpaquePointer?) -> imgdl_picture_notes {
    image(handle) { $0.hasIncompleteEnd } == true ? UInt32(IMGDL_IMAGE_INCOMPLETE_END) : 0
}

@_cdecl("imgdl_image_is_good_enough") @implementation
public func imgdl_image_is_good_enough(_ handle: OpaquePointer?) -> Int32 {
    image(handle) { $0.isGoodEnough } == true ? 1 : 0
}

@_cdecl("imgdl_image_colour_notes") @implementation
public func imgdl_image_colour_notes(_ handle: OpaquePointer?) -> imgdl_colour_notes {
    image(handle) { $0.colour.notes.rawValue } ?? 0
}

@_cdecl("imgdl_image_icc_profile") @implementation
public func imgdl_image_icc_profile(_ handle: OpaquePointer?, _ length: UnsafeMutablePointer<Int>?) -> UnsafeRawPointer?
{
    let profile = image(handle) { $0.colour.profile } ?? nil
    length?.pointee = profile?.bytes.count ?? 0
    return profile?.bytes.baseAddress
}

@_cdecl("imgdl_image_pass") @implementation
public func imgdl_image_pass(_ handle: OpaquePointer?) -> UInt32 { UInt32(clamping: image(handle) { $0.pass } ?? 0) }

@_cdecl("imgdl_image_ready") @implementation
public func imgdl_image_ready(_ handle: OpaquePointer?) -> imgdl_rectangle {
    guard let ready = image(handle, { $0.ready }) else { return imgdl_rectangle() }
    return imgdl_rectangle(
        x: UInt32(ready.x), y: UInt32(ready.y), width: UInt32(ready.width), height: UInt32(ready.height))
}

@_cdecl("imgdl_image_retain") @implementation
public func imgdl_image_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .image) }

@_cdecl("imgdl_image_release") @implementation
public func imgdl_image_release(_ handle: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(handle, .image) }
}

@_cdecl("imgdl_data_bytes") @implementation
public func imgdl_data_bytes(_ handle: OpaquePointer?) -> UnsafeRawPointer? {
    data(handle) { $0.count > 0 ? $0.start : nil } ?? nil
}

@_cdecl("imgdl_data_length") @implementation
public func imgdl_data_length(_ handle: OpaquePointer?) -> Int { data(handle) { $0.count } ?? 0 }

@_cdecl("imgdl_data_retain") @implementation
public func imgdl_data_retain(_ handle: OpaquePointer?) -> OpaquePointer? { retain(handle, .data) }

@_cdecl("imgdl_data_release") @implementation
public func imgdl_data_release(_ handle: OpaquePointer?) {
    inLibrary { _ = HandleTable.shared.release(handle, .data) }
}
