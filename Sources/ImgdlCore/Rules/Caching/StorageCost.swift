/// What it costs to keep a response: the rules by which `max_bytes` and `max_memory_bytes` are counted. Never less than what
/// is really taken, so that a limit that holds by these numbers holds on the disk and in memory.
package enum StorageCost {
    /// File systems give room in blocks of this size.
    package static let blockBytes: Int64 = 4096
    /// An entry of the index besides its texts: its numbers, its places in three trees, the name of its file.
    static let rowBytes: Int64 = 320
    /// The index keeps several rows in a page, but of longer ones each has pages of its own.
    private static let mostSharedBytes: Int64 = 1_000
    /// Of memory: tables, lists, and the objects of an entry.
    static let entryBytes: Int64 = 1_024
    /// Of memory: what holds the two texts of a field.
    private static let fieldBytes: Int64 = 96

    /// A body's file. Nothing for an empty one, which has none.
    package static func file(_ length: Int64) -> Int64 {
        let (sum, isTooMuch) = max(0, length).addingReportingOverflow(blockBytes - 1)
        return isTooMuch ? .max / 2 : sum / blockBytes * blockBytes
    }

    /// An entry of the index.
    package static func row(_ response: StoredResponse, key: String) -> Int64 {
        let texts = response.textBytes + Int64(key.utf8.count)
        if texts <= mostSharedBytes { return rowBytes + texts + texts / 4 }
        return file(rowBytes + texts)
    }

    /// What is known of a response, in memory.
    package static func memory(_ response: StoredResponse, key: String) -> Int64 {
        let count = Int64(response.fields.count + response.varying.count)
        return entryBytes + response.textBytes + Int64(key.utf8.count) + count * fieldBytes
    }
}

extension StoredResponse {
    /// Of its fields, and of those that Vary names.
    fileprivate var textBytes: Int64 {
        var bytes = 0
        for field in fields { bytes += field.name.utf8.count + field.value.utf8.count }
        for field in varying { bytes += field.name.utf8.count + (field.value?.utf8.count ?? 0) }
        return Int64(bytes)
    }
}
