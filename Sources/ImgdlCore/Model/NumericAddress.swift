import Glibc

/// The text of a numeric address, in place: it is part of what is measured of each transfer, which is handed on often.
package struct NumericAddress: Equatable, Sendable, BitwiseCopyable, ExpressibleByStringLiteral {
    private typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    /// Of zeros from its end on, of which there is one at least: INET6_ADDRSTRLEN is 46.
    private var words: Words = (0, 0, 0, 0, 0, 0)

    package init() {}

    /// Of a longer text its beginning.
    package init(_ text: UnsafePointer<CChar>) {
        withUnsafeMutableBytes(of: &words) { bytes in
            let target = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            strncpy(target, text, bytes.count - 1)
        }
    }

    package init(stringLiteral text: String) { self = text.withCString { NumericAddress($0) } }

    package var isEmpty: Bool { words.0 == 0 }

    package var text: String { withCString { String(cString: $0) } }

    package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        withUnsafeBytes(of: words) { body($0.baseAddress!.assumingMemoryBound(to: CChar.self)) }
    }

    package static func == (left: NumericAddress, right: NumericAddress) -> Bool { left.words == right.words }
}
