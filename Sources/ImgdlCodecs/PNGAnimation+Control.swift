import ImgdlCore

extension PNGAnimation {
    /// A number of a chunk's data.
    static func number(_ bytes: UnsafeRawBufferPointer, _ at: CheckedNumber, _ count: Int = 4) -> CheckedNumber? {
        CheckedNumber(bigEndian: bytes, at: at, count: count)
    }

    /// The data of a chunk fcTL.
    struct Control {
        var rectangle: PixelRectangle
        var milliseconds: Int
        var disposal: FrameCanvas.Disposal
        var blends: Bool

        /// nil: the data has another length than 26 bytes, a rectangle beyond 32 bits, or an operation that does not exist.
        init?(_ bytes: UnsafeRawBufferPointer) {
            func number(_ at: CheckedNumber, _ count: Int = 4) -> CheckedNumber? {
                PNGAnimation.number(bytes, at, count)
            }
            guard bytes.count == 26 else { return nil }
            let area = PixelRectangle(x: number(12), y: number(16), width: number(4), height: number(8))
            guard let area, let thousandths = (number(20, 2) * 1000)?.count(upTo: .max),
                let denominator = number(22, 2)?.count(upTo: .max)
            else { return nil }
            rectangle = area
            milliseconds = thousandths / (denominator == 0 ? 100 : denominator)
            switch bytes[24] {
            case 0: disposal = .none
            case 1: disposal = .background
            case 2: disposal = .previous
            default: return nil
            }
            guard bytes[25] < 2 else { return nil }
            blends = bytes[25] == 1
        }
    }
}
