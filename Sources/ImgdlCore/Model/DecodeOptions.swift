/// What a subscriber wants done with the bytes. Equal options share one decode (features B4, T30).
package struct DecodeOptions: Hashable, Sendable {
    package static let defaultMaximumPixels: UInt64 = 100_000_000

    package var pixelFormat: PixelFormat = .rgba8
    /// Turn the picture as its EXIF orientation says; width and height are those of the turned picture.
    package var appliesOrientation = true
    /// Width times height that may be decoded; checked as soon as the header is read.
    package var maximumPixels: UInt64 = defaultMaximumPixels

    /// A box that the picture is scaled into while it is decoded, never enlarged; 0: that side is free (features X8).
    package var targetWidth = 0
    package var targetHeight = 0
    /// To the box exactly, whatever the proportions.
    package var stretches = false
    /// Bytes that all frames decoded may have together: sets the size in the box's place; nil: no such limit (features
    /// O8, X9).
    package var maximumOutputBytes: UInt64?
    package var decodesAllFrames = false
    /// One frame alone is `badImageData` (features O12).
    package var requiresAnimation = false
    package var maximumFrames = defaultMaximumFrames
    /// For bytes that do not tell what they are.
    package var formatHint = ImageFormat.unknown
    /// This codec of the host's and no other (features X5); nil: whichever can.
    package var coder: UInt64?

    /// Of width and of height as stored; nil: the pixels alone.
    package var maximumSide: Int?
    package var maximumScans = defaultMaximumScans
    /// Of all frames that are decoded; nil: as many as `maximumPixels`.
    package var maximumAnimationPixels: UInt64?
    /// Of EXIF and profile; nil: what is longer than `defaultMaximumMetadataBytes` is passed over.
    package var maximumMetadataBytes: Int?
    /// Of canvases and the codec's own; nil: none.
    package var maximumMemoryBytes: UInt64? = defaultMaximumMemoryBytes
    /// CPU time of the decoder's calls; nil: none.
    package var maximumMilliseconds: Int64? = defaultMaximumMilliseconds
    /// By the file's profile, where that can be used.
    package var convertsToSRGB = false
    /// For canvases that are given out; nil: the library's own memory.
    package var allocator: CanvasAllocator?
    /// The thumbnail in a JPEG's EXIF comes as the first partial image (features R05).
    package var showsThumbnailFirst = false
    /// A progressive JPEG is good enough from this scan on; nil: the decoder judges.
    package var goodEnoughScan: Int?

    package static let defaultMaximumFrames = 1000
    package static let defaultMaximumScans = 500
    package static let defaultMaximumMetadataBytes = 16 << 20
    package static let defaultMaximumMemoryBytes: UInt64 = 1 << 30
    package static let defaultMaximumMilliseconds: Int64 = 10_000
    package static let defaultScaleDownBytes: UInt64 = 60 << 20

    package init() {}
}
