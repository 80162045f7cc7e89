import ImgdlCore

/// What the writing thread is to do, in the order in which it was said.
enum DiskCommand {
    case append(DiskBody, [BodySlice])
    case abandon(DiskBody)
    case change(IndexChange, number: Int64)
    /// See whether the disk works again.
    case tryAgain
    /// A reader has found the index damaged; of this number.
    case replaceIndex(number: Int, message: String)
    case perform((DiskWriter) -> Void)
}

extension DiskCommand {
    /// Bytes that an append holds while it waits, with what each command and each slice takes besides: a server may send a
    /// body byte by byte.
    static func memory(ofAppending slices: [BodySlice]) -> Int {
        slices.reduce(96) { $0 + $1.count + MemoryLayout<BodySlice>.stride }
    }
}

/// What the index is to be told.
enum IndexChange {
    /// The body is whole.
    case insert(DiskBody)
    case update(EntryID, StoredResponse)
    case remove(EntryID)
    /// Its file is gone, or not what the index says.
    case removeDamaged(EntryID)
    case removeKey(String)
    case clear
}
