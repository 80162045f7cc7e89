import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Frames of an APNG of 16 bits are composed in 16 bits (features O11, G5; PNG third edition, section 11.3.6.2).
final class DeepAnimationTests: XCTestCase {
    private struct Frame {
        var picture: DeepPicture
        var x = 0
        var y = 0
        var disposal: UInt8
        var blend: UInt8
    }

    /// Every disposal and both operations, over colours of any opacity.
    private func frames(width: Int, height: Int) -> [Frame] {
        var frames = [Frame(picture: DeepPicture(width: width, height: height), disposal: 0, blend: 0)]
        for number in 1..<12 {
            let (partWidth, partHeight) = (max(1, width * (number % 4) / 3), max(1, height * (number % 3 + 1) / 3))
            frames.append(
                Frame(
                    picture: DeepPicture(width: partWidth, height: partHeight, seed: UInt64(number)),
                    x: (width - partWidth) * (number % 2), y: (height - partHeight) * (number / 2 % 2),
                    disposal: UInt8(number / 2 % 3), blend: number % 5 == 0 ? 0 : 1))
        }
        return frames
    }

    private func encoded(
        _ frames: [Frame], isInterlaced: Bool = false, orientation: UInt8? = nil
    ) -> [UInt8] {
        let first = frames[0].picture
        var file = PNGFile(width: first.width, height: first.height, depth: 16, isInterlaced: isInterlaced)
        if let orientation { file.add("eXIf", DeepPicture.exif(orientation)) }
        file.add("acTL", PNGFile.number(frames.count) + PNGFile.number(0))
        var sequence = 0
        for (number, frame) in frames.enumerated() {
            file.add(
                "fcTL",
                PNGFile.control(
                    sequence, width: frame.picture.width, height: frame.picture.height, x: frame.x, y: frame.y,
                    disposal: frame.disposal, blend: frame.blend))
            let data = frame.picture.imageData(isInterlaced: isInterlaced)
            if number == 0 { file.add("IDAT", data) } else { file.add("fdAT", PNGFile.number(sequence + 1) + data) }
            sequence += number == 0 ? 1 : 2
        }
        return file.ended()
    }

    private func composed(_ frames: [Frame]) -> [DeepPicture] {
        let (width, height) = (frames[0].picture.width, frames[0].picture.height)
        var canvas = DeepPicture(width: width, height: height, words: .init(repeating: 0, count: 4 * width * height))
        return frames.map { frame in
            let before = canvas
            canvas.draw(frame.picture, x: frame.x, y: frame.y, blends: frame.blend == 1)
            let shown = canvas
            switch frame.disposal {
            case 1: canvas.clear(x: frame.x, y: frame.y, width: frame.picture.width, height: frame.picture.height)
            case 2: canvas = before
            default: break
            }
            return shown
        }
    }

    private func options(_ box: (Int, Int, Bool) = (0, 0, false)) -> DecodeOptions {
        var options = decodeOptions(.rgba16)
        options.decodesAllFrames = true
        (options.targetWidth, options.targetHeight, options.stretches) = box
        return options
    }

    func testO11_FramesAreComposedInWords() throws {
        for (index, (width, height)) in [(1, 1), (1, 19), (19, 1), (23, 17)].enumerated() {
            let frames = frames(width: width, height: height)
            let composed = composed(frames)
            for isInterlaced in [false, true] {
                for orientation in [1, 2 + index, 6] {
                    let file = encoded(frames, isInterlaced: isInterlaced, orientation: UInt8(orientation))
                    let got = decode(file, options())
                    let name = "\(width) × \(height), Adam7 \(isInterlaced), orientation \(orientation)"
                    XCTAssertNil(got.failure, name)
                    XCTAssertEqual(got.frames.count, frames.count, name)
                    for (number, bytes) in got.frames.enumerated() {
                        let turned = composed[number].turned(orientation)
                        let frame = DeepPicture(bytes, width: turned.width, height: turned.height)
                        XCTAssert(frame == turned, "\(name), frame \(number)")
                    }
                    for pieces in [1, 7, 1000] { XCTAssert(decode(file, options(), pieces: pieces) == got, name) }
                    let host = TestAllocator()
                    var hosts = options()
                    hosts.allocator = host.allocator
                    XCTAssert(decode(file, hosts, pieces: 90, partials: true) == got, name)
                    XCTAssertEqual(host.given, host.taken, name)
                    XCTAssertFalse(host.hasOverrun, name)
                }
            }
        }
    }

    func testX8_ScaledFramesAreExactlyRoundedAverages() throws {
        let frames = frames(width: 23, height: 17)
        let composed = composed(frames)
        for box in [(1, 1, true), (10, 10, false), (7, 16, true)] {
            for orientation in [1, 5, 8] {
                let file = encoded(frames, orientation: UInt8(orientation))
                let got = decode(file, options(box))
                XCTAssertEqual(got.frames.count, frames.count)
                for (number, bytes) in got.frames.enumerated() {
                    let header = try XCTUnwrap(got.header)
                    let words = DeepPicture(bytes, width: header.width, height: header.height).words
                    let turned = composed[number].turned(orientation)
                    let wanted = turned.averages(width: header.width, height: header.height)
                    let most = zip(words, wanted).map { abs(Double($0) - $1) }.max() ?? .infinity
                    XCTAssertLessThan(most, 0.500_001, "\(box), orientation \(orientation), frame \(number)")
                    XCTAssertEqual(words.count, wanted.count)
                }
                XCTAssert(decode(file, options(box), pieces: 7, partials: true) == got)
            }
        }
    }

    func testFramesAreConvertedInWords() throws {
        let profile = Profile(PICTURE_PROFILE_RGB)
        let frames = frames(width: 23, height: 17)
        var converting = options()
        converting.convertsToSRGB = true
        let got = decode(encoded(frames, orientation: 3).withICCP(profile.bytes), converting)
        XCTAssertEqual(got.frames.count, frames.count)
        for (bytes, composed) in zip(got.frames, composed(frames)) {
            let frame = DeepPicture(bytes, width: 23, height: 17)
            XCTAssert(frame.words == profile.converted(composed.turned(3).words))
        }
    }

    /// As 8 bits they are still composed of frames of 8 bits.
    func testBytesOfDeepFramesStayAsTheyWere() throws {
        let frames =
            Array(frames(width: 23, height: 17).prefix(1)) + [
                Frame(picture: DeepPicture(width: 5, height: 4, isOpaque: true), x: 3, y: 2, disposal: 0, blend: 1)
            ]
        var bytes = options()
        bytes.pixelFormat = .rgba8
        let got = decode(encoded(frames), bytes)
        for (frame, composed) in zip(got.frames, composed(frames)) {
            XCTAssertEqual(frame, composed.words.map { UInt8((Int($0) * 255 + 32895) >> 16) })
        }
        XCTAssertEqual(got.frames.count, 2)
    }
}
