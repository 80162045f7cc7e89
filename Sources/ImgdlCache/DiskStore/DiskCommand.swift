import ImgdlCore

/// What the writing thread is to do, in the order in which it was said.
enum DiskCommand {
    case append(DiskBody, [BodySlice], memory: Int)
    case abandon(DiskBody)
    case change(IndexChange, number: Int64, memory: Int)
    /// See whether the disk works again.
    case tryAgain
    /// A reader has found another index in place of one that may only be read, or one where there was none.
    case lookAgain
    /// A reader has found the index damaged; of this number.
    case replaceIndex(number: Int, message: String)
    case perform((DiskWriter) -> Void)
}

/// What holds memory while it waits for the writing thread, or in a batch.
extension DiskCommand {
    /// Each command and each slice takes something besides: a server may send a body byte by byte. A segment counts as a whole
    /// with its first slice. `lastSegment`: the one whose slices came last.
    static func memory(ofAppending slices: [BodySlice], _ lastSegment: inout ObjectIdentifier?) -> Int {
        var memory = 96
        for slice in slices {
            memory += MemoryLayout<BodySlice>.stride
            if slice.segmentID != lastSegment { memory += slice.segmentBytes }
            lastSegment = slice.segmentID
        }
        return memory
    }

    static func memory(of response: StoredResponse, _ key: String) -> Int {
        Int(clamping: StorageCost.memory(response, key: key))
    }

    static func memory(ofRemoving key: String) -> Int { 160 + key.utf8.count }
}

/// What the index is to be told.
enum IndexChange {
    /// The body is whole.
    case insert(DiskBody)
    /// Where it is one of these versions; none: in any case.
    case update(EntryID, StoredResponse, of: [StoredResponse.Version])
    case remove(EntryID)
    /// Its file is gone, or not what the index says.
    case removeDamaged(EntryID)
    case removeKey(String)
    /// Everything. Not asked for: there is no room for all the removals that wait.
    case clear(isAsked: Bool)

    var isRemoval: Bool {
        switch self {
        case .insert, .update: false
        case .remove, .removeDamaged, .removeKey, .clear: true
        }
    }
}
