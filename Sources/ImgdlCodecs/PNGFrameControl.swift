import ImgdlCore

extension PNGAnimation {
    /// The data of a chunk fcTL, 26 bytes of it.
    struct Control {
        var rectangle: PixelRectangle
        var milliseconds: Int
        var disposal: FrameCanvas.Disposal
        var blends: Bool

        /// nil for operations that do not exist.
        init?(_ bytes: UnsafeRawBufferPointer) {
            let area = PixelRectangle(
                x: Self.number(bytes, 12), y: Self.number(bytes, 16), width: Self.number(bytes, 4),
                height: Self.number(bytes, 8))
            guard let area, let thousandths = (Self.number(bytes, 20, 2) * 1000)?.count(upTo: .max),
                let denominator = Self.number(bytes, 22, 2)?.count(upTo: .max)
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

        static func number(_ bytes: UnsafeRawBufferPointer, _ at: CheckedNumber, _ count: Int = 4) -> CheckedNumber? {
            CheckedNumber(bigEndian: bytes, at: at, count: count)
        }
    }
}
