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

/// Where scans begin and end is the same in pieces, and lies within the file.
func fuzzJPEG(_ bytes: UnsafeRawBufferPointer) throws {
    func text(_ walker: JPEGScanWalker) -> String {
        "\(walker.scanCount) \(walker.wholeScanCount) \(walker.scanStart) \(walker.scanEnd) \(walker.isAtEnd)"
    }
    var whole = JPEGScanWalker()
    _ = whole.walk(bytes, maximumScans: .max)
    var walker = JPEGScanWalker()
    bytes.forEachPiece(seed: bytes.seed) { _ = walker.walk($0, maximumScans: .max) }
    try require(text(walker) == text(whole), "in pieces \(text(walker)), as a whole \(text(whole))")
    try require(whole.wholeScanCount <= whole.scanCount, "more scans end than begin")
    try require(max(whole.scanStart, whole.scanEnd) <= bytes.count, "a scan behind the end")
}
