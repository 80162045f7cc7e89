import ImgdlCore

/// The bodies that were stored since the last flush: a few are synced one by one, many with all of their file system.
struct UnsyncedBodies {
    private static let maximumSingle = 16

    private var ids: [EntryID] = []
    private var areMany = false
    /// Of the responses, those without a body too.
    private(set) var count: Int64 = 0

    mutating func add(_ id: EntryID, hasFile: Bool) {
        count += 1
        guard hasFile else { return }
        guard !areMany, ids.count < Self.maximumSingle else {
            areMany = true
            ids = []
            return
        }
        ids.append(id)
    }

    /// They and their names are on the disk for good.
    mutating func synchronize(in folder: Folder, on disk: any Disk) throws(DiskError) {
        if areMany {
            try disk.synchronizeAll(folder.path)
        } else {
            for id in ids { try Self.synchronize(folder.body(id), on: disk) }
            for shard in Set(ids.map { folder.shard(of: $0) }) { try Self.synchronize(folder.shard(shard), on: disk) }
            try Self.synchronize(folder.path, on: disk)
        }
        self = UnsyncedBodies()
    }

    /// A file that is gone by now needs no sync.
    private static func synchronize(_ path: String, on disk: any Disk) throws(DiskError) {
        do throws(DiskError) {
            try disk.synchronize(path)
        } catch {
            if !error.isMissing { throw error }
        }
    }
}
