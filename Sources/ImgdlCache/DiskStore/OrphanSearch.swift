import Glibc
import ImgdlCore

/// Removes what processes have left that were killed: the folders of their writers, and bodies that the index does not
/// know. What a living process is writing is in its own folder, and what it is about to tell the index is under its
/// lock.
struct OrphanSearch {
    private let dead: [WriterFolder]
    private var nextShard = 0
    private var hasCleaned = false
    /// Shards where somebody was publishing.
    private var postponed: [Int] = []
    private(set) var isAtEnd = false

    /// The folders stay until all is done: whoever is killed before leaves the work to the next.
    init(_ dead: [WriterFolder]) { self.dead = dead }

    /// `release`: tells the index that a writer of this name is no more.
    mutating func step(
        _ folder: Folder, _ index: Index, release: (String) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        if !hasCleaned {
            hasCleaned = true
            for writer in dead { writer.removeFiles() }
        } else if nextShard < Folder.shardCount {
            nextShard += 1
            if try !clean(nextShard - 1, folder, index) { postponed.append(nextShard - 1) }
        } else if let shard = postponed.popLast() {
            // Once more, and then not: the next search will find it.
            _ = try clean(shard, folder, index)
        } else {
            for writer in dead {
                writer.remove()
                try release(writer.name)
            }
            isAtEnd = true
        }
    }

    /// False: somebody is publishing.
    private func clean(_ shard: Int, _ folder: Folder, _ index: Index) throws(DatabaseError) -> Bool {
        var unknown: [EntryID] = []
        for name in Folder.names(in: folder.shard(shard)) {
            if let id = Folder.id(of: name), try !index.contains(id) { unknown.append(id) }
        }
        if unknown.isEmpty { return true }
        guard let lock = try? FileLock(folder.lock, .exclusive) else { return false }
        defer { withExtendedLifetime(lock) {} }
        // While they were being listed some may have become known.
        for id in unknown where try !index.contains(id) { unlink("\(folder.shard(shard))/\(Folder.name(of: id))") }
        return true
    }
}
