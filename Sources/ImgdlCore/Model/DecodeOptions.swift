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
    /// Of a progressive JPEG; each costs a walk over all coefficients, however short it is (features B10, I41).
    package var maximumScans = defaultMaximumScans
    /// Partial images show no scan behind this one of a progressive JPEG: the next is the whole picture (features R26); 0: all.
    package var goodEnoughScan = 0
    /// The first partial image of a JPEG is the thumbnail in its EXIF (features R05).
    package var showsThumbnailFirst = false
    /// This codec of the host's and no other (features X5); nil: whichever can.
    package var coder: UInt64?

    package static let defaultMaximumFrames = 1000
    /// Real progressive files have about ten.
    package static let defaultMaximumScans = 500
    package static let defaultScaleDownBytes: UInt64 = 60 << 20

    package init() {}
}
