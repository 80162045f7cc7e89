import ImgdlCore

@testable import ImgdlCodecs

func fuzzEXIF(_ bytes: UnsafeRawBufferPointer) throws {
    let orientation = EXIFReader.orientation(of: bytes)
    try require((1...8).contains(orientation), "the orientation is \(orientation)")
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
    if case .known(let width, let height, _) = whole { try require(width > 0 && height > 0, "\(width) × \(height)") }
}
