import ImgdlCore

/// Canvases for partial images of a picture that is rewritten pass by pass, and for the picture at the end. One that nobody
/// holds any more is used again: two of them are enough for a viewer that holds the last.
struct PassSnapshots<Position> {
    private struct Given {
        weak var pixels: PixelBuffer?
    }

    private static var most: Int { 2 }

    /// How many there may be at a time, whoever holds them; one of these is the picture's. With room for no other there are
    /// no partial images.
    var room = 1
    private var canvases: [(pixels: PixelBuffer, position: Position)] = []
    /// Those that somebody holds, too.
    private var given: [Given] = []

    /// A canvas for the picture as it is at `position`, and what it shows yet; nil: it is new. Throws `memoryLimit` where
    /// there is no room for a partial image besides those that are held.
    mutating func next(
        _ position: Position, isLast: Bool, make: () throws(Failure) -> PixelBuffer
    ) throws(Failure) -> (pixels: PixelBuffer, last: Position?) {
        guard isLast || room > 1 else { throw Self.isFull }
        for index in canvases.indices where isKnownUniquelyReferenced(&canvases[index].pixels) {
            let last = canvases[index].position
            canvases[index].position = position
            return (canvases[index].pixels, last)
        }
        given.removeAll { $0.pixels == nil }
        guard isLast || given.count < room - 1 else { throw Self.isFull }
        let pixels = try make()
        given.append(Given(pixels: pixels))
        if canvases.count == Self.most { canvases.removeFirst() }
        canvases.append((pixels, position))
        return (pixels, nil)
    }

    private static var isFull: Failure { Failure(.memoryLimit, "there is no room for one more partial image") }
}
