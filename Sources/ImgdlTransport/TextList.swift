import CCurl

/// Lines that curl reads where they are for as long as one of its handles has them. Nothing of them is changed: several
/// handles may have the same.
final class TextList {
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    /// nil: no memory. `extra`: one more, which need not be text, and has no zero in it.
    init?(_ lines: [String], _ extra: [UInt8]? = nil) {
        for line in lines where !append(line) { return nil }
        guard let extra else { return }
        let isAppended = extra.withUnsafeBytes { bytes in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { text in
                UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
                text[bytes.count] = 0
                return append(text.baseAddress!)
            }
        }
        if !isAppended { return nil }
    }

    deinit { curl_slist_free_all(first) }

    private func append(_ line: UnsafePointer<CChar>) -> Bool {
        guard let longer = curl_slist_append(first, line) else { return false }
        first = longer
        return true
    }
}
