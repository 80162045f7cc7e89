/// The tag table of an ICC profile (ICC.1:2022 section 7.3), and whether lcms2 is done with it in bounded time: asked before
/// lcms2 sees it, since no call of it can be stopped.
///
/// Sampling a profile costs what one colour costs, tens of thousands of times. The tables of old have at most ten curves, two
/// matrices and one grid on each colour's way; a list of processing elements has as many as its author likes, and a picture of
/// 700 bytes can hold one that takes minutes. What lcms2 cannot make sense of is for it to refuse.
struct ProfileTags {
    private static let headerLength = 128
    private static let entryLength = 12
    /// lcms2 refuses more.
    private static let most = 100
    /// The most numbers in a grid: 46 × 46 × 46 colours, or 17 × 17 × 17 × 17 inks. Those that are made have 33 and 17.
    static let mostGridNumbers = 300_000
    /// And in all curves on both sides of it: ten of 4,096 are made at most.
    static let mostCurveNumbers = 64 << 10
    /// lcms2 refuses a longer curve.
    static let mostCurvePoints = 32_767
    /// The most bytes of what is neither grid nor text: the longest curve, with room to spare.
    static let mostTagBytes = 128 << 10

    private struct Tag {
        let name: UInt32
        let start: Int
        let length: Int
    }

    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var areBounded: Bool {
        guard let count = number(Self.headerLength, 4), count <= Self.most else { return true }
        for index in 0..<count {
            let entry = Self.headerLength + 4 + index * Self.entryLength
            guard let name = number(entry, 4), let start = number(entry + 4, 4), let length = number(entry + 8, 4)
            else {
                return true
            }
            guard isBounded(Tag(name: UInt32(name), start: start, length: length)) else { return false }
        }
        return true
    }

    private func isBounded(_ tag: Tag) -> Bool {
        // lcms2 prefers these wherever they stand.
        if Self.processing.contains(tag.name) { return false }
        guard let type = number(tag.start, 4) else { return true }
        if type == Self.code("mpet") { return false }
        if Self.tables.contains(tag.name) { return isBoundedTable(tag, type: UInt32(type)) }
        return !Self.read.contains(tag.name) || tag.length <= Self.mostTagBytes
    }

    /// A grid's size is what its corners say: lcms2 makes room for it before it looks whether so much is there.
    private func isBoundedTable(_ tag: Tag, type: UInt32) -> Bool {
        guard let inputs = number(tag.start + 8, 1), let outputs = number(tag.start + 9, 1) else { return true }
        switch type {
        case Self.code("mft1"), Self.code("mft2"):
            guard let points = number(tag.start + 10, 1) else { return true }
            guard isBoundedGrid(Array(repeating: points, count: inputs), outputs) else { return false }
            guard type == Self.code("mft2") else { return true }
            guard let before = number(tag.start + 48, 2), let behind = number(tag.start + 50, 2) else { return true }
            return inputs * before + outputs * behind <= Self.mostCurveNumbers
        case Self.code("mAB "):
            guard hasBoundedCurves(tag, inputs, outputs) else { return false }
            guard let offset = number(tag.start + 24, 4), offset > 0 else { return true }
            var points: [Int] = []
            for index in 0..<min(inputs, 16) {
                guard let count = number(tag.start + offset + index, 1) else { return true }
                points.append(count)
            }
            return inputs <= 16 && isBoundedGrid(points, outputs)
        default:
            return false
        }
    }

    private func isBoundedGrid(_ points: [Int], _ outputs: Int) -> Bool {
        var numbers = outputs
        for count in points {
            numbers *= count
            guard numbers <= Self.mostGridNumbers else { return false }
        }
        return true
    }

    /// Curves of a table of the newer kind lie in three sets, anywhere: those ahead of the grid, behind it, behind the matrix.
    private func hasBoundedCurves(_ tag: Tag, _ inputs: Int, _ outputs: Int) -> Bool {
        var numbers = 0
        for (place, count) in [(28, inputs), (20, outputs), (12, outputs)] {
            guard let offset = number(tag.start + place, 4) else { return true }
            var start = tag.start + offset
            for _ in 0..<(offset > 0 ? count : 0) {
                guard let type = number(start, 4), let length = number(start + 8, 4) else { break }
                // Formulas are short.
                let isCurve = type == Self.code("curv")
                guard isCurve ? length <= Self.mostCurvePoints : type == Self.code("para") else { break }
                if isCurve { numbers += length }
                start += 12 + (isCurve ? 2 * length : 4 * Self.formulaNumbers(number(start + 8, 2)))
                start = (start + 3) & ~3
            }
        }
        return numbers <= Self.mostCurveNumbers
    }

    /// ICC.1:2022 table 68.
    private static func formulaNumbers(_ kind: Int?) -> Int {
        let counts = [1, 3, 4, 5, 7]
        return kind.flatMap { counts.indices.contains($0) ? counts[$0] : nil } ?? 0
    }

    /// Offsets are 32-bit numbers and small sums of them: Int holds them all. nil: not there.
    private func number(_ offset: Int, _ count: Int) -> Int? {
        guard offset >= 0, offset <= bytes.count - count else { return nil }
        return (0..<count).reduce(0) { $0 << 8 | Int(bytes[offset + $1]) }
    }

    private static func code(_ name: StaticString) -> UInt32 {
        name.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }

    private static func codes(_ names: [StaticString]) -> [UInt32] { names.map(code) }

    private static let processing = codes(["D2B0", "D2B1", "D2B2", "D2B3", "B2D0", "B2D1", "B2D2", "B2D3"])
    private static let tables = codes(["A2B0", "A2B1", "A2B2", "A2B3"])
    /// What else lcms2 reads of a profile that pixels come from.
    private static let read = codes([
        "rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC", "kTRC", "wtpt", "bkpt", "chad",
    ])
}
