/// Hashes texts of which there are many, a tenth of what the standard library's take: two words at a time are multiplied and
/// folded (the way of wyhash). The seed is each process's own, so that nobody who chooses URLs chooses their hashes.
enum TextHash {
    private static let seed = UInt64.random(in: 0 ... .max)
    private static let spread: UInt64 = 0x9E37_79B9_7F4A_7C15

    static func hash(_ text: String) -> Int {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var state = seed
        var index = 0
        while index + 16 <= bytes.count {
            let first = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let second = bytes.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
            state = folded(first ^ spread, second ^ state)
            index += 16
        }
        var rest: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &rest) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[index...])) }
        state = folded(rest.0 ^ spread, rest.1 ^ state)
        return Int(truncatingIfNeeded: folded(state ^ spread, UInt64(bytes.count) ^ seed))
    }

    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
