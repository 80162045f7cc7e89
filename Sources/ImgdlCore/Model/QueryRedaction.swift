import Glibc

/// Leaves the values out of a query, so that signed URLs can be shown.
package enum QueryRedaction {
    package static let mark = "…"

    /// Of a whole URL: "…?a=1&token=x" becomes "…?a=…&token=…". A part without "=" may be a bare token, so it is left out
    /// whole; so is one whose name has an @, which may be a URL with a user.
    package static func redacted(_ url: UnsafeBufferPointer<UInt8>) -> String {
        guard let query = queryStart(url) else { return String(decoding: url, as: UTF8.self) }
        let parts = 1 + url[query...].count { $0 == UInt8(ascii: "&") }
        return String(unsafeUninitializedCapacity: url.count + parts * mark.utf8.count) { text in
            var count = 0
            func add(_ bytes: some Sequence<UInt8>) {
                for byte in bytes {
                    text.initializeElement(at: count, to: byte)
                    count += 1
                }
            }
            add(url[..<query])
            var start = query
            while true {
                let end = url[start...].firstIndex(of: UInt8(ascii: "&")) ?? url.count
                let value = valueStart(url[start..<end])
                add(url[start..<value])
                if value < end { add(mark.utf8) }
                guard end < url.count else { return count }
                add(CollectionOfOne(UInt8(ascii: "&")))
                start = end + 1
            }
        }
    }

    private static func valueStart(_ part: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        guard let equals = part.firstIndex(of: UInt8(ascii: "=")) else { return part.startIndex }
        let name = part[..<equals]
        let hasUser = name.indices.contains { index in
            name[index] == UInt8(ascii: "@") || name[index...].starts(with: "%40".utf8)
        }
        return hasUser ? part.startIndex : equals + 1
    }

    /// Behind its question mark; nil where there is none.
    private static func queryStart(_ url: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let start = url.baseAddress, let mark = memchr(start, Int32(UInt8(ascii: "?")), url.count) else {
            return nil
        }
        return UnsafeRawPointer(mark) - UnsafeRawPointer(start) + 1
    }

    /// What of a URL must not show in a sentence of somebody else's: its query, with the question mark, since a query may be
    /// as short as a digit, which any sentence has.
    package static func secrets(_ url: String) -> [String] {
        guard let mark = url.firstIndex(of: "?"), url.index(after: mark) < url.endIndex else { return [] }
        return [String(url[mark...])]
    }
}
