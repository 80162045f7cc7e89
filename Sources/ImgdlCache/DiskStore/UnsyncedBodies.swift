import ImgdlCore

/// What was stored since the last flush and is still there: a few bodies are synced one by one, many with all of their file
/// system.
struct UnsyncedBodies {
    private static let maximumSingle = 16
    /// Of those that come after so many it is not known which they are.
    private static let maximumKnown = 65_536

    private var files: Set<EntryID> = []
    private var heads: Set<EntryID> = []
    private var unknownCount: Int64 = 0

    /// Those without a body too; more than there are once there were too many to know.
    var count: Int64 { Int64(files.count + heads.count) + unknownCount }

    mutating func add(_ id: EntryID, hasFile: Bool) {
        guard files.count + heads.count < Self.maximumKnown else {
            unknownCount += 1
            return
        }
        if hasFile { files.insert(id) } else { heads.insert(id) }
    }

    /// It is gone.
    mutating func remove(_ id: EntryID) {
        if files.remove(id) == nil { heads.remove(id) }
    }

    /// They and their names are on the disk for good.
    mutating func synchronize(in folder: Folder, on disk: any Disk) throws(DiskError) {
        if unknownCount > 0 || files.count > Self.maximumSingle {
            try disk.synchronizeAll(InnerPath(folder.path))
        } else {
            for id in files { try Self.synchronize(folder.body(id), on: disk) }
            for shard in Set(files.map { folder.shard(of: $0) }) {
                try Self.synchronize(folder.shard(shard), on: disk)
            }
            try Self.synchronize(InnerPath(folder.path), on: disk)
        }
        self = UnsyncedBodies()
    }

    /// A file that is gone by now needs no sync.
    private static func synchronize(_ path: InnerPath, on disk: any Disk) throws(DiskError) {
        do throws(DiskError) {
            try disk.synchronize(path)
        } catch {
            if !error.isMissing { throw error }
        }
    }
}
