/// How a pixel lies in memory, byte by byte; the state of alpha is part of the name. Values are ABI.
package enum PixelFormat: UInt32, Sendable {
    case rgba8 = 1
    case rgba8Premultiplied = 2
    case bgra8 = 3
    case bgra8Premultiplied = 4
    /// Three bytes; alpha is left out.
    case rgb8 = 5
    /// Four numbers of 16 bits, in the machine's order of bytes.
    case rgba16 = 6

    package var bytesPerPixel: Int {
        switch self {
        case .rgb8: 3
        case .rgba16: 8
        default: 4
        }
    }
    package var isPremultiplied: Bool { self == .rgba8Premultiplied || self == .bgra8Premultiplied }
    package var isBGRA: Bool { self == .bgra8 || self == .bgra8Premultiplied }
}

/// What a file is, by its content. Values are ABI.
package enum ImageFormat: UInt32, Sendable {
    case unknown = 0
    case jpeg = 1
    case png = 2
    case webp = 3
    case gif = 4
    /// Decoded by a codec of the host's.
    case other = 100
}
