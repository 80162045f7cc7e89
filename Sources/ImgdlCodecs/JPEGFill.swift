/// Runs of 0xFF in a JPEG. Any number of them may stand before a marker; libjpeg reads all of them again with each piece, and
/// what it has not done with is kept: so no more of a run is handed on than a segment can have for its contents.
struct JPEGFill {
    private static let longest = 1 << 16
    /// At the end of what was handed on.
    private var run = 0

    /// The piece without those at its beginning that are too many.
    mutating func shortened(_ piece: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard run > 0 || piece.last == 0xFF else { return piece }
        let first = run > 0 ? piece.firstIndex { $0 != 0xFF } ?? piece.count : 0
        let dropped = min(first, max(0, run + first - Self.longest))
        if first == piece.count {
            run += first - dropped
        } else {
            run = piece.lastIndex { $0 != 0xFF }.map { piece.count - 1 - $0 } ?? piece.count
        }
        return UnsafeRawBufferPointer(rebasing: piece.dropFirst(dropped))
    }
}
