import ImgdlCore

/// The tag table of an ICC profile (ICC.1:2022 section 7.3), and whether lcms2 is done with it in bounded time: asked before
/// lcms2 sees it, since no call of it can be stopped.
///
/// Sampling a profile costs what one colour costs, tens of thousands of times. The tables of old have at most ten curves, two
/// matrices and one grid on each colour's way; a list of processing elements has as many as its author likes, and a picture of
/// 700 bytes can hold one that takes minutes. What lcms2 cannot make sense of is for it to refuse.
struct ProfileTags {
    private static let headerLength: CheckedNumber = 128
    private static let entryLength: CheckedNumber = 12
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

    /// The most bytes of all: lcms2 copies them in one go.
    static let mostBytes = 16 << 20

    private struct Tag {
        let name: CheckedNumber
        let start: CheckedNumber
        let length: CheckedNumber
    }

    private let bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var areBounded: Bool {
        guard bytes.count <= Self.mostBytes else { return false }
        guard let count = number(Self.headerLength, 4)?.count(upTo: Self.most) else { return true }
        for index in 0..<count {
            let entry = Self.headerLength + 4 + CheckedNumber(index) * Self.entryLength
            guard let name = number(entry, 4), let start = number(entry + 4, 4), let length = number(entry + 8, 4)
            else {
                return true
            }
            guard isBounded(Tag(name: name, start: start, length: length)) else { return false }
        }
        return true
    }

    private func isBounded(_ tag: Tag) -> Bool {
        // lcms2 prefers these wherever they stand.
        if Self.processing.contains(tag.name) { return false }
        guard let type = number(tag.start, 4) else { return true }
        if type == Self.code("mpet") { return false }
        if Self.tables.contains(tag.name) { return isBoundedTable(tag, type: type) }
        return !Self.read.contains(tag.name) || tag.length.count(upTo: Self.mostTagBytes) != nil
    }

    /// A grid's size is what its corners say: lcms2 makes room for it before it looks whether so much is there.
    private func isBoundedTable(_ tag: Tag, type: CheckedNumber) -> Bool {
        guard let inputs = byte(tag.start + 8), let outputs = byte(tag.start + 9) else { return true }
        switch type {
        case Self.code("mft1"), Self.code("mft2"):
            guard let points = byte(tag.start + 10) else { return true }
            guard isBoundedGrid(Array(repeating: points, count: inputs), outputs) else { return false }
            guard type == Self.code("mft2") else { return true }
            guard let before = number(tag.start + 48, 2), let behind = number(tag.start + 50, 2) else { return true }
            let numbers = CheckedNumber(inputs) * before + CheckedNumber(outputs) * behind
            return numbers?.count(upTo: Self.mostCurveNumbers) != nil
        case Self.code("mAB "):
            guard hasBoundedCurves(tag, inputs, outputs) else { return false }
            guard let offset = number(tag.start + 24, 4), offset > 0 else { return true }
            var points: [Int] = []
            for index in 0..<min(inputs, 16) {
                guard let count = byte(tag.start + offset + CheckedNumber(index)) else { return true }
                points.append(count)
            }
            return inputs <= 16 && isBoundedGrid(points, outputs)
        default:
            return false
        }
    }

    private func isBoundedGrid(_ points: [Int], _ outputs: Int) -> Bool {
        var numbers: CheckedNumber? = CheckedNumber(outputs)
        for count in points {
            numbers = numbers * CheckedNumber(count)
            guard numbers?.count(upTo: Self.mostGridNumbers) != nil else { return false }
        }
        return true
    }

    /// Curves of a table of the newer kind lie in three sets, anywhere: those ahead of the grid, behind it, behind the matrix.
    private func hasBoundedCurves(_ tag: Tag, _ inputs: Int, _ outputs: Int) -> Bool {
        var numbers: CheckedNumber? = 0
        for (place, count) in [(28, inputs), (20, outputs), (12, outputs)] as [(CheckedNumber, Int)] {
            guard let offset = number(tag.start + place, 4) else { return true }
            var start = tag.start + offset
            for _ in 0..<(offset > 0 ? count : 0) {
                guard let type = number(start, 4), let length = number(start + 8, 4) else { break }
                // Formulas are short.
                let isCurve = type == Self.code("curv")
                let isKnown = isCurve ? length.count(upTo: Self.mostCurvePoints) != nil : type == Self.code("para")
                guard isKnown else { break }
                if isCurve { numbers = numbers + length }
                let data = isCurve ? 2 * length : 4 * Self.formulaNumbers(number(start + 8, 2))
                start = (start + 12 + data)?.roundedUp(to: 4)
            }
        }
        return numbers?.count(upTo: Self.mostCurveNumbers) != nil
    }

    /// ICC.1:2022 table 68.
    private static func formulaNumbers(_ kind: CheckedNumber?) -> CheckedNumber {
        let counts: [CheckedNumber] = [1, 3, 4, 5, 7]
        return kind?.count(upTo: counts.count - 1).map { counts[$0] } ?? 0
    }

    /// nil: not there.
    private func number(_ offset: CheckedNumber?, _ count: Int) -> CheckedNumber? {
        CheckedNumber(bigEndian: bytes, at: offset, count: count)
    }

    private func byte(_ offset: CheckedNumber?) -> Int? { number(offset, 1)?.count(upTo: Int(UInt8.max)) }

    private static func code(_ name: StaticString) -> CheckedNumber {
        CheckedNumber(name.withUTF8Buffer { $0.reduce(Int64(0)) { $0 << 8 | Int64($1) } })
    }

    private static func codes(_ names: [StaticString]) -> [CheckedNumber] { names.map(code) }

    private static let processing = codes(["D2B0", "D2B1", "D2B2", "D2B3", "B2D0", "B2D1", "B2D2", "B2D3"])
    private static let tables = codes(["A2B0", "A2B1", "A2B2", "A2B3"])
    /// What else lcms2 reads of a profile that pixels come from.
    private static let read = codes([
        "rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC", "kTRC", "wtpt", "bkpt", "chad",
    ])
}
