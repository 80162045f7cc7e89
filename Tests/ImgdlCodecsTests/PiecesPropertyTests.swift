import Glibc
import ImgdlCore
import XCTest

/// B5, B7: JPEGs and WebPs, whole and damaged, end alike in one piece, in single bytes and in odd sizes, looked at in between or
/// not: the same code and words, the same pixels, the same salvaged part.
final class PiecesPropertyTests: XCTestCase {
    /// Larger files, unscaled ones too, and more damage: with IMGDL_LONG=1. Always: CorpusTests' unscaled pieces.
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false
    private static let seed = getenv("IMGDL_SEED").flatMap { UInt64(String(cString: $0)) } ?? 2026

    private func isTheSame(_ bytes: [UInt8], _ name: String, _ options: DecodeOptions) -> Bool {
        let ways = [(1, false), (1, true), (37, true), (1009, false), (1009, true)].filter { pieces, _ in
            pieces > bytes.count / 30_000
        }
        return checkPieces(bytes, name, options, ways).isTheSame
    }

    private struct Damage {
        var state: UInt64

        mutating func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % max(1, bound)
        }

        /// One to three places with other bytes, more or fewer of them; now and then the end cut off.
        mutating func done(to bytes: [UInt8]) -> [UInt8] {
            var damaged = bytes
            for _ in 0...next(3) where damaged.count > 4 {
                let at = 2 + next(damaged.count - 2)
                switch next(6) {
                case 0: damaged[at] = 0xFF
                case 1: damaged[at] = UInt8(next(256))
                case 2: damaged[at] ^= 1 << UInt8(next(8))
                case 3: damaged.insert(contentsOf: (0...next(9)).map { _ in UInt8(next(256)) }, at: at)
                case 4: damaged.removeSubrange(at..<min(damaged.count, at + 1 + next(9)))
                default: if next(3) == 0 { damaged.removeSubrange(at...) }
                }
            }
            return damaged
        }
    }

    func testCorpusFiles() throws {
        let most = Self.isLong ? Int.max : 6_000
        let formats = ["jpeg", "webp"]
        for file in try Corpus.files(atLeast: 180, where: { formats.contains($0.format) && $0.bytes.count < most }) {
            var options = decodeOptions()
            options.maximumPixels = 1 << 22
            if Self.isLong { _ = isTheSame(file.bytes, file.path, options) }
            options.targetWidth = 50
            _ = isTheSame(file.bytes, "\(file.path), scaled", options)
        }
    }

    func testDamagedFiles() {
        print("seed \(Self.seed)")
        var damage = Damage(state: Self.seed)
        let rounds = Self.isLong ? 300 : 10
        var failures = 0
        for var picture in Picture.everyCoding where !picture.name.hasSuffix("png") {
            (picture.spec.width, picture.spec.height) = (67, 45)
            let bytes = picture.encoded()
            for round in 0..<rounds where failures < 20 {
                var options = decodeOptions()
                options.maximumPixels = 1 << 20
                if round % 5 == 4 { options.targetWidth = 20 }
                if !isTheSame(damage.done(to: bytes), "\(picture.name), round \(round)", options) { failures += 1 }
            }
        }
    }
}
