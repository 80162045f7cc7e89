/// How far an Adam7 picture has come, and what its rows can be shown as (PNG third edition, section 8.1).
///
/// Each pass fills a gap: the first knows every eighth pixel of every eighth row, the next ones halve the distance across
/// and down in turn. Until then a pixel stands for those to its right and below it.
struct Adam7Position: Equatable {
    /// What a row is shown as: pixels of this row of the picture, so far apart, each as wide as that. They do not change any
    /// more.
    struct Source: Equatable {
        var row: Int
        var step: Int
    }

    /// The running pass, from 0.
    var pass: Int
    /// Rows of that pass which are there; it has fewer than the picture.
    var rows: Int

    /// nil: nothing is there yet.
    func source(of y: Int) -> Source? {
        // Between the rows that are known when this pass is over; the odd ones add columns, the even ones rows.
        let distance = 8 >> (pass / 2)
        if pass % 2 == 1 {
            return Source(row: y - y % distance, step: y / distance < rows ? distance / 2 : distance)
        }
        if pass == 0, y / distance >= rows { return nil }
        let known = pass == 0 || y / (2 * distance) < rows ? distance : 2 * distance
        return Source(row: y - y % known, step: distance)
    }

    /// How many rows of a picture of that height can be shown.
    func shownRows(height: Int) -> Int { pass > 0 ? height : min(height, 8 * rows) }
}
