import TestPictures
import XCTest

/// A drawn picture, encoded in memory.
struct Picture {
    var name: String
    var spec = picture_spec()

    init(
        _ name: String, _ kind: picture_kind, width: Int32 = 201, height: Int32 = 150, seed: UInt32 = 7,
        orientation: Int32 = 0
    ) {
        self.name = name
        spec.kind = kind.rawValue
        spec.width = width
        spec.height = height
        spec.seed = seed
        spec.orientation = orientation
    }

    func encoded() -> [UInt8] {
        var spec = spec
        var size = 0
        guard let bytes = picture_encode(&spec, &size) else {
            XCTFail("\(name) could not be encoded")
            return []
        }
        defer { picture_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: size))
    }

    /// One of each coding.
    static let everyCoding: [Picture] = {
        var restarts = Picture("restarts.jpg", PICTURE_JPEG_BASELINE)
        restarts.spec.restart_interval = 5
        return [
            Picture("baseline.jpg", PICTURE_JPEG_BASELINE), Picture("progressive.jpg", PICTURE_JPEG_PROGRESSIVE),
            Picture("gray.jpg", PICTURE_JPEG_GRAY), Picture("cmyk.jpg", PICTURE_JPEG_CMYK),
            Picture("ycck.jpg", PICTURE_JPEG_YCCK), Picture("arithmetic.jpg", PICTURE_JPEG_ARITHMETIC),
            Picture("arithmetic-progressive.jpg", PICTURE_JPEG_ARITHMETIC_PROGRESSIVE),
            Picture("separate-scans.jpg", PICTURE_JPEG_SEPARATE_SCANS), restarts,
            Picture("rgb.png", PICTURE_PNG_RGB), Picture("rgba.png", PICTURE_PNG_RGBA),
            Picture("palette.png", PICTURE_PNG_PALETTE), Picture("gray16.png", PICTURE_PNG_GRAY16),
            Picture("adam7.png", PICTURE_PNG_ADAM7), Picture("adam7-rgba.png", PICTURE_PNG_ADAM7_RGBA),
            Picture("lossy.webp", PICTURE_WEBP_LOSSY), Picture("lossless.webp", PICTURE_WEBP_LOSSLESS),
            Picture("lossy-alpha.webp", PICTURE_WEBP_LOSSY_ALPHA),
            Picture("lossless-alpha.webp", PICTURE_WEBP_LOSSLESS_ALPHA),
            Picture("animated.webp", PICTURE_WEBP_ANIMATED),
        ]
    }()

    /// Pictures of `everyCoding`, by name. A name that is none of theirs is a failure.
    static func codings(_ names: String...) throws -> [Picture] {
        try names.map { name in try XCTUnwrap(everyCoding.first { $0.name == name }, name) }
    }
}

extension Array where Element == UInt8 {
    var sha256: String {
        var digest = [UInt8](repeating: 0, count: 32)
        withUnsafeBufferPointer { picture_sha256($0.baseAddress, $0.count, &digest) }
        return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
