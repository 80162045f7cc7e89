import ImgdlCore

/// Copies of a picture that is rewritten pass by pass, for partial images. One that nobody holds any more is used again, and
/// then only the rows that have changed since have to be copied: two of them are enough for a viewer that holds the last.
struct PassSnapshots {
    /// How far the picture had been written when it was copied.
    struct Position: Equatable {
        var pass: Int
        var rows: Int

        /// Rows of a picture of that height that were written between here and there, at most once each.
        func rowsChanged(until end: Position, height: Int) -> [Range<Int>] {
            switch end.pass - pass {
            case 0: return [rows..<max(rows, end.rows)]
            case 1 where end.rows < rows: return [0..<end.rows, rows..<height]
            default: return [0..<height]
            }
        }
    }

    private static let most = 2

    private var copies: [(pixels: PixelBuffer, position: Position)] = []

    /// A canvas for the picture as it is at `position`, and the rows of it that are missing there.
    mutating func next(
        _ position: Position, height: Int, make: () throws(Failure) -> PixelBuffer
    ) throws(Failure) -> (pixels: PixelBuffer, missing: [Range<Int>]) {
        for index in copies.indices where isKnownUniquelyReferenced(&copies[index].pixels) {
            let missing = copies[index].position.rowsChanged(until: position, height: height)
            copies[index].position = position
            return (copies[index].pixels, missing)
        }
        let pixels = try make()
        if copies.count == Self.most { copies.removeFirst() }
        copies.append((pixels, position))
        return (pixels, [0..<(position.pass > 0 ? height : position.rows)])
    }
}
