import ImgdlCore

/// Canvases for partial images of a picture that is rewritten pass by pass. One that nobody holds any more is used again:
/// two of them are enough for a viewer that holds the last.
struct PassSnapshots<Position> {
    private static var most: Int { 2 }

    private var canvases: [(pixels: PixelBuffer, position: Position)] = []

    /// A canvas for the picture as it is at `position`, and what it shows yet; nil: it is new.
    mutating func next(
        _ position: Position, make: () throws(Failure) -> PixelBuffer
    ) throws(Failure) -> (pixels: PixelBuffer, last: Position?) {
        for index in canvases.indices where isKnownUniquelyReferenced(&canvases[index].pixels) {
            let last = canvases[index].position
            canvases[index].position = position
            return (canvases[index].pixels, last)
        }
        let pixels = try make()
        if canvases.count == Self.most { canvases.removeFirst() }
        canvases.append((pixels, position))
        return (pixels, nil)
    }
}
