import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// What a profile costs is known before lcms2 sees it; one without a bound is kept and not followed.
final class ProfileTagsTests: XCTestCase {
    private func areBounded(_ profile: [UInt8]) -> Bool { profile.withUnsafeBytes { ProfileTags($0).areBounded } }

    /// A profile that has these tags alone: name, and the bytes from its type on. `claimed`: as the table has its length.
    private func profile(_ tags: [(name: String, data: [UInt8])], claimed: Int? = nil) -> [UInt8] {
        var table: [UInt8] = PNGFile.number(tags.count)
        var data: [UInt8] = []
        for tag in tags {
            let start = 128 + 4 + 12 * tags.count + data.count
            table += Array(tag.name.utf8) + PNGFile.number(start) + PNGFile.number(claimed ?? tag.data.count)
            data += tag.data
        }
        return [UInt8](repeating: 0, count: 128) + table + data
    }

    private func type(_ name: String) -> [UInt8] { Array(name.utf8) + [0, 0, 0, 0] }

    func testUsualProfilesAreBounded() {
        for kind in [PICTURE_PROFILE_RGB, PICTURE_PROFILE_GRAY, PICTURE_PROFILE_INKS] {
            XCTAssert(areBounded(Profile(kind).bytes))
        }
    }

    func testProcessingElementsAreNot() {
        XCTAssertFalse(areBounded(Profile(PICTURE_PROFILE_COSTLY).bytes))
        for name in ["D2B0", "D2B1", "D2B2", "D2B3", "B2D0", "B2D3"] {
            XCTAssertFalse(areBounded(profile([("wtpt", type("XYZ ")), (name, type("mft2"))])), name)
        }
        XCTAssertFalse(areBounded(profile([("A2B0", type("mpet"))])))
        XCTAssertFalse(areBounded(profile([("abcd", type("mpet"))])))
    }

    func testGridsHaveABound() {
        func old(_ type: String, _ inputs: UInt8, _ points: UInt8) -> [UInt8] {
            profile([("A2B0", self.type(type) + [inputs, 3, points, 0])])
        }
        for type in ["mft1", "mft2"] {
            XCTAssert(areBounded(old(type, 4, 17)))
            XCTAssertFalse(areBounded(old(type, 4, 18)))
            XCTAssert(areBounded(old(type, 3, 46)))
            XCTAssertFalse(areBounded(old(type, 3, 47)))
            XCTAssertFalse(areBounded(old(type, 15, 3)))
            XCTAssertFalse(areBounded(old(type, 255, 255)))
        }
        func new(_ inputs: UInt8, _ points: [UInt8]) -> [UInt8] {
            let head = type("mAB ") + [inputs, 3, 0, 0] + [UInt8](repeating: 0, count: 12) + PNGFile.number(32)
            return profile([("A2B1", head + [0, 0, 0, 0] + points + [UInt8](repeating: 0, count: 16 - points.count))])
        }
        XCTAssert(areBounded(new(4, [17, 17, 17, 17])))
        XCTAssert(areBounded(new(3, [255, 100, 3])))
        XCTAssertFalse(areBounded(new(3, [255, 100, 4])))
        XCTAssertFalse(areBounded(new(4, [255, 255, 255, 255])))
        XCTAssertFalse(areBounded(new(17, [2, 2])))
        XCTAssertFalse(areBounded(profile([("A2B2", type("what") + [3, 3, 9, 0])])))
    }

    /// On both sides of a grid, wherever they lie.
    func testCurvesOfTablesHaveABound() {
        func old(_ before: Int, _ behind: Int) -> [UInt8] {
            let head = type("mft2") + [4, 3, 2, 0] + [UInt8](repeating: 0, count: 36)
            return profile([("A2B0", head + PNGFile.number(before << 16 | behind))])
        }
        XCTAssert(areBounded(old(4096, 4096)))
        XCTAssert(areBounded(old(13_000, 4_512)))
        XCTAssertFalse(areBounded(old(13_000, 4_513)))
        XCTAssertFalse(areBounded(old(32_767, 32_767)))

        func curve(_ count: Int) -> [UInt8] {
            type("curv") + PNGFile.number(count) + [UInt8](repeating: 0, count: 2 * count)
        }
        let formula = type("para") + [0, 3, 0, 0] + [UInt8](repeating: 0, count: 20)
        // What stands ahead is passed over: `odd` bytes, of which the first curve alone is not aligned.
        func new(_ sets: [(place: Int, curves: [[UInt8]])], odd: Int = 0) -> [UInt8] {
            var head = type("mAB ") + [3, 3, 0, 0] + [UInt8](repeating: 0, count: 20)
            var data: [UInt8] = []
            for (place, curves) in sets {
                data += [UInt8](repeating: 0, count: odd)
                head.replaceSubrange(place..<place + 4, with: PNGFile.number(32 + data.count))
                for curve in curves {
                    data += curve
                    data += [UInt8](repeating: 0, count: (4 - data.count % 4) % 4)
                }
            }
            return profile([("A2B0", head + data)])
        }
        let (a, m, b) = (28, 20, 12)
        for odd in [0, 2] {
            for place in [a, m, b] {
                let fits = (place, [curve(32_767), formula, curve(32_767)])
                XCTAssert(areBounded(new([fits], odd: odd)))
                let other = place == b ? a : b
                XCTAssert(areBounded(new([fits, (other, [formula, curve(2)])], odd: odd)))
                XCTAssertFalse(areBounded(new([fits, (other, [formula, curve(3)])], odd: odd)), "\(place), \(odd)")
            }
        }
        // lcms2 reads no more of either.
        XCTAssert(areBounded(new([(a, [type("what"), curve(32_767), curve(32_767)]), (b, [curve(32_767)])])))
        XCTAssert(areBounded(new([(a, [curve(32_767), type("curv") + PNGFile.number(.init(UInt32.max))])])))
    }

    func testOtherTagsHaveABound() {
        for name in ["chad", "rTRC", "kTRC", "wtpt"] {
            XCTAssert(areBounded(profile([(name, type("curv"))], claimed: 128 << 10)))
            XCTAssertFalse(areBounded(profile([(name, type("curv"))], claimed: 128 << 10 + 1)))
        }
        // Of no interest to lcms2.
        XCTAssert(areBounded(profile([("desc", type("mluc"))], claimed: 1 << 24)))
    }

    /// Whatever lies outside of the profile is for lcms2 to refuse, whichever offset leads there.
    func testNumbersAtTheirLargest() {
        let curves = type("mAB ") + [3, 3, 0, 0] + [UInt8](repeating: 0, count: 20)
        let table = type("mft2") + [3, 3, 9, 0] + [UInt8](repeating: 0, count: 40)
        let good = profile([("A2B0", table), ("A2B1", curves), ("rTRC", type("curv") + PNGFile.number(2))])
        XCTAssert(areBounded(good))
        func changed(_ at: Int, _ number: [UInt8]) -> Bool {
            areBounded(Array(good[..<at] + number + good[(at + number.count)...]))
        }
        let largest: [UInt8] = [255, 255, 255, 255]
        let (tables, data) = (132, 132 + 3 * 12)
        XCTAssert(changed(128, largest), "tags")
        for (index, name) in ["A2B0", "A2B1", "rTRC"].enumerated() {
            for number in [largest, [127, 255, 255, 255], [128, 0, 0, 0]] {
                let start = tables + 12 * index + 4
                XCTAssert(changed(start, number), "where \(name) begins")
                XCTAssertEqual(changed(start + 4, number), name != "rTRC", "how long \(name) is")
                for place in [12, 20, 24, 28] { XCTAssert(changed(data + table.count + place, number), "\(place)") }
            }
        }
        XCTAssertFalse(changed(data + 48, largest), "numbers of curves")
        XCTAssertFalse(changed(data + 8, largest), "a grid")
    }

    /// That is for lcms2 to refuse.
    func testWhatIsNoProfileIsBounded() {
        let good = profile([("A2B0", type("mft2") + [3, 3, 9, 0])])
        for count in 0..<good.count { XCTAssert(areBounded(Array(good[..<count]))) }
        XCTAssert(areBounded([UInt8](repeating: 255, count: 1000)))
    }

    /// Every format keeps it, tells so, and leaves the pixels as they are.
    func testCostlyProfilesAreKeptAndNotFollowed() throws {
        let costly = Profile(PICTURE_PROFILE_COSTLY).bytes
        let jpeg = Picture("a.jpg", PICTURE_JPEG_BASELINE).encoded()
        let png = Picture("a.png", PICTURE_PNG_RGB).encoded()
        let webp = Picture("a.webp", PICTURE_WEBP_LOSSY).encoded()
        let animated = Picture("b.webp", PICTURE_WEBP_ANIMATED).encoded()
        let files = [
            (jpeg, jpeg.withAPP2(costly, order: [1, 2, 3, 4])), (png, png.withICCP(costly)),
            (webp, webp.withICCPChunk(costly, width: 201, height: 150, alpha: false)),
            (animated, animated.withICCPChunk(costly, width: 201, height: 150, alpha: true)),
        ]
        for (plain, file) in files {
            var options = DecodeOptions()
            options.convertsToSRGB = true
            let decoder = BuiltInCodec().makeDecoder(options)
            try feed(decoder, file, pieces: .max / 2)
            let image = try decoder.finish()
            XCTAssertEqual(image.colour.notes, [.profile, .unusableProfile, .costlyProfile])
            XCTAssertEqual(image.colour.profile.map { Array($0.bytes) }, costly)
            XCTAssert(image.bytes == decode(plain).pixels)
        }
    }

    /// lcms2 copies a profile in one go.
    func testLongProfilesAreKeptAndNotFollowed() throws {
        for (length, isFollowed) in [(16 << 20, true), (16 << 20 + 1, false)] {
            let profile = Profile(PICTURE_PROFILE_RGB).padded(to: length)
            let files = [
                Picture("a.png", PICTURE_PNG_RGB).encoded().withPackedICCP(profile),
                Picture("a.webp", PICTURE_WEBP_LOSSY).encoded().withICCPChunk(
                    profile, width: 201, height: 150, alpha: false),
                Picture("b.webp", PICTURE_WEBP_ANIMATED).encoded().withICCPChunk(
                    profile, width: 201, height: 150, alpha: true),
            ]
            for file in files {
                var options = DecodeOptions()
                options.convertsToSRGB = true
                options.maximumMetadataBytes = .max
                let decoder = BuiltInCodec().makeDecoder(options)
                try feed(decoder, file, pieces: .max / 2)
                let colour = try decoder.finish().colour
                XCTAssertEqual(
                    colour.notes, isFollowed ? [.profile, .converted] : [.profile, .unusableProfile, .costlyProfile])
                XCTAssertEqual(colour.profile?.bytes.count, length)
            }
        }
    }

    /// Inks take lcms2 longest.
    func testProfilesThatAreFollowedStopInTime() throws {
        let inks = Picture("inks", PICTURE_JPEG_CMYK, width: 4000, height: 3000).encoded()
        var options = DecodeOptions()
        options.convertsToSRGB = true
        try assertStops(inks.withAPP2(Profile(PICTURE_PROFILE_INKS).bytes), options, after: 150)
    }

    /// No stop comes between: with the largest grid and the longest curves that are followed.
    func testWhatIsFollowedIsMadeReadyInTime() throws {
        let inks = Profile(PICTURE_PROFILE_FINE).bytes
        XCTAssert(areBounded(inks))
        let (grid, each) = (17 * 17 * 17 * 17 * 3, ProfileTags.mostCurveNumbers / 7)
        XCTAssertGreaterThan(inks.count, 2 * grid + 7 * 2 * each, "grid or curves are smaller than they may be")
        let picture = Picture("small", PICTURE_JPEG_CMYK, width: 8, height: 8).encoded()
        let curves = Profile(PICTURE_PROFILE_CURVES).bytes
        XCTAssert(areBounded(curves))
        XCTAssertGreaterThan(curves.count, 3 * 65_000, "the curves are shorter than they may be")
        let plain = Picture("small", PICTURE_PNG_RGB, width: 8, height: 8).encoded()
        for (name, file) in [
            ("grid", picture.withAPP2(inks, order: Array(1...30))), ("curves", plain.withICCP(curves)),
        ] {
            func time(_ converts: Bool) throws -> Int64 {
                var options = DecodeOptions()
                options.convertsToSRGB = converts
                let begin = threadTime()
                let decoder = BuiltInCodec().makeDecoder(options)
                try feed(decoder, file, pieces: .max / 2)
                let image = try decoder.finish()
                let time = threadTime() - begin
                XCTAssertEqual(image.colour.notes, converts ? [.profile, .converted] : [.profile], name)
                return time
            }
            // Reading the file is not the profile's.
            let reading = try (0..<3).map { _ in try time(false) }.min() ?? 0
            var least = Int64.max
            for _ in 0..<5 where least >= 50_000_000 { least = min(least, try time(true) - reading) }
            XCTAssertLessThan(least, 50_000_000, "of CPU time: \(name)")
        }
    }
}
