import Glibc
import ImgdlCore

/// What keeps the index true and small.
extension Index {
    static let pageBytes: Int64 = 4096
    /// The log is brought into the index at this length.
    static let logPages = 1_000
    /// Beyond this nothing more is stored until it is shorter: somebody reads for long, and it cannot be brought in.
    static let mostLogBytes: Int64 = 5 << 20
    /// So many pages that are free are left for what comes next.
    private static let sparePages: Int64 = 256

    /// Whether there is room in the log for another transaction.
    func hasRoomInLog() -> Bool {
        if logBytes() <= Self.mostLogBytes { return true }
        // Waits for who reads, as long as for who writes.
        try? database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return logBytes() <= Self.mostLogBytes
    }

    private func logBytes() -> Int64 {
        var status = stat()
        return stat(database.path + "-wal", &status) == 0 ? Int64(status.st_blocks) * 512 : 0
    }

    /// Gives pages that are free back to the disk: the file becomes shorter when the log is brought in. Inside a transaction.
    func shrink() throws(DatabaseError) {
        let free = try database.integer("PRAGMA freelist_count")
        if free > Self.sparePages { try database.execute("PRAGMA incremental_vacuum(\(Self.sparePages))") }
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
        for name in gone { try release(name) }
    }

    /// A writer is no more, and its files neither.
    func release(_ writer: String) throws(DatabaseError) {
        let deletion = try database.prepare("DELETE FROM writers WHERE name = ?1")
        deletion.bind(1, writer)
        try deletion.run()
    }
}
