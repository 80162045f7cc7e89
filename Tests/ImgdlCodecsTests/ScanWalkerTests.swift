import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// B9, R25: the marker stream is followed, whatever looks like a marker and is none.
final class ScanWalkerTests: XCTestCase {
    /// Offsets of the marker that begins each scan, of the one that ends it, and whether the end marker was there.
    private struct Scans: Equatable {
        var starts: [Int] = []
        var ends: [Int] = []
        var isAtEnd = false
    }

    /// Written for the whole file, and the other way round: by segments.
    private func reference(_ bytes: [UInt8]) -> Scans {
        var scans = Scans()
        var at = 2
        while at + 1 < bytes.count {
            guard bytes[at] == 0xFF else {
                at += 1
                continue
            }
            let start = at
            while at + 1 < bytes.count, bytes[at + 1] == 0xFF { at += 1 }
            guard at + 1 < bytes.count else { return scans }
            let marker = bytes[at + 1]
            if marker == 0xD9 {
                scans.isAtEnd = true
                return scans
            }
            guard at + 3 < bytes.count else { return scans }
            if marker == 0xDA { scans.starts.append(start) }
            at += 2 + Int(bytes[at + 2]) << 8 + Int(bytes[at + 3])
            guard marker == 0xDA else { continue }
            while at + 1 < bytes.count {
                let next = bytes[at + 1]
                if bytes[at] == 0xFF, next != 0, !(0xD0...0xD7).contains(next), next != 0xFF || !isData(bytes, at) {
                    break
                }
                at += 1
            }
            if at + 1 < bytes.count { scans.ends.append(at) }
        }
        return scans
    }

    /// Whether fill bytes at this place end in no marker.
    private func isData(_ bytes: [UInt8], _ at: Int) -> Bool {
        guard let end = bytes[at...].first(where: { $0 != 0xFF }) else { return true }
        return end == 0 || (0xD0...0xD7).contains(end)
    }

    private func steps(of walker: inout JPEGScanWalker, over piece: UnsafeRawBufferPointer) -> [[Int]] {
        var steps: [[Int]] = []
        var rest = piece
        while !rest.isEmpty {
            let (count, fill) = walker.walk(rest, maximumScans: .max)
            steps.append([count, fill])
            rest = UnsafeRawBufferPointer(rebasing: rest[(count + fill)...])
        }
        return steps
    }

    private func walked(_ bytes: [UInt8], pieces: Int) -> Scans {
        var walker = JPEGScanWalker()
        var scans = Scans()
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let (begun, ended) = (walker.scanCount, walker.wholeScanCount)
            _ = Array(bytes[start..<min(bytes.count, start + pieces)]).withUnsafeBytes { steps(of: &walker, over: $0) }
            if walker.scanCount > begun { scans.starts.append(walker.scanStart) }
            if walker.wholeScanCount > ended { scans.ends.append(walker.scanEnd) }
        }
        scans.isAtEnd = walker.isAtEnd
        return scans
    }

    private var pictures: [[UInt8]] {
        var pictures: [Picture] = []
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_SEPARATE_SCANS] {
            var restarts = Picture("restarts", kind)
            restarts.spec.restart_interval = 3
            var thumbnail = Picture("thumbnail", kind, orientation: 6)
            thumbnail.spec.exif_thumbnail = 1
            thumbnail.spec.exif_after_xmp = 1
            var fine = Picture("stuffed", kind)
            fine.spec.quality = 100
            pictures += [restarts, thumbnail, fine]
        }
        return pictures.map { $0.encoded() }
    }

    func testFindsTheScansOfAReferenceParser() {
        for bytes in pictures {
            let expected = reference(bytes)
            XCTAssertFalse(expected.starts.isEmpty)
            XCTAssert(expected.isAtEnd)
            for size in [1, 2, 3] { XCTAssertEqual(walked(bytes, pieces: size), expected) }
        }
    }

    func testFindsTheScansOfTheCorpus() throws {
        for file in try Corpus.files(atLeast: 123, where: { $0.format == "jpeg" && $0.expectation == "ok" }) {
            XCTAssertEqual(walked(file.bytes, pieces: 1), reference(file.bytes), file.path)
        }
    }

    func testFillBytesBelongToTheMarker() {
        let scan: [UInt8] = [0xFF, 0xDA, 0, 2, 1, 0xFF, 0, 2, 0xFF, 0xFF, 0xD3, 3]
        let bytes: [UInt8] =
            [0xFF, 0xD8, 7, 0xFF, 0xFF] + scan + [0xFF, 0xFF, 0xFF] + scan + [0xFF, 0xD9, 0xFF, 0xDA, 0, 2]
        XCTAssertEqual(walked(bytes, pieces: 1), Scans(starts: [3, 17], ends: [17, 32], isAtEnd: true))
    }

    /// The longest is passed over whole; one too short for its own length ends there.
    func testLengthsOfSegments() {
        for (length, passed) in [(0, 0), (1, 0), (2, 0), (3, 1), (65_535, 65_533)] {
            let segment: [UInt8] = [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)]
            let data = [UInt8](repeating: 0xFF, count: passed)
            let bytes = [0xFF, 0xD8] + segment + data + [0xFF, 0xDA, 0, 2, 1, 0xFF, 0xD9]
            let start = 6 + passed
            let expected = Scans(starts: [start], ends: [start + 5], isAtEnd: true)
            for pieces in [1, 100_000] { XCTAssertEqual(walked(bytes, pieces: pieces), expected, "\(length)") }
        }
    }

    func testNamesTheBytesThatAreAllowed() {
        let bytes = Picture("a", PICTURE_JPEG_PROGRESSIVE).encoded()
        let starts = reference(bytes).starts
        var walker = JPEGScanWalker()
        let walked = bytes.withUnsafeBytes { walker.walk($0, maximumScans: 3) }
        XCTAssertEqual(walked.count, starts[3] + 2)
        XCTAssertEqual(walked.fill, 0)
    }

    func testNamesTheFillBytesOfAScan() {
        let scan: [UInt8] = [0xFF, 0xDA, 0, 2, 1, 0xFF]
        let bytes = [0xFF, 0xD8, 0xFF, 0xFF, 0xFF] + scan + [0xFF, 0xFF, 0, 0xFF]
        var walker = JPEGScanWalker()
        // Those ahead of the scan are the marker's; a run that a piece ends in goes on in the next.
        XCTAssertEqual(bytes[..<12].withUnsafeBytes { steps(of: &walker, over: $0) }, [[11, 1]])
        XCTAssertEqual(bytes[12...].withUnsafeBytes { steps(of: &walker, over: $0) }, [[0, 1], [2, 0]])
    }
}
