import ImgdlCore

/// What the first bytes of a body say. Names and Content-Type lie; these do not.
enum Signature {
    enum Judgement: Equatable {
        case undecided
        case format(ImageFormat)
        case unknown
    }

    /// With this many bytes there is always a judgement, and an error can quote what it saw.
    static let lengthToJudge = 16

    /// nil stands for any byte.
    private static var known: [(format: ImageFormat, bytes: [UInt8?])] {
        [
            (.jpeg, [0xFF, 0xD8, 0xFF]),
            (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
            (.webp, ascii("RIFF") + [nil, nil, nil, nil] + ascii("WEBP")),
            (.gif, ascii("GIF87a")),
            (.gif, ascii("GIF89a")),
        ]
    }

    static func judge(_ bytes: UnsafeRawBufferPointer) -> Judgement {
        for signature in known where matches(bytes, signature.bytes) && bytes.count >= signature.bytes.count {
            return .format(signature.format)
        }
        // Judged late, so that the error quotes the same bytes whatever pieces they came in.
        return bytes.count < lengthToJudge ? .undecided : .unknown
    }

    /// For a body that ends before its format is known.
    static func failure(ofWhole bytes: UnsafeRawBufferPointer) -> Failure {
        if bytes.isEmpty { return Failure(.badImageData, "the body is empty") }
        if known.contains(where: { matches(bytes, $0.bytes) }) {
            return Failure(.truncated, "the body ends after \(bytes.count) bytes, before it says what picture it is")
        }
        return Failure(.badImageData, "not an image: it begins with \(excerpt(bytes))")
    }

    /// As far as both go.
    private static func matches(_ bytes: UnsafeRawBufferPointer, _ signature: [UInt8?]) -> Bool {
        zip(bytes, signature).allSatisfy { $1 == nil || $0 == $1 }
    }

    private static func excerpt(_ bytes: UnsafeRawBufferPointer) -> String {
        let text = bytes.prefix { $0 >= 0x20 && $0 < 0x7F }
        if text.count >= 4 || text.count == bytes.count { return "“\(String(decoding: text, as: UTF8.self))”" }
        let digits = bytes.prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
        return "the bytes " + digits.joined(separator: " ")
    }

    private static func ascii(_ text: StaticString) -> [UInt8?] {
        // Made optional one by one: an array of bytes would be cast, which takes longer than all else here.
        text.withUTF8Buffer { $0.map(Optional.some) }
    }
}
