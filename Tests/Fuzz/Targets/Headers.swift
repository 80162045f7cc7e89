import CCodecs
import ImgdlCore

@testable import ImgdlCodecs

func fuzzEXIF(_ bytes: UnsafeRawBufferPointer) throws {
    let orientation = EXIFReader.orientation(of: bytes)
    try require((1...8).contains(orientation), "the orientation is \(orientation)")
    guard let thumbnail = EXIFReader.thumbnail(in: bytes) else { return }
    // Within the block: AddressSanitizer sees what is not.
    try require(!thumbnail.isEmpty && thumbnail.reduce(0) { $0 ^ $1 } >= 0, "an empty thumbnail")
}

/// The size is the same whatever the pieces, and once it is known it stays.
func fuzzProbe(_ bytes: UnsafeRawBufferPointer) throws {
    var probe = HeaderProbe()
    let whole = probe.feed(bytes)
    var other = HeaderProbe()
    var last = PictureSize.undecided
    try bytes.forEachPiece(seed: bytes.seed) { piece in
        let size = other.feed(piece)
        try require(last == .undecided || size == last, "first \(last), then \(size)")
        last = size
    }
    try require(last == whole, "in pieces \(last), as a whole \(whole)")
    if case .known(let width, let height, _, _) = whole { try require(width > 0 && height > 0, "\(width) × \(height)") }
}

/// Where scans begin and end is the same in pieces, and lies within the file.
func fuzzJPEG(_ bytes: UnsafeRawBufferPointer) throws {
    func text(_ walker: JPEGScanWalker) -> String {
        "\(walker.scanCount) \(walker.wholeScanCount) \(walker.scanStart) \(walker.scanEnd) \(walker.isAtEnd)"
    }
    func walk(_ walker: inout JPEGScanWalker, over piece: UnsafeRawBufferPointer) {
        var passed = 0
        while passed < piece.count {
            let (count, fill) = walker.walk(UnsafeRawBufferPointer(rebasing: piece[passed...]), maximumScans: .max)
            passed += count + fill
        }
    }
    var whole = JPEGScanWalker()
    walk(&whole, over: bytes)
    var walker = JPEGScanWalker()
    bytes.forEachPiece(seed: bytes.seed) { walk(&walker, over: $0) }
    try require(text(walker) == text(whole), "in pieces \(text(walker)), as a whole \(text(whole))")
    try require(whole.wholeScanCount <= whole.scanCount, "more scans end than begin")
    try require(max(whole.scanStart, whole.scanEnd) <= bytes.count, "a scan behind the end")
}

/// An ICC profile, for pixels of every kind: what comes out has the alpha that went in.
func fuzzColour(_ bytes: UnsafeRawBufferPointer) throws {
    for samples in [CODEC_SAMPLES_COLOURS, CODEC_SAMPLES_GRAY, CODEC_SAMPLES_INKS] {
        guard let profile = ProfileBytes(bytes), ProfileTags(profile.bytes).areBounded,
            let conversion = ColourConversion(
                profile, samples, isInverted: bytes.count % 3 == 1, isBGRA: bytes.count % 2 == 1,
                DecodeClock(DecodeOptions()))
        else { continue }
        var pixels = (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        if samples == CODEC_SAMPLES_INKS {
            codec_colour_inks(conversion.session, &pixels, 16)
            try require(stride(from: 3, to: 64, by: 4).allSatisfy { pixels[$0] == 255 }, "transparent inks")
        } else {
            var converted = [UInt8](repeating: 0, count: 64)
            codec_colour_bytes(conversion.session, pixels, &converted, 16)
            try require(stride(from: 3, to: 64, by: 4).allSatisfy { pixels[$0] == converted[$0] }, "another alpha")
            let words = pixels.map { UInt16($0) &* 257 }
            var convertedWords = [UInt16](repeating: 0, count: 64)
            codec_colour_words(conversion.session, words, &convertedWords, 16)
            try require(stride(from: 3, to: 64, by: 4).allSatisfy { words[$0] == convertedWords[$0] }, "another alpha")
        }
    }
}
