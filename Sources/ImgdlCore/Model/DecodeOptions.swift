/// What a subscriber wants done with the bytes. Equal options share one decode (features B4, T30).
package struct DecodeOptions: Hashable, Sendable {
    package static let defaultMaximumPixels: UInt64 = 100_000_000

    package var pixelFormat: PixelFormat = .rgba8
    /// Turn the picture as its EXIF orientation says; width and height are those of the turned picture.
    package var appliesOrientation = true
    /// Width times height that may be decoded; checked as soon as the header is read.
    package var maximumPixels: UInt64 = defaultMaximumPixels

    package init() {}
}
