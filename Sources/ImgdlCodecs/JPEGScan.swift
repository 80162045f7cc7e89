import CCodecs

/// What the header of a scan says (ITU-T T.81 B.2.3), as far as it matters for showing it.
struct JPEGScan: Equatable {
    /// From 1.
    var number: Int
    /// The only one in the scan, of a picture of three, from 0; nil: several, or a picture of other components.
    var component: Int?
    /// Coefficients in zigzag order.
    var band: ClosedRange<Int>
    /// Bits that were still missing before the scan (0: the first of its band), and those that are missing behind it.
    var missingBefore: Int
    var missingAfter: Int

    /// Whether a picture with this scan has one of its two colour differences finer than the other, and so false colours, and
    /// the next scan mends that. While nothing is known of the next one the picture is shown.
    func isHalfOfColours(before next: JPEGScan?) -> Bool {
        guard let next, next.number == number + 1, let component, let other = next.component else { return false }
        return component > 0 && other > 0 && component != other && next.band == band
            && next.missingBefore == missingBefore && next.missingAfter == missingAfter
    }
}

extension JPEGScan {
    /// nil: there is no such scan.
    init?(_ header: codec_jpeg_scan_header) {
        guard header.number > 0, header.first <= header.last else { return nil }
        self.init(
            number: Int(header.number), component: header.component < 0 ? nil : Int(header.component),
            band: Int(header.first)...Int(header.last), missingBefore: Int(header.high), missingAfter: Int(header.low))
    }
}
