/// What only tests set otherwise.
struct CacheTuning: Sendable {
    /// How long what is stored waits for more before it is written to the index; nil: until somebody asks or the batch
    /// is full.
    var batchMilliseconds: Int64? = 500
    var batchChanges = 1_024
    /// Of bodies on their way to the disk. What comes when so many wait is not stored: the disk is slower than the
    /// network.
    var queueBytes = 32 << 20
    /// A quarter of a second each, while another program writes to the index.
    var attempts = 20
    /// After the disk has failed, until it is tried again; doubled each time.
    var firstRetryMilliseconds: Int64 = 1_000
    var lastRetryMilliseconds: Int64 = 300_000
    var disk: any Disk = KernelDisk()
    var steps = IndexSchema.steps
}
