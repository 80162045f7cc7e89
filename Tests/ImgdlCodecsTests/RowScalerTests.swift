import CCodecs
import ImgdlCore
import XCTest

@testable import ImgdlCodecs

/// Features B20, B22: pixels made smaller are the averages of what they cover.
final class RowScalerTests: XCTestCase {
    private struct Numbers {
        var state: UInt64 = 1

        mutating func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
    }

    private func picture(_ width: Int, _ height: Int, _ format: PixelFormat, alpha: Int?) throws -> PixelBuffer {
        let pixels = try PixelBuffer(width: width, height: height, format: format)
        let bytes = pixels.bytes.assumingMemoryBound(to: UInt8.self)
        var numbers = Numbers(state: UInt64(width * 1000 + height))
        for pixel in 0..<width * height {
            let opacity = alpha ?? [0, 255, 255, 12, 128, 250][numbers.next(6)]
            for channel in 0..<3 {
                // Columns and rows that alternate: what wrong weights show in.
                let value = (pixel / width + pixel % width) % 2 == 0 ? numbers.next(256) : 255 - numbers.next(20)
                bytes[4 * pixel + channel] = UInt8(format.isPremultiplied ? (value * opacity + 127) / 255 : value)
            }
            bytes[4 * pixel + 3] = UInt8(opacity)
        }
        return pixels
    }

    /// By definition, in floating point: channels times alpha, alpha last, 0 to 255.
    private func average(_ source: PixelBuffer, _ x: Int, _ y: Int, _ width: Int, _ height: Int) -> [Double] {
        let bytes = source.bytes.assumingMemoryBound(to: UInt8.self)
        func parts(_ at: Int, of count: Int, among total: Int) -> [(Int, Double)] {
            let (from, to) = (
                Double(at) * Double(total) / Double(count), Double(at + 1) * Double(total) / Double(count)
            )
            return (Int(from)..<min(total, Int(to.rounded(.up)))).map {
                ($0, (min(to, Double($0 + 1)) - max(from, Double($0))) / (to - from))
            }
        }
        var sums = [Double](repeating: 0, count: 4)
        for (row, rowWeight) in parts(y, of: height, among: source.height) {
            for (column, columnWeight) in parts(x, of: width, among: source.width) {
                let at = 4 * (row * source.width + column)
                let alpha = source.format.isPremultiplied ? 1 : Double(bytes[at + 3]) / 255
                for channel in 0..<3 { sums[channel] += rowWeight * columnWeight * alpha * Double(bytes[at + channel]) }
                sums[3] += rowWeight * columnWeight * Double(bytes[at + 3])
            }
        }
        return sums
    }

    private func check(_ source: PixelBuffer, _ width: Int, _ height: Int, isOpaque: Bool, to format: PixelFormat)
        throws
    {
        let layout = CanvasLayout(storedWidth: width, storedHeight: height, orientation: .upright)
        let canvas = try PixelBuffer(width: width, height: height, format: format)
        let scaler = try RowScaler(
            width: source.width, height: source.height, to: layout, from: source.alpha(isOpaque: isOpaque), format)
        scaler.begin(on: canvas, nil, nil)
        try scaler.push(
            source.bytes, rows: source.height, width: source.width, stride: source.stride, nil)
        XCTAssertEqual(scaler.rows, height)
        let got = canvas.bytes.assumingMemoryBound(to: UInt8.self)
        for y in 0..<height {
            for x in 0..<width {
                let wanted = average(source, x, y, width, height)
                for channel in 0..<4 {
                    var value = wanted[channel]
                    // A colour that is hardly there has few steps to be told in.
                    var tolerance = 1.0
                    if channel < 3, !format.isPremultiplied {
                        guard wanted[3] >= 1 else { continue }
                        value = min(255, value * 255 / wanted[3])
                        tolerance = max(1, 16 / wanted[3])
                    }
                    let difference = abs(Double(got[4 * (y * width + x) + channel]) - value)
                    let name =
                        "\(source.width) x \(source.height) to \(width) x \(height), \(source.format) to \(format)"
                    if difference > tolerance { return XCTFail("\(name): \(x), \(y): \(difference)") }
                }
            }
        }
    }

    func testIsTheAverageOfTheArea() throws {
        let sizes = [
            (37, 21, 20, 11), (37, 21, 36, 20), (64, 64, 32, 16), (100, 3, 7, 3), (3, 100, 3, 7), (1, 500, 1, 3),
            (500, 1, 3, 1), (201, 150, 1, 1), (5, 5, 5, 5), (257, 259, 128, 2), (1029, 40, 512, 20), (2, 2, 1, 2),
        ]
        for (inWidth, inHeight, width, height) in sizes {
            let opaque = try picture(inWidth, inHeight, .rgba8, alpha: 255)
            try check(opaque, width, height, isOpaque: true, to: .rgba8)
            try check(opaque, width, height, isOpaque: false, to: .rgba8)
            let straight = try picture(inWidth, inHeight, .rgba8, alpha: nil)
            try check(straight, width, height, isOpaque: false, to: .rgba8)
            try check(straight, width, height, isOpaque: false, to: .rgba8Premultiplied)
            let multiplied = try picture(inWidth, inHeight, .bgra8Premultiplied, alpha: nil)
            try check(multiplied, width, height, isOpaque: false, to: .bgra8Premultiplied)
        }
    }

    /// Flat colours stay what they are, whatever the sizes.
    func testFlatStaysFlat() throws {
        for alpha in [255, 7] {
            for (width, height) in [(31, 17), (100_000, 2), (2, 100_000), (70_000, 1)] {
                let source = try PixelBuffer(width: width, height: height, format: .rgba8)
                let pixel = [UInt8(250), 128, 3, UInt8(alpha)]
                for at in 0..<source.byteCount {
                    source.bytes.storeBytes(of: pixel[at % 4], toByteOffset: at, as: UInt8.self)
                }
                let layout = CanvasLayout(
                    storedWidth: width == 31 ? 11 : 1, storedHeight: 1, orientation: .upright)
                let scaled = try source.scaled(to: layout, isOpaque: alpha == 255)
                let bytes = UnsafeRawBufferPointer(start: scaled.bytes, count: scaled.byteCount)
                let isFlat = bytes.indices.allSatisfy { bytes[$0] == pixel[$0 % 4] }
                XCTAssert(isFlat, "\(width) x \(height): \(Array(bytes.prefix(4)))")
            }
        }
    }

    /// Rounding does not add up over thousands of rows and columns.
    func testRoundingDoesNotAddUp() throws {
        for (from, to) in [(2232, 1957), (2239, 1754), (4000, 3999), (3001, 17)] {
            for (width, height, newWidth, newHeight) in [(from, 2, to, 2), (2, from, 2, to)] {
                let source = try PixelBuffer(width: width, height: height, format: .rgba8)
                source.bytes.initializeMemory(as: UInt8.self, repeating: 218, count: source.byteCount)
                let layout = CanvasLayout(storedWidth: newWidth, storedHeight: newHeight, orientation: .upright)
                for isOpaque in [true, false] {
                    let scaled = try source.scaled(to: layout, isOpaque: isOpaque)
                    let bytes = UnsafeRawBufferPointer(start: scaled.bytes, count: scaled.byteCount)
                    XCTAssert(bytes.allSatisfy { $0 == 218 }, "\(from) to \(to)")
                }
            }
        }
    }

    /// A red that nobody sees does not tint the white beside it.
    func testInvisibleColoursDoNotShow() throws {
        let source = try PixelBuffer(width: 2, height: 1, format: .rgba8)
        for (at, value) in [255, 0, 0, 0, 255, 255, 255, 255].enumerated() {
            source.bytes.storeBytes(of: UInt8(value), toByteOffset: at, as: UInt8.self)
        }
        let layout = CanvasLayout(storedWidth: 1, storedHeight: 1, orientation: .upright)
        let pixel = try source.scaled(to: layout, isOpaque: false)
        XCTAssertEqual((0..<4).map { pixel.bytes.load(fromByteOffset: $0, as: UInt8.self) }, [255, 255, 255, 128])
    }

    /// Sizes that would grow, or hold nothing, are refused rather than believed.
    func testRefusesToEnlarge() {
        for (width, height) in [(11, 10), (10, 11), (0, 1), (1, 0)] {
            let layout = CanvasLayout(storedWidth: width, storedHeight: height, orientation: .upright)
            XCTAssertThrowsError(try RowScaler(width: 10, height: 10, to: layout, from: CODEC_ALPHA_OPAQUE, .rgba8))
        }
    }

    func testRowsBehindTheLastAreIgnored() throws {
        let source = try picture(10, 10, .rgba8, alpha: 255)
        let layout = CanvasLayout(storedWidth: 3, storedHeight: 3, orientation: .turnedRight)
        let canvas = try PixelBuffer(width: 3, height: 3, format: .rgba8)
        let scaler = try RowScaler(width: 10, height: 10, to: layout, from: CODEC_ALPHA_OPAQUE, .rgba8)
        for _ in 0..<2 {
            scaler.begin(on: canvas, nil, nil)
            try scaler.push(source.bytes, rows: 10, width: 10, stride: source.stride, nil)
            try scaler.push(source.bytes, rows: 10, width: 10, stride: source.stride, nil)
            XCTAssertEqual(scaler.rows, 3)
        }
    }
}
