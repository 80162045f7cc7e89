import ImgdlCore

/// What only tests set otherwise.
struct CacheTuning: Sendable {
    /// How long what is stored waits for more before it is written to the index; nil: until somebody asks or the batch
    /// is full, and a disk that has failed is tried again only when somebody stores.
    var batchMilliseconds: Int64? = 500
    /// Memory of what is on its way to the disk. What comes when so much waits is not stored: the disk is slower than the
    /// network.
    var queueBytes = 32 << 20
    /// Memory of removals on their way. Where so much waits, everything is removed.
    var removalBytes = 8 << 20
    /// Answers that have waited for so long, while many wait, are not stored.
    var waitingMilliseconds: Int64 = 300
    /// Answers that have not been written so long after the cache is closed are not stored.
    var closingMilliseconds: Int64 = 500
    /// Removals that have not been written have so much longer: then bodies go without the index.
    var closingRemovalMilliseconds: Int64 = 2_000
    /// So long another program that writes to the index is waited for.
    var busyMilliseconds: Int64 = 5_000
    /// Where it still writes so much later, the disk counts as failed.
    var failingMilliseconds: Int64 = 20_000
    /// So often others may end that a long index is looked through, which is then left.
    var checkAttempts = 12
    /// After the disk has failed, until it is tried again; doubled each time.
    var firstRetryMilliseconds: Int64 = 1_000
    var lastRetryMilliseconds: Int64 = 300_000
    /// So many entries go in one transaction when everything is removed; of more the rest goes step by step before.
    var clearedAtOnce = 1_000_000
    var disk: any Disk = KernelDisk()
    typealias ThreadStart = @Sendable (@escaping () -> Void) throws(Failure) -> Thread
    /// Begins the thread that tells of what memory alone does not keep.
    var startTelling: ThreadStart = { body throws(Failure) in try Thread.start(name: "imgdl-cache", body) }
    var steps = IndexSchema.steps
}
