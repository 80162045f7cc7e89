import Glibc
import ImgdlCore

/// Removes what processes have left that were killed: the folders of their writers, and bodies that the index does not
/// know. What a living process is writing is in its own folder, and what it is about to tell the index is under its
/// lock. It holds two descriptors at once at most, however many writers are dead.
struct OrphanSearch {
    /// Folders of dead writers; nil: they are not known yet.
    private var dead: [String]?
    private var nextCleaned = 0
    private var nextShard = 0
    /// Shards where somebody was publishing.
    private var postponed: [Int] = []
    private(set) var isAtEnd = false

    /// `dead`: folders, which stay until all is done: whoever is killed before leaves the work to the next. nil: nobody
    /// could look.
    init(_ dead: [String]?) { self.dead = dead }

    enum Step {
        case done
        /// There was no descriptor for it: it is due again, later.
        case later
    }

    /// `release`: tells the index that a writer of this name is no more.
    mutating func step(
        _ folder: Folder, _ index: Index, release: (String) throws(DatabaseError) -> Void
    ) throws(DatabaseError) -> Step {
        guard let dead else {
            guard let found = try? WriterFolder.dead(in: folder) else { return .later }
            self.dead = found
            return .done
        }
        if nextCleaned < dead.count {
            // Files of dead writers take space that is wanted. What is left now goes with the folder.
            try? WriterFolder.claim(dead[nextCleaned], in: folder)?.removeFiles()
            nextCleaned += 1
        } else if nextShard < Folder.shardCount {
            let cleaning = try clean(nextShard, folder, index)
            if cleaning == .exhausted { return .later }
            if cleaning == .occupied { postponed.append(nextShard) }
            nextShard += 1
        } else if let shard = postponed.last {
            // Once more, and then not: the next search will find it.
            if try clean(shard, folder, index) == .exhausted { return .later }
            postponed.removeLast()
        } else if let name = dead.last {
            guard let writer = emptied(name, folder) else { return .later }
            // Release comes first: whoever finds the folder gone has nothing more to do.
            if let writer {
                try release(name)
                try? writer.remove()
            }
            self.dead?.removeLast()
        } else {
            isAtEnd = true
        }
        return .done
    }

    /// A dead writer's folder, with nothing in it. nil inside: it is somebody else's, or gone; nil: it is due again.
    private func emptied(_ name: String, _ folder: Folder) -> WriterFolder?? {
        do throws(DiskError) {
            let writer = try WriterFolder.claim(name, in: folder)
            try writer?.removeFiles()
            return .some(writer)
        } catch {
            return nil
        }
    }

    private enum Cleaning {
        case done
        /// Somebody was publishing.
        case occupied
        case exhausted
    }

    private func clean(_ shard: Int, _ folder: Folder, _ index: Index) throws(DatabaseError) -> Cleaning {
        guard let names = try? Folder.list(folder.shard(shard)) else { return .exhausted }
        var unknown: [EntryID] = []
        for name in names {
            if let id = Folder.id(of: name), try !index.contains(id) { unknown.append(id) }
        }
        if unknown.isEmpty { return .done }
        let lock: FileLock?
        do throws(DiskError) {
            lock = try FileLock(folder.lock, .exclusive)
        } catch {
            return error.isExhaustion ? .exhausted : .occupied
        }
        guard let lock else { return .occupied }
        defer { withExtendedLifetime(lock) {} }
        // While they were being listed some may have become known.
        var orphans: [EntryID] = []
        for id in unknown where try !index.contains(id) { orphans.append(id) }
        do throws(DiskError) {
            try folder.shard(shard).enter { shard in
                for id in orphans { unlinkat(shard, Folder.name(of: id), 0) }
            }
        } catch {
            if error.isExhaustion { return .exhausted }
        }
        return .done
    }
}
