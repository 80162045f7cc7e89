import ImgdlCore

@testable import ImgdlCache

/// A row of a cache's index that somebody has forged: 24 bytes are its other columns, the rest is the response, which is sealed
/// here. Nothing of it is given back that is not sound, and what is given back is asked about in every way.
func fuzzIndexRow(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count > 24 else { return }
    func number(_ at: Int) -> Int64 { Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: Int64.self)) }
    let row = RowIdentity(id: EntryID(rawValue: number(0)), key: "k", length: number(8), checksum: number(16))
    let sealed = ResponseCoding.sealed(Array(bytes[24...]), row)
    guard let response = sealed.withUnsafeBytes({ ResponseCoding.decode($0, row) }) else { return }
    try require(response.isSound, "\(response.bodyLength) \(response.extent)")
    let again = ResponseCoding.encode(response, row).withUnsafeBytes { ResponseCoding.decode($0, row) }
    try require(again == response, "\(again as Any) was \(response)")

    let entry = StoredEntry(id: row.id, response: response, mark: ChangeMark())
    for range in ["bytes=-5", "bytes=5-9223372036854775807", "bytes=0-0", "bytes=9223372036854775807-"] {
        for mode in [CacheMode.use, .only, .refresh] {
            for fields in [[], [HeaderField("Range", range)], [HeaderField("If-Modified-Since", range)]] {
                let question = CacheQuestion(
                    CacheRequest(method: "GET", fields: fields, mode: mode, context: StoredContext.blank))
                let decision = CacheRules.decide(question, [entry], wallTime: 1_800_000_000)
                guard case .answerPart(_, _, _, let found?, _) = decision else { continue }
                try require(
                    found.lowerBound >= 0 && found.upperBound <= response.bodyLength, "\(found) of \(response)")
            }
        }
    }
}
