/// How large a picture is decoded, orientation applied. Never larger than it is stored.
package struct OutputSize: Equatable, Sendable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// For a picture that would be shown as `width` × `height`, both positive. `frames`: how many are decoded. The byte
    /// limit takes the place of the box (features X8, X9, O8).
    package init(width: Int, height: Int, frames: Int = 1, _ options: DecodeOptions) {
        self.init(width: width, height: height)
        if let most = options.maximumOutputBytes {
            limit(toPixels: Int(clamping: most / UInt64(options.pixelFormat.bytesPerPixel * max(1, frames))))
        } else if options.stretches, options.targetWidth > 0, options.targetHeight > 0 {
            self.width = min(width, options.targetWidth)
            self.height = min(height, options.targetHeight)
        } else {
            fit(
                options.targetWidth > 0 ? options.targetWidth : .max,
                options.targetHeight > 0 ? options.targetHeight : .max)
        }
    }

    /// Keeps the proportions; the side that follows is rounded up, as SDWebImage does (features G9).
    private mutating func fit(_ boxWidth: Int, _ boxHeight: Int) {
        guard width > boxWidth || height > boxHeight else { return }
        let byWidth = Self.roundedUp(boxWidth, of: height, by: width)
        if boxWidth < width, byWidth <= boxHeight {
            (width, height) = (boxWidth, byWidth)
        } else {
            (width, height) = (Self.roundedUp(boxHeight, of: width, by: height), boxHeight)
        }
    }

    /// The largest of about these proportions, at least 1 × 1: a square one has the root of the number as its side.
    private mutating func limit(toPixels most: Int) {
        let pixels = CheckedNumber(width) * CheckedNumber(height)
        guard pixels.map({ $0 > CheckedNumber(most) }) ?? true else { return }
        let side = (Double(max(1, most)) * Double(width) / Double(height)).squareRoot()
        let scaled = min(width, max(1, Int(side.rounded(.down))))
        // Rounded down from the width that was taken, and a long strip cut at its end that is one pixel thick.
        var follows = min(height, max(1, Int(Double(scaled) * Double(height) / Double(width))))
        if follows > max(1, most / scaled) { follows = max(1, most / scaled) }
        (width, height) = (min(scaled, max(1, most / follows)), follows)
    }

    /// box * numerator / denominator, which is no more than the numerator: no product of any header's and any caller's is
    /// too large. A box that holds the denominator limits nothing.
    private static func roundedUp(_ box: Int, of numerator: Int, by denominator: Int) -> Int {
        guard box < denominator else { return .max }
        let (quotient, remainder) = denominator.dividingFullWidth(box.multipliedFullWidth(by: numerator))
        return remainder > 0 ? quotient + 1 : quotient
    }
}
