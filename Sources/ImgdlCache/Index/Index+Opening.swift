import Glibc
import ImgdlCore

/// Why a file cannot be used as index.
enum IndexProblem: Error {
    /// Damaged, somebody else's, or of a newer library: to be moved aside.
    case unusable(String, isNewer: Bool)
    /// It may be all right: the disk, its rights, another process.
    case unavailable(Failure)

    var failure: Failure {
        switch self {
        case .unusable(let message, _): Failure(.diskFailed, message)
        case .unavailable(let failure): failure
        }
    }

    init(_ error: DatabaseError) {
        self = error.isDamage ? .unusable(error.message, isNewer: false) : .unavailable(error.failure)
    }
}

extension Index {
    /// Opens or makes it, and brings an older one to this version. `steps`: of the schema. Waits a second for others at
    /// most, and afterwards a quarter of one.
    static func open(
        _ path: String, steps: [String], _ check: IndexPlace.Check = { _ in }
    ) throws(IndexProblem) -> Index {
        let deadline = MonotonicClock().now().advanced(byMilliseconds: 1_000)
        return try open(path, steps: steps, check) {
            _ = Thread.resting { usleep(2_000) }
            return MonotonicClock().now() < deadline
        }
    }

    /// `isWorthRetrying` is asked where SQLite does not wait for others by itself.
    static func open(
        _ path: String, steps: [String], _ check: IndexPlace.Check = { _ in }, isWorthRetrying: () -> Bool
    ) throws(IndexProblem) -> Index {
        try makeFile(path)
        let database: Database
        let problem: IndexProblem?
        do throws(DatabaseError) {
            database = try Database(path, busyMilliseconds: 1_000)
            try check(database)
            problem = try Self.problem(of: database, version: steps.count)
        } catch {
            throw IndexProblem(error)
        }
        if let problem { throw problem }
        do throws(DatabaseError) {
            // Fast: pages that a long row leaves are not written over, each of which would be in the log.
            try database.execute(
                """
                PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
                PRAGMA secure_delete = FAST
                """)
            // A new one has nothing to lose, and whoever looks up waits for it: without a sync for each page of it.
            let isMade = try database.integer("PRAGMA user_version") > 0
            try database.execute("PRAGMA synchronous = \(isMade ? "NORMAL" : "OFF")")
            try beginLog(database, isWorthRetrying)
            let isNew = try migrate(database, steps)
            database.setBusy(milliseconds: 250)
            return try Index(database, isNew: isNew)
        } catch {
            throw IndexProblem(error)
        }
    }

    /// SQLite would make a file that all may read, unless the umask says otherwise; its other two get the rights of this one.
    private static func makeFile(_ path: String) throws(IndexProblem) {
        for name in [path, path + "-wal", path + "-shm"] where !PlainFile.isSound(name) {
            throw .unusable("\(name): no file, or one that other users may write to", isNewer: false)
        }
        do throws(DiskError) {
            close(try PlainFile.create(path, O_WRONLY))
        } catch {
            if error.number != EEXIST { throw .unavailable(error.failure) }
        }
    }

    /// For look-ups where nothing can be written: the index as it is, if it is of this version.
    static func openUnwritable(_ path: String, version: Int) throws(IndexProblem) -> Index {
        for name in [path, path + "-wal", path + "-shm"] where !PlainFile.isSound(name) {
            throw .unusable("\(name): no file, or one that other users may write to", isNewer: false)
        }
        let index: Index
        let problem: IndexProblem?
        do throws(DatabaseError) {
            index = try openUnchanging(path)
            problem = try Self.problem(of: index.database, version: version)
        } catch {
            throw IndexProblem(error)
        }
        if let problem { throw problem }
        return index
    }

    /// A log is what another program has not brought into the file yet. Without the file by which they have it in common
    /// nobody has it open, as in a folder that was copied, or on a disk that has no room for that file, and it is read as it
    /// is.
    static func openUnchanging(
        _ path: String, _ check: IndexPlace.Check = { _ in }
    ) throws(DatabaseError) -> Index {
        let hasLog = FileVersion.size(path + "-wal") > 0
        let isShared = FileVersion.isShared(path)
        let access: Database.Access =
            switch (hasLog, isShared) {
            case (false, _): .readingUnchanged
            case (true, false): .readingUnchangedWithLog
            case (true, true): .reading
            }
        return try forReading(try Database(path, access, busyMilliseconds: 50), check)
    }

    /// For look-ups alone.
    static func openForReading(
        _ path: String, _ check: IndexPlace.Check = { _ in }
    ) throws(DatabaseError) -> Index {
        try forReading(try Database(path, .writing, busyMilliseconds: 50), check)
    }

    private static func forReading(
        _ database: Database, _ check: IndexPlace.Check
    ) throws(DatabaseError) -> Index {
        try check(database)
        try database.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON")
        return try Index(database)
    }

    private static func problem(of database: Database, version: Int) throws(DatabaseError) -> IndexProblem? {
        let application = try database.integer("PRAGMA application_id")
        let found = try database.integer("PRAGMA user_version")
        if application == 0, found == 0, try database.integer("SELECT count(*) FROM sqlite_schema") == 0 { return nil }
        if application != IndexSchema.applicationID {
            return .unusable("\(database.path): the database of another program", isNewer: false)
        }
        if found < 0 {
            return .unusable("\(database.path): an index of version \(found), which no library writes", isNewer: false)
        }
        if found > version {
            return .unusable(
                "\(database.path): an index of version \(found), and this library knows \(version)", isNewer: true)
        }
        return nil
    }

    private static func hasLog(_ database: Database) throws(DatabaseError) -> Bool {
        let mode = try database.prepare("PRAGMA journal_mode")
        defer { mode.reset() }
        return try mode.step() && mode.bytes(0) { $0.elementsEqual("wal".utf8) }
    }

    /// Of two connections that do this to a new file at the same time, one is told at once that it is locked.
    private static func beginLog(_ database: Database, _ isWorthRetrying: () -> Bool) throws(DatabaseError) {
        let mode = try database.prepare("PRAGMA journal_mode = WAL")
        defer { mode.reset() }
        while true {
            do throws(DatabaseError) {
                // Saying so again would wait for whoever writes.
                if !database.isReadOnly, try hasLog(database) { return }
                // Of a new one: pages that are free can be given back. It is said before the file has a first page.
                try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
                if try mode.step(), mode.bytes(0, { $0.elementsEqual("wal".utf8) }) { return }
            } catch {
                guard error.isBusy, isWorthRetrying() else { throw error }
                mode.reset()
                continue
            }
            throw DatabaseError(
                code: 14, path: database.path, message: "the file system has no shared memory for an index", number: 0)
        }
    }

    /// Whether it was empty.
    private static func migrate(_ database: Database, _ steps: [String]) throws(DatabaseError) -> Bool {
        // Transactions are on the disk for good with the next sync of all of it; and the log does not stay as large as it once
        // was.
        defer { try? database.execute("PRAGMA synchronous = NORMAL") }
        try database.execute("PRAGMA journal_size_limit = 1048576; PRAGMA wal_autocheckpoint = \(Index.logPages)")
        guard try database.integer("PRAGMA user_version") < steps.count else { return false }
        return try database.transaction { () throws(DatabaseError) in
            // Another process may have been quicker.
            let found = CheckedNumber(try database.integer("PRAGMA user_version"))
            let version = Int(found.clamped(to: 0...Int64(steps.count)))
            if version == 0 { try database.execute("PRAGMA application_id = \(IndexSchema.applicationID)") }
            for step in steps.dropFirst(version) { try database.execute(step) }
            if version < steps.count { try database.execute("PRAGMA user_version = \(steps.count)") }
            return version == 0
        }
    }
}
