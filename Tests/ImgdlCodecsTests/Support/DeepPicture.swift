/// A picture of 16 bits a channel, RGBA, and what becomes of it by definition, in floating point.
struct DeepPicture: Equatable {
    var width: Int
    var height: Int
    /// Row by row, four a pixel, alpha straight.
    var words: [UInt16]

    init(width: Int, height: Int, words: [UInt16]) { (self.width, self.height, self.words) = (width, height, words) }

    /// Any values, their low bytes too; every other pixel bright, as wrong weights show in such patterns.
    init(width: Int, height: Int, isOpaque: Bool = false, seed: UInt64 = 1) {
        var state = seed &* 2 &+ UInt64(width * 1000 + height)
        func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
        words = []
        for pixel in 0..<width * height {
            let isBright = (pixel / width + pixel % width) % 2 == 0
            for _ in 0..<3 { words.append(isBright ? 65535 - UInt16(next() % 300) : UInt16(next() % 65536)) }
            let opacities: [UInt16] = [0, 65535, 65535, 3, 3000, 32901, UInt16(next() % 65536)]
            words.append(isOpaque ? 65535 : opacities[Int(next() % 7)])
        }
        (self.width, self.height) = (width, height)
    }

    init(_ bytes: [UInt8], width: Int, height: Int) {
        self.init(width: width, height: height, words: bytes.withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) })
    }

    func pixel(_ x: Int, _ y: Int) -> [UInt16] { Array(words[4 * (y * width + x)..<4 * (y * width + x) + 4]) }

    // MARK: Files

    /// `orientation` comes ahead of the pixels.
    func encoded(hasAlpha: Bool = true, isInterlaced: Bool = false, orientation: UInt8? = nil) -> [UInt8] {
        var file = PNGFile(
            width: width, height: height, colorType: hasAlpha ? 6 : 2, depth: 16, isInterlaced: isInterlaced)
        if let orientation { file.add("eXIf", Self.exif(orientation)) }
        file.add("IDAT", imageData(hasAlpha: hasAlpha, isInterlaced: isInterlaced))
        return file.ended()
    }

    static func exif(_ orientation: UInt8) -> [UInt8] { Array(JPEGSegments.exif(orientation).dropFirst(6)) }

    func imageData(hasAlpha: Bool = true, isInterlaced: Bool = false) -> [UInt8] {
        let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        var raw: [UInt8] = []
        for (firstX, firstY, stepX, stepY) in isInterlaced ? passes : [(0, 0, 1, 1)] where firstX < width {
            for y in stride(from: firstY, to: height, by: stepY) {
                raw.append(0)
                for x in stride(from: firstX, to: width, by: stepX) {
                    for word in pixel(x, y).prefix(hasAlpha ? 4 : 3) { raw += [UInt8(word >> 8), UInt8(word & 255)] }
                }
            }
        }
        return PNGFile.deflated(raw)
    }

    // MARK: What becomes of it

    /// As EXIF numbers it.
    func turned(_ orientation: Int) -> DeepPicture {
        let (newWidth, newHeight) = orientation >= 5 ? (height, width) : (width, height)
        var result = DeepPicture(
            width: newWidth, height: newHeight, words: [UInt16](repeating: 0, count: words.count))
        for y in 0..<height {
            for x in 0..<width {
                let (right, bottom) = (width - 1 - x, height - 1 - y)
                let places = [
                    (x, y), (right, y), (right, bottom), (x, bottom), (y, x), (bottom, x), (bottom, right), (y, right),
                ]
                let place = places[orientation - 1]
                let at = 4 * (place.1 * newWidth + place.0)
                result.words.replaceSubrange(at..<at + 4, with: pixel(x, y))
            }
        }
        return result
    }

    /// Averages of areas, colours weighted by alpha, not rounded.
    func averages(width newWidth: Int, height newHeight: Int) -> [Double] {
        func parts(_ at: Int, of count: Int, among total: Int) -> [(Int, Double)] {
            let (from, to) = (at * total, (at + 1) * total)
            return (from / count...(to - 1) / count).map {
                ($0, Double(min(to, ($0 + 1) * count) - max(from, $0 * count)))
            }
        }
        var result: [Double] = []
        for y in 0..<newHeight {
            for x in 0..<newWidth {
                var sums = [Double](repeating: 0, count: 4)
                for (row, rowWeight) in parts(y, of: newHeight, among: height) {
                    for (column, columnWeight) in parts(x, of: newWidth, among: width) {
                        let pixel = pixel(column, row).map(Double.init)
                        let weight = rowWeight * columnWeight
                        for channel in 0..<3 { sums[channel] += weight * pixel[3] * pixel[channel] }
                        sums[3] += weight * pixel[3]
                    }
                }
                result += (0..<3).map { sums[3] > 0 ? sums[$0] / sums[3] : 0 }
                result.append(sums[3] / Double(width * height))
            }
        }
        return result
    }

    /// APNG's operations: `picture` onto this one.
    mutating func draw(_ picture: DeepPicture, x left: Int, y top: Int, blends: Bool) {
        for y in 0..<picture.height {
            for x in 0..<picture.width {
                let at = 4 * ((top + y) * width + left + x)
                let above = picture.pixel(x, y).map(Double.init)
                let below = words[at..<at + 4].map(Double.init)
                var result = picture.pixel(x, y)
                if blends, above[3] == 0 { continue }
                if blends, above[3] < 65535, below[3] > 0 {
                    let (own, rest) = (above[3] * 65535, (65535 - above[3]) * below[3])
                    for c in 0..<3 {
                        result[c] = UInt16(((above[c] * own + below[c] * rest) / (own + rest)).rounded())
                    }
                    result[3] = UInt16(((own + rest) / 65535).rounded())
                }
                words.replaceSubrange(at..<at + 4, with: result)
            }
        }
    }

    mutating func clear(x left: Int, y top: Int, width: Int, height: Int) {
        for y in top..<top + height {
            for at in 4 * (y * self.width + left)..<4 * (y * self.width + left + width) { words[at] = 0 }
        }
    }
}
