/// The order in which an interlaced GIF stores its rows: every eighth, those between, and so on.
struct GIFPasses {
    private static let first = [0, 4, 2, 1]
    private static let step = [8, 8, 4, 2]
    /// With pass 0 alone every eighth row is known, with pass 1 every fourth …
    private static let distance = [8, 4, 2, 1]

    let height: Int
    private(set) var pass = 0
    /// The row that is stored next.
    private(set) var row = 0

    init(height: Int) { self.height = height }

    mutating func advance() {
        row += Self.step[pass]
        while row >= height, pass < 3 {
            pass += 1
            row = Self.first[pass]
        }
    }

    /// The row that is shown at `y` for now: its own, or the nearest one above that has come; nil: none.
    func source(of y: Int) -> Int? {
        let own = y & ~(Self.distance[pass] - 1)
        // Rows of earlier passes are there; of this pass those ahead of the next.
        if own & (Self.distance[pass] * 2 - 1) == 0, pass > 0 { return own }
        if own < row { return own }
        return pass > 0 ? y & ~(Self.distance[pass - 1] - 1) : nil
    }
}
