import ImgdlCore

/// A small picture of each format is decoded before any other, while nobody can fork: codecs, and Swift's runtime, make what
/// they need at its first use, under locks that a child of fork() would find taken for ever.
///
/// fork() does not wait for decoders, which take long, but in three places, where locks are taken later on:
/// - in the first pieces of work (`DecodeClock.begin`), for what the pictures below do not make Swift's runtime meet;
/// - in the first 16 KiB of each WebP (`WebPStill.beginning`), where libwebp looks at what it has made, under a lock;
/// - where a colour conversion is made and ended (`ColourConversion`), since lcms2 has a list of them, under a lock.
package enum FirstPictures {
    package static func decode() {
        for picture in [jpeg, progressive, png, lossy, lossless, gif] {
            decode(picture, DecodeOptions())
            var options = DecodeOptions()
            (options.targetWidth, options.targetHeight) = (3, 3)
            options.convertsToSRGB = true
            options.pixelFormat = .bgra8
            decode(picture, options)
        }
    }

    /// In two pieces, with a look in between. What it fails with, it fails with later, too.
    private static func decode(_ picture: [UInt8], _ options: DecodeOptions) {
        picture.withUnsafeBytes { bytes in
            let decoder = BuiltInCodec().makeDecoder(options)
            try? decoder.feed(UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count - 8)))
            _ = decoder.partialImage()
            try? decoder.feed(UnsafeRawBufferPointer(rebasing: bytes.suffix(8)))
            _ = try? decoder.finish(.whole)
        }
    }

    // 8 × 8 pixels, and one of the GIF, as each format's own encoder writes them without metadata: JPEG by libjpeg with
    // quality 20 and 4:2:0, in one scan and in its usual progression; PNG by libpng as RGBA; WebP by libwebp, lossy with half
    // of the pixels transparent in an ALPH chunk, and lossless. Any other such file can stand in place of one.

    private static let jpeg: [UInt8] = [
        255, 216, 255, 219, 0, 67, 0, 40, 28, 30, 35, 30, 25, 40, 35, 33, 35, 45, 43, 40,
        48, 60, 100, 65, 60, 55, 55, 60, 123, 88, 93, 73, 100, 145, 128, 153, 150, 143, 128, 140,
        138, 160, 180, 230, 195, 160, 170, 218, 173, 138, 140, 200, 255, 203, 218, 238, 245, 255, 255, 255,
        155, 193, 255, 255, 255, 250, 255, 230, 253, 255, 248, 255, 219, 0, 67, 1, 43, 45, 45, 60,
        53, 60, 118, 65, 65, 118, 248, 165, 140, 165, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        255, 192, 0, 17, 8, 0, 8, 0, 8, 3, 1, 34, 0, 2, 17, 1, 3, 17, 1, 255,
        196, 0, 21, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 2, 255, 196, 0, 24, 16, 1, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 3, 4, 33, 49, 255, 196, 0, 21, 1, 1, 1, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 255, 196, 0, 24, 17, 0, 3, 1, 1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 18, 1, 255, 218, 0,
        12, 3, 1, 0, 2, 17, 3, 17, 0, 63, 0, 138, 112, 243, 0, 70, 141, 221, 14, 146,
        93, 31, 255, 217,
    ]
    private static let progressive: [UInt8] = [
        255, 216, 255, 219, 0, 67, 0, 40, 28, 30, 35, 30, 25, 40, 35, 33, 35, 45, 43, 40,
        48, 60, 100, 65, 60, 55, 55, 60, 123, 88, 93, 73, 100, 145, 128, 153, 150, 143, 128, 140,
        138, 160, 180, 230, 195, 160, 170, 218, 173, 138, 140, 200, 255, 203, 218, 238, 245, 255, 255, 255,
        155, 193, 255, 255, 255, 250, 255, 230, 253, 255, 248, 255, 219, 0, 67, 1, 43, 45, 45, 60,
        53, 60, 118, 65, 65, 118, 248, 165, 140, 165, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248, 248,
        255, 194, 0, 17, 8, 0, 8, 0, 8, 3, 1, 34, 0, 2, 17, 1, 3, 17, 1, 255,
        196, 0, 21, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 2, 255, 196, 0, 21, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 1, 2, 255, 218, 0, 12, 3, 1, 0, 2, 16, 3, 16, 0, 0, 1, 145,
        15, 255, 196, 0, 22, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 1, 2, 255, 218, 0, 8, 1, 1, 0, 1, 5, 2, 132, 127, 255, 196, 0,
        23, 17, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        2, 17, 255, 218, 0, 8, 1, 3, 1, 1, 63, 1, 169, 90, 127, 255, 196, 0, 23, 17,
        0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 33,
        255, 218, 0, 8, 1, 2, 1, 1, 63, 1, 167, 167, 255, 196, 0, 20, 16, 1, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 218, 0, 8, 1, 1,
        0, 6, 63, 2, 127, 255, 196, 0, 20, 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 255, 218, 0, 8, 1, 1, 0, 1, 63, 33, 63, 255, 218,
        0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 16, 247, 255, 196, 0, 20, 17, 1, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 218, 0, 8, 1,
        3, 1, 1, 63, 16, 39, 255, 196, 0, 21, 17, 1, 1, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 1, 255, 218, 0, 8, 1, 2, 1, 1, 63, 16, 161,
        255, 196, 0, 22, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 33, 49, 255, 218, 0, 8, 1, 1, 0, 1, 63, 16, 130, 63, 255, 217,
    ]
    private static let png: [UInt8] = [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 8,
        0, 0, 0, 8, 8, 6, 0, 0, 0, 196, 15, 190, 139, 0, 0, 0, 34, 73, 68, 65,
        84, 24, 149, 99, 100, 96, 72, 254, 207, 34, 199, 192, 128, 19, 43, 48, 48, 48, 176, 224,
        195, 84, 81, 208, 72, 123, 43, 240, 42, 0, 0, 104, 148, 4, 147, 224, 181, 19, 210, 0,
        0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
    ]
    private static let lossy: [UInt8] = [
        82, 73, 70, 70, 98, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 88, 10, 0, 0, 0,
        16, 0, 0, 0, 7, 0, 0, 7, 0, 0, 65, 76, 80, 72, 13, 0, 0, 0, 1, 16,
        11, 38, 234, 153, 119, 207, 32, 34, 114, 142, 1, 0, 86, 80, 56, 32, 46, 0, 0, 0,
        240, 1, 0, 157, 1, 42, 8, 0, 8, 0, 9, 0, 172, 37, 176, 2, 116, 0, 244, 185,
        211, 216, 165, 64, 0, 254, 192, 49, 159, 250, 31, 250, 58, 164, 249, 33, 16, 253, 133, 59,
        227, 220, 187, 192, 0, 0,
    ]
    private static let lossless: [UInt8] = [
        82, 73, 70, 70, 58, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 45, 0, 0, 0,
        47, 7, 192, 1, 16, 137, 140, 232, 127, 44, 34, 8, 36, 109, 241, 182, 191, 255, 113, 40,
        100, 27, 1, 26, 201, 249, 131, 190, 8, 2, 129, 20, 190, 73, 51, 54, 129, 19, 64, 105,
        60, 184, 193, 0, 110, 0,
    ]
    private static let gif: [UInt8] = [
        71, 73, 70, 56, 57, 97, 1, 0, 1, 0, 128, 0, 0, 0, 0, 0, 255, 255, 255, 33,
        249, 4, 1, 0, 0, 0, 0, 44, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 1, 68,
        0, 59,
    ]
}
