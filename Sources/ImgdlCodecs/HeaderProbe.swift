import ImgdlCore

/// Reads the size of a picture out of its first bytes, whatever pieces they come in, and keeps a few of them at most.
/// It believes what it reads: the decoders judge later. What it cannot make sense of is `unknown`.
struct HeaderProbe: ImageProbe {
    private enum State {
        case signature
        case png
        case gif
        case webp
        case jpegMarker
        case jpegLength(marker: UInt8)
        case jpegFrame(marker: UInt8)
        case jpegComponents(marker: UInt8)
        case jpegScan
        case decided(PictureSize)
    }

    private var state = State.signature
    /// The bytes of the piece that is being read, as many as `wanted`.
    private var bytes = SIMD32<UInt8>()
    private var have = 0
    private var wanted = 3
    private var skips = 0
    /// Of a JPEG whose first scan will tell whether there are others.
    private var frame: JPEGFrame?

    private struct JPEGFrame {
        var width: CheckedNumber?
        var height: CheckedNumber?
        var components: Int
        /// Bytes a pixel that coefficients take, if they are kept.
        var coefficients: Int
    }

    mutating func feed(_ piece: UnsafeRawBufferPointer) -> PictureSize {
        var position = 0
        while true {
            if case .decided(let size) = state { return size }
            let skipped = min(skips, piece.count - position)
            skips -= skipped
            position += skipped
            let taken = min(wanted - have, piece.count - position)
            guard taken > 0 else { return .undecided }
            for index in 0..<taken { bytes[have + index] = piece[position + index] }
            have += taken
            position += taken
            if have == wanted { read() }
        }
    }

    // MARK: Pieces

    private mutating func decide(_ size: PictureSize) { state = .decided(size) }

    private mutating func decide(width: CheckedNumber?, height: CheckedNumber?, held: Int = 0, beside: Int = 0) {
        guard let width = width?.count32, let height = height?.count32, width > 0, height > 0 else {
            return decide(.unknown)
        }
        decide(.known(width: width, height: height, held: held, beside: beside))
    }

    /// The next piece, of so many bytes; `keeping`: together with those that are there.
    private mutating func expect(_ count: Int, _ next: State, skipping: Int = 0, keeping: Bool = false) {
        state = next
        skips = skipping
        if !keeping { have = 0 }
        wanted = have + count
    }

    private mutating func read() {
        switch state {
        case .signature: readSignature()
        case .png: readPNG()
        // An index for each pixel of the frame that is read.
        case .gif: decide(width: little(6, 2), height: little(8, 2), beside: 1)
        case .webp: readWebP()
        case .jpegMarker: readMarker()
        case .jpegLength(let marker): readLength(marker)
        case .jpegFrame(let marker): readFrame(marker)
        case .jpegComponents(let marker): readComponents(marker)
        case .jpegScan: readScan()
        case .decided: break
        }
    }

    private mutating func readSignature() {
        switch (bytes[0], bytes[1], bytes[2]) {
        // Here the marker of the next segment begins already.
        case (0xFF, 0xD8, 0xFF):
            have = 1
            expect(1, .jpegMarker, keeping: true)
        case (0x89, 0x50, 0x4E): expect(26, .png, keeping: true)
        case (0x47, 0x49, 0x46): expect(7, .gif, keeping: true)
        case (0x52, 0x49, 0x46): expect(27, .webp, keeping: true)
        default: decide(.unknown)
        }
    }

    private func big(_ offset: CheckedNumber, _ count: Int) -> CheckedNumber? {
        withUnsafeBytes(of: bytes) { CheckedNumber(bigEndian: $0, at: offset, count: count) }
    }

    private func little(_ offset: CheckedNumber, _ count: Int) -> CheckedNumber? {
        withUnsafeBytes(of: bytes) { CheckedNumber(littleEndian: $0, at: offset, count: count) }
    }

    /// Fourteen bits of four bytes.
    private func side(_ offset: CheckedNumber, from bit: Int = 0) -> CheckedNumber? {
        little(offset, 4)?.length.map { CheckedNumber($0 >> bit & 0x3FFF) }
    }

    private func holds(_ text: StaticString, at offset: Int) -> Bool {
        text.withUTF8Buffer { text in text.indices.allSatisfy { bytes[offset + $0] == text[$0] } }
    }

    // MARK: PNG and WebP

    private mutating func readPNG() {
        guard big(0, 4) == 0x8950_4E47, big(4, 4) == 0x0D0A_1A0A, holds("IHDR", at: 12) else { return decide(.unknown) }
        decide(width: big(16, 4), height: big(20, 4), held: bytes[28] == 0 ? 0 : bytes[24] == 16 ? 8 : 4)
    }

    private mutating func readWebP() {
        guard holds("RIFF", at: 0), holds("WEBP", at: 8) else { return decide(.unknown) }
        if holds("VP8X", at: 12) {
            // Frames of an animation are looked at one by one; and what is behind the profile is not known yet.
            let (isAnimated, hasAlpha) = (bytes[20] & 0x02 != 0, bytes[20] & 0x10 != 0)
            let taken = isAnimated ? 0 : WebPStill.bytesPerPixel(isLossless: false, hasAlpha: hasAlpha)
            decide(width: little(24, 3) + 1, height: little(27, 3) + 1, beside: taken)
        } else if holds("VP8L", at: 12), bytes[20] == 0x2F {
            let taken = WebPStill.bytesPerPixel(isLossless: true, hasAlpha: true)
            decide(width: side(21) + 1, height: side(21, from: 14) + 1, beside: taken)
        } else if holds("VP8 ", at: 12), bytes[23] == 0x9D, bytes[24] == 0x01, bytes[25] == 0x2A {
            decide(width: side(26), height: side(26, from: 16))
        } else {
            decide(.unknown)
        }
    }

    // MARK: JPEG

    /// 0xFF and the marker; more 0xFF may stand between them (ITU-T T.81 B.1.1.2). Junk before it is passed over, as
    /// libjpeg does.
    private mutating func readMarker() {
        let marker = bytes[1]
        if bytes[0] != 0xFF {
            bytes[0] = marker
            have = marker == 0xFF ? 1 : 0
            return expect(2 - have, .jpegMarker, keeping: true)
        }
        switch marker {
        case 0xFF:
            have = 1
            expect(1, .jpegMarker, keeping: true)
        // Markers that stand alone, and junk.
        case 0x00, 0x01, 0xD0...0xD8: expect(2, .jpegMarker)
        // The end, or a scan before any frame.
        case 0xD9: decide(.unknown)
        case 0xDA where frame == nil: decide(.unknown)
        default: expect(2, .jpegLength(marker: marker))
        }
    }

    private mutating func readLength(_ marker: UInt8) {
        guard let rest = (big(0, 2) - 2)?.count(upTo: Self.longestSegment) else { return decide(.unknown) }
        // Frames: all from 0xC0 on but the tables (0xC4, 0xCC) and what is reserved (0xC8).
        if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker) {
            guard frame == nil else { return decide(.unknown) }
            expect(6, .jpegFrame(marker: marker), keeping: true)
        } else if marker == 0xDA {
            expect(1, .jpegScan, keeping: true)
        } else {
            expect(2, .jpegMarker, skipping: rest)
        }
    }

    private mutating func readFrame(_ marker: UInt8) {
        let components = Int(bytes[7])
        guard (1...Self.mostComponents).contains(components) else { return decide(width: big(5, 2), height: big(3, 2)) }
        expect(3 * components, .jpegComponents(marker: marker), keeping: true)
    }

    private static var longestSegment: Int { Int(UInt16.max) }
    /// libjpeg knows no more.
    private static var mostComponents: Int { 4 }

    /// Two bytes for each sample; of colours there may be fewer than pixels.
    private mutating func readComponents(_ marker: UInt8) {
        let count = Int(bytes[7])
        var (across, down, samples) = (0, 0, 0)
        for component in 0..<count {
            let sampling = Int(bytes[9 + 3 * component])
            across = max(across, sampling >> 4)
            down = max(down, sampling & 15)
            samples += (sampling >> 4) * (sampling & 15)
        }
        let whole = max(1, across * down)
        let frame = JPEGFrame(
            width: big(5, 2), height: big(3, 2), components: count, coefficients: (2 * samples + whole - 1) / whole)
        // Progressive ones have several scans, and one component has one.
        if marker & 3 == 2 { return decide(width: frame.width, height: frame.height, held: frame.coefficients) }
        if count == 1 { return decide(width: frame.width, height: frame.height) }
        self.frame = frame
        guard let rest = (big(0, 2) - CheckedNumber(8 + 3 * count))?.count(upTo: Self.longestSegment) else {
            return decide(.unknown)
        }
        expect(2, .jpegMarker, skipping: rest)
    }

    /// Of fewer components than there are: others follow.
    private mutating func readScan() {
        guard let frame else { return decide(.unknown) }
        let isAlone = Int(bytes[2]) >= frame.components
        decide(width: frame.width, height: frame.height, held: isAlone ? 0 : frame.coefficients)
    }
}
