import ImgdlCore

extension DiskStore {
    /// What the threads share.
    struct State: ~Copyable {
        var changes = PendingChanges()
        var commands: [DiskCommand] = []
        /// Memory of what waits, in the commands and in the batch.
        var queued = QueuedMemory()
        /// Bodies that are whole and that the writing thread has not come to.
        var waitingBodies = 0
        var losses = StorageLosses()
        /// Why the disk does not work; nil: it does.
        var failure: Failure?
        /// Why something that came since the last flush is not stored: the next one tells.
        var unreported: Failure?
        var lookups = Queue<Lookup>()
        var uses: [EntryID: Int64] = [:]
        var isClosing = false
        /// Afterwards what is left is not stored any more.
        var closingDeadline: Instant?
        /// Until when removals are written, where the process exits; nil: for as long as it says elsewhere.
        var closingEnd: Instant?
        var isWriterDone = false
        /// The process exits, and has waited for as long as it does.
        var isAbandoned = false
        /// 0: there is none; another number: another file of that name, or the same one opened again.
        var indexNumber = 0
        var isIndexReadOnly = false
        /// Before that moment nobody looks again for an index that can only be read.
        var nextLook = Instant(nanoseconds: .min)
        var isOpening = true
        /// The writing thread looks through the index: this ends it.
        var indexCheck: Database.Interruption?
        var isWritable = false
        /// When the disk is to be tried again; nil: it works, or is being tried.
        var retryTime: Instant?
        var statistics = CacheStatistics()
    }
}
