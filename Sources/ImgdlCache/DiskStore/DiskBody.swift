import ImgdlCore

/// A body on its way to the disk.
final class DiskBody: @unchecked Sendable {
    enum State {
        case writing
        /// In a file, which is in the writer's folder until it gets its last name, just before the index knows it.
        case written(checksum: Int64, path: InnerPath?)
        case failed
    }

    let id: EntryID
    let key: String
    let mark: ChangeMark
    /// Removals before its request was sent.
    let removalMark: RemovalMark

    // Under the store's lock.
    var isGivenUp = false
    /// Why, where that was not whoever brought it.
    var loss: StorageLosses.Cause?
    /// When its last byte came; nil: it has not.
    var finishedAt: Instant?
    var isFinished: Bool { finishedAt != nil }
    /// The writing thread has something of it, or will have.
    var isPosted = false
    /// Whose memory has been counted last.
    var lastSegment: ObjectIdentifier?
    var length: Int64 = 0
    var state = State.writing
    var number: Int64 = 0
    /// When its last byte came, in seconds since 1970.
    var time: Int64 = 0
    var response = StoredResponse(
        status: 0, httpVersion: 0, fields: [], requestTime: 0, responseTime: 0, context: .blank)
    /// While the memory tier has them anyway, look-ups need not wait for the file.
    var slices: [BodySlice]?
    var waiting: [Lookup] = []

    // The writing thread's.
    var file: OpenBody?
    /// What it takes of the room that was granted, its row too.
    var held: Int64 = 0

    /// For the writing thread, which alone changes it.
    var isWritten: Bool {
        if case .written = state { return true }
        return false
    }

    /// Whether that is of an earlier second, and would have gone for it.
    func outdates(_ row: Index.Row) -> Bool { response.replaces(row.entry.response) && row.storedTime < time }

    init(id: EntryID, key: String, mark: ChangeMark, removalMark: RemovalMark) {
        self.id = id
        self.key = key
        self.mark = mark
        self.removalMark = removalMark
    }
}

/// The file of a body that is being written; the writing thread's alone.
struct OpenBody {
    /// nil: closed, since it is whole.
    var descriptor: Int32?
    let path: InnerPath
    let checksum: Checksum
    var length: Int64 = 0
    /// It has its last name.
    var isPublished = false
}

/// A look-up on its way to an answer.
struct Lookup {
    let key: String
    let choose: @Sendable ([StoredEntry]) -> StoreChoice
    let completion: @Sendable (FoundEntry?) -> Void
}
