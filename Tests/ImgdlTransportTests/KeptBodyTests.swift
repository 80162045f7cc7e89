import XCTest

@testable import ImgdlTransport

/// What of a body is kept here until somebody takes it.
final class KeptBodyTests: XCTestCase {
    private func append(_ bytes: [UInt8], to kept: inout KeptBody) -> Bool {
        bytes.withUnsafeBytes { kept.append($0) }
    }

    func testItComesOutInOrderAndInPieces() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<10 {
            var kept = KeptBody()
            var (sent, got): ([UInt8], [UInt8]) = ([], [])
            for _ in 0..<40 {
                if Bool.random(using: &random) {
                    let piece = (0..<Int.random(in: 0...40_000, using: &random)).map { UInt8($0 & 0xFF) }
                    if append(piece, to: &kept) { sent += piece }
                } else {
                    let piece = kept.take()
                    XCTAssertLessThanOrEqual(piece.count, 16_384)
                    got += piece
                }
                XCTAssertEqual(kept.count, sent.count - got.count)
            }
            while !kept.isEmpty { got += kept.take() }
            XCTAssertEqual(got, sent)
        }
    }

    func testItHasABound() {
        var kept = KeptBody()
        let piece = [UInt8](repeating: 1, count: KeptBody.maximumBytes / 4)
        for _ in 0..<4 { XCTAssertTrue(append(piece, to: &kept)) }
        XCTAssertFalse(append([1], to: &kept))
        XCTAssertEqual(kept.count, KeptBody.maximumBytes)
        XCTAssertFalse(kept.take().isEmpty)
        XCTAssertTrue(append([1], to: &kept))
    }
}
