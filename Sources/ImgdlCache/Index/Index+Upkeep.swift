import Glibc
import ImgdlCore

/// What keeps the index true and small.
extension Index {
    static let pageBytes: Int64 = 4096
    /// The log is brought into the index at this length, as far as nobody reads what is in it.
    static let logPages = StorageLog.usualBytes / pageBytes
    /// So many pages that are free are left for what comes next.
    private static let sparePages: Int64 = 256
    /// So many are given back at a time: in place of each another one may have to be moved.
    private static let shrunkPages: Int64 = 128
    /// Milliseconds that SQLite waits for others by itself. It does not wait for one that is emptying the log, too.
    private static let attemptMilliseconds: Int32 = 100
    private static let pauseMicroseconds: UInt32 = 2_000
    /// One that empties the log is done by then, or others have filled it again.
    private static let emptyingMilliseconds: Int64 = 250

    /// One transaction, if the log has room for it; it says for how much. Others that are in the way of emptying the log are
    /// waited for until `end` at most.
    func change<Result>(
        _ purpose: StorageLog.Purpose, until end: Instant,
        _ body: (StorageLog.Room) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        try makeRoomInLog(purpose, until: end)
        return try database.transaction { () throws(DatabaseError) in
            // Others may have written meanwhile, and cannot from here on. They are no readers: it is tried again.
            guard let room = StorageLog.room(for: purpose, length: log.bytes) else { throw .busy(database.path) }
            return try body(room)
        }
    }

    /// Empties the log where it is long. Throws that it is full when somebody reads it for long, and that others write when
    /// there was no time to find that out, or another connection is emptying it.
    private func makeRoomInLog(_ purpose: StorageLog.Purpose, until end: Instant) throws(DatabaseError) {
        let start = MonotonicClock().now()
        let readersEnd = min(end, emptying.end(now: start))
        let othersEnd = start.advanced(byMilliseconds: Self.emptyingMilliseconds)
        var now = start
        // Looked at once each time: others may write to a log that has just been emptied.
        var length = log.bytes
        while length > StorageLog.usualBytes {
            let isTried = database.emptyLog(waiting: now < readersEnd ? Self.attemptMilliseconds : 0)
            length = log.bytes
            now = MonotonicClock().now()
            guard length > StorageLog.usualBytes else { break }
            if isTried { emptying.failed(since: start, now: now) }
            let hasRoom = StorageLog.room(for: purpose, length: length) != nil
            let isReadForLong = emptying.isReadForLong(now: now)
            // Another one that empties it is none who reads.
            guard now < (isTried || isReadForLong ? readersEnd : min(end, othersEnd)) else {
                if hasRoom { return }
                throw isReadForLong ? .logIsFull(database.path) : .busy(database.path)
            }
            _ = Thread.resting { usleep(Self.pauseMicroseconds) }
        }
        emptying.succeeded()
    }

    /// Of damage that SQLite does not meet while it reads. One that is opened to be written to is looked through once: what
    /// is stored in one that is damaged so may be lost.
    enum Check {
        /// Before the first change.
        case isDue
        /// It is too long for that: when there is time. `attempts`: that were ended.
        case isDueInIdleTime(attempts: Int, notBefore: Instant)
        case isDone
    }

    /// Of 4 MiB some 10,000 entries have room, and it takes 5 ms to look through them.
    static let checkedAtOncePages: Int64 = 1_024

    /// Before the first change. Throws that it is damaged.
    func checkIfShort() throws(DatabaseError) {
        guard case .isDue = check else { return }
        guard try database.integer("PRAGMA page_count") <= Self.checkedAtOncePages else {
            check = .isDueInIdleTime(attempts: 0, notBefore: MonotonicClock().now())
            return
        }
        if try database.check() { check = .isDone }
    }

    /// The file in which changes wait to be brought into the index.
    struct Log {
        fileprivate let path: String

        fileprivate var bytes: Int64 {
            var status = stat()
            return lstat(path, &status) == 0 ? Int64(status.st_blocks) * 512 : 0
        }

        /// Whoever writes wants to empty it.
        var isLong: Bool { bytes > StorageLog.usualBytes }
    }

    var log: Log { Log(path: database.path + "-wal") }

    /// Whether there are more free pages than what comes next needs.
    func canShrink() throws(DatabaseError) -> Bool {
        try database.integer("PRAGMA freelist_count") > Self.sparePages
    }

    /// Gives some pages that are free back to the disk: the file becomes shorter when the log is brought in. Inside a
    /// transaction.
    func shrink() throws(DatabaseError) {
        try database.execute("PRAGMA incremental_vacuum(\(Self.shrunkPages))")
        shrunkPages += Self.shrunkPages
    }

    /// Brings the log in where much has been given back: the log of rows that go is short.
    func shortenFile() {
        guard shrunkPages >= Self.sparePages else { return }
        shrunkPages = 0
        database.emptyLog(waiting: 0)
    }

    /// Counts what is there: totals may have been forged, or be those of a library that counted otherwise. `writers`: those
    /// that have a folder; what others reserved is nobody's. Inside a transaction.
    func recount(writers: Set<String>) throws(DatabaseError) {
        try database.execute(
            """
            UPDATE totals SET entries = 0, bytes = 0, row_bytes = 0;
            INSERT INTO totals (kind, entries, bytes, row_bytes)
                SELECT kind, count(*), CAST(total(cost) AS INTEGER), CAST(total(row_cost) AS INTEGER)
                FROM entries WHERE true GROUP BY kind
                ON CONFLICT (kind) DO UPDATE SET
                    entries = excluded.entries, bytes = excluded.bytes, row_bytes = excluded.row_bytes
            """)
        let names = try database.prepare("SELECT name FROM writers")
        var gone: [String] = []
        defer { names.reset() }
        while try names.step() {
            let name = names.bytes(0) { String(decoding: $0, as: UTF8.self) }
            if !writers.contains(name) { gone.append(name) }
        }
        names.reset()
        for name in gone {
            try release(name)
            try checkChanged("a writer")
        }
    }

    /// A writer is no more, and its files neither.
    func release(_ writer: String) throws(DatabaseError) {
        let deletion = try database.prepare("DELETE FROM writers WHERE name = ?1")
        deletion.bind(1, writer)
        try deletion.run()
    }
}
