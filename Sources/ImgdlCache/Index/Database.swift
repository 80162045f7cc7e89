import CStore
import Glibc
import ImgdlCore

/// What SQLite says when it cannot.
struct DatabaseError: Error {
    /// SQLite's extended result code.
    let code: Int32
    let message: String
    /// Of the kernel's call that failed; 0: of none.
    let number: Int32
    /// Nothing was tried: somebody reads for long, and the log has no room for more.
    let isLogFull: Bool

    private var primary: Int32 { code & 0xFF }

    /// What the host is told while others write.
    static let busyWords = "another program has been writing to it for some seconds"

    init(code: Int32, path: String, message: String, number: Int32) {
        self.code = code
        self.number = number
        isLogFull = false
        let words =
            switch code & 0xFF {
            case SQLITE_BUSY, SQLITE_LOCKED: Self.busyWords
            // The kernel knows more of it.
            case SQLITE_IOERR where number != 0, SQLITE_CANTOPEN where number != 0: String(cString: strerror(number))
            default: message
            }
        self.message = "\(path): \(words)"
    }

    private init(logOf path: String) {
        code = SQLITE_BUSY
        message = "\(path): another program reads it for so long that its log is full"
        number = 0
        isLogFull = true
    }

    static func logIsFull(_ path: String) -> DatabaseError { DatabaseError(logOf: path) }

    /// Another connection was faster.
    static func busy(_ path: String) -> DatabaseError {
        DatabaseError(code: SQLITE_BUSY, path: path, message: "", number: 0)
    }

    /// The tables and what orders them contradict each other, which SQLite does not look for by itself.
    static func damaged(_ path: String, _ message: String) -> DatabaseError {
        DatabaseError(code: SQLITE_CORRUPT, path: path, message: message, number: 0)
    }

    /// Another connection writes.
    var isBusy: Bool { !isLogFull && (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) }
    /// The file is no database, a damaged one, or has not the tables it should have.
    var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR }

    /// Somebody has ended it (`Database.Interruption`).
    var isInterrupted: Bool { primary == SQLITE_INTERRUPT }

    /// As the host is told.
    var failure: Failure {
        let kind: ErrorCode =
            switch primary {
            case SQLITE_BUSY, SQLITE_LOCKED: .cacheBusy
            case SQLITE_FULL: .diskFull
            case SQLITE_READONLY, SQLITE_PERM: .readOnly
            case SQLITE_IOERR, SQLITE_CANTOPEN: DiskError.code(number)
            default: .diskFailed
            }
        return Failure(kind, message)
    }
}

/// One connection to a database. Used by one thread at a time.
final class Database {
    private let handle: OpaquePointer
    /// Ends when SQLite has closed it.
    private let claim: OpenIndexes.Claim
    let path: String
    /// Versions of files of which SQLite believes that nobody writes to them; nil: it looks for itself.
    private let unchanged: Unchanged?
    private var busyMilliseconds: Int32

    enum Access {
        /// Also where it is not there.
        case making
        case writing
        case reading
        /// Of a file that nobody writes to, in a folder where SQLite cannot make the files by which it would see that.
        case readingUnchanged
        /// The same with its log, of which SQLite keeps in memory of its own what others would share: it locks nothing.
        case readingUnchangedWithLog
    }

    private struct Unchanged: Equatable {
        let file: FileVersion?
        /// nil: there is none, or nothing in it.
        let log: FileVersion?
        /// By which writers have the log in common.
        let isShared: Bool

        init(_ path: String, _ access: Access) {
            file = FileVersion(path)
            log = FileVersion.size(path + "-wal") > 0 ? FileVersion(path + "-wal") : nil
            isShared = access == .readingUnchangedWithLog && FileVersion.isShared(path)
        }
    }

    private let access: Access
    private var busyWait = BusyWait()

    /// Waits for other connections so long, whatever is done.
    init(_ path: String, _ access: Access = .making, busyMilliseconds: Int32) throws(DatabaseError) {
        var handle: OpaquePointer?
        let status: Int32
        try Self.clearJournal(path, canWrite: access == .making || access == .writing)
        let claim = OpenIndexes.Claim()
        claim.add(path)
        let real = Self.withoutLinks(path)
        let flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
        switch access {
        case .writing:
            status = sqlite3_open_v2(real, &handle, flags | SQLITE_OPEN_READWRITE, nil)
        case .making:
            status = sqlite3_open_v2(real, &handle, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nil)
        case .reading:
            status = sqlite3_open_v2(real, &handle, flags | SQLITE_OPEN_READONLY, nil)
        case .readingUnchanged, .readingUnchangedWithLog:
            let how = access == .readingUnchanged ? "immutable=1" : "vfs=unix-none"
            let uri = "file:\(Self.escaped(real))?\(how)"
            status = sqlite3_open_v2(uri, &handle, flags | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil)
        }
        guard status == SQLITE_OK, let handle else {
            let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            let number = handle.map { sqlite3_system_errno($0) } ?? ENOMEM
            sqlite3_close_v2(handle)
            throw DatabaseError(code: status, path: path, message: message, number: number)
        }
        claim.add(path)
        self.handle = handle
        self.claim = claim
        self.path = path
        self.busyMilliseconds = busyMilliseconds
        self.access = access
        switch access {
        case .making, .writing, .reading: unchanged = nil
        case .readingUnchanged, .readingUnchangedWithLog: unchanged = Unchanged(path, access)
        }
        sqlite3_extended_result_codes(handle, 1)
        let waiting: @convention(c) (UnsafeMutableRawPointer?, Int32) -> Int32 = { database, count in
            guard let database else { return 0 }
            return Unmanaged<Database>.fromOpaque(database).takeUnretainedValue().waitForOthers(count) ? 1 : 0
        }
        sqlite3_busy_handler(handle, waiting, Unmanaged.passUnretained(self).toOpaque())
        // SQLite's last connection would remove the log by its name, which may be another index's by then.
        var persists: Int32 = 1
        sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &persists)
        guard access == .readingUnchangedWithLog else { return }
        // The log stays what it is, also where it might be brought in at the end.
        store_keep_log(handle)
        try execute("PRAGMA locking_mode = EXCLUSIVE")
    }

    deinit {
        sqlite3_busy_handler(handle, nil, nil)
        sqlite3_close_v2(handle)
    }

    /// SQLite opens a journal that lies beside an index, and would wait at a pipe. What is no file has no business there.
    private static func clearJournal(_ path: String, canWrite: Bool) throws(DatabaseError) {
        let journal = path + "-journal"
        if PlainFile.isSound(journal) { return }
        if canWrite, unlink(journal) != 0 { rmdir(journal) }
        guard PlainFile.isSound(journal) else {
            throw DatabaseError(
                code: SQLITE_CANTOPEN, path: journal, message: "no file, or one that other users may write to",
                number: 0)
        }
    }

    /// The folder that it is in may be a link, or lie behind one. The file itself may not be one, nor then anything on the way
    /// to it: SQLite says that of both together.
    private static func withoutLinks(_ path: String) -> String {
        guard let end = path.lastIndex(of: "/"), let folder = realpath(String(path[...end]), nil) else { return path }
        defer { free(folder) }
        return String(cString: folder) + path[end...]
    }

    /// As a path of a URI.
    private static func escaped(_ path: String) -> String {
        var text = ""
        for byte in path.utf8 {
            let isPlain = byte == 0x2F || byte >= 0x30 && byte <= 0x39 || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A
            text += isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return text
    }

    /// Waits for other connections so long from now on; 0: it does not wait.
    func setBusy(milliseconds: Int32) { busyMilliseconds = milliseconds }

    /// A moment in which others may come to an end. fork() does not wait for it, as it would for SQLite's own: the
    /// connection has no mutex that a child could find taken, and what it may have locked of the file is no concern of
    /// a child's. False: it has been long enough. `count` is of the moments before in the same call.
    private func waitForOthers(_ count: Int32) -> Bool {
        let now = MonotonicClock().now()
        guard let moment = busyWait.moment(count, patience: busyMilliseconds, now) else { return false }
        _ = Thread.resting { usleep(UInt32(moment) * 1_000) }
        return true
    }

    /// Brings the log into the file and empties it, unless others read what is in it or write. Waits so long for each.
    /// False: nothing was tried, for another connection is doing so, which SQLite does not wait for.
    @discardableResult
    func emptyLog(waiting milliseconds: Int32) -> Bool {
        let before = busyMilliseconds
        setBusy(milliseconds: milliseconds)
        defer { setBusy(milliseconds: before) }
        // Pages of the log; SQLite counts them only once it has its turn.
        var pages: Int32 = -1
        let status = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, &pages, nil)
        return status & 0xFF != SQLITE_BUSY || pages >= 0
    }

    /// SQLite opens a file so that may not be written to.
    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

    /// Somebody writes to what was opened as unchanged, or another file has its name.
    var isOutdated: Bool { isRewritten || hasMoved }

    /// Somebody writes to what was opened as unchanged.
    var isRewritten: Bool { unchanged.map { $0 != Unchanged(path, access) } ?? false }

    /// The file that is open is no longer the one of this name.
    var hasMoved: Bool {
        var moved: Int32 = 0
        return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0
    }

    /// What was committed is on the disk for good.
    func synchronize() throws(DatabaseError) {
        let status = Thread.resting { store_synchronize_database(handle) }
        guard status == SQLITE_OK else { throw error(status) }
    }

    func execute(_ text: String) throws(DatabaseError) {
        let status = sqlite3_exec(handle, text, nil, nil, nil)
        guard status == SQLITE_OK else { throw error(status) }
    }

    func prepare(_ text: String) throws(DatabaseError) -> Statement {
        var statement: OpaquePointer?
        let status = sqlite3_prepare_v3(handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard status == SQLITE_OK, let statement else { throw error(status) }
        return Statement(statement, of: self)
    }

    /// What the first column of the first row says.
    func integer(_ text: String) throws(DatabaseError) -> Int64 {
        let statement = try prepare(text)
        defer { statement.reset() }
        return try statement.step() ? statement.integer(0) : 0
    }

    /// Ends what a connection is doing, from any thread, as long as it is open.
    struct Interruption: @unchecked Sendable {
        fileprivate let handle: OpaquePointer

        func callAsFunction() { sqlite3_interrupt(handle) }
    }

    /// Reads all of it and throws that it is damaged where pages belong to nothing, to two things at once, or are no pages of
    /// their tree: SQLite does not notice the second while it reads, and writes one thing over the other. Others can read and
    /// write meanwhile, and cannot empty the log.
    ///
    /// False: it was ended before. `begin` gets what does so, at any time until this returns, and says whether it is to be
    /// done at all.
    func check(_ begin: (Interruption) -> Bool = { _ in true }) throws(DatabaseError) -> Bool {
        // While one statement is at work, an interruption is for those that begin after it, too: none comes too early.
        let holder = try prepare("SELECT 1")
        defer { holder.reset() }
        guard try holder.step(), begin(Interruption(handle: handle)) else { return false }
        do throws(DatabaseError) {
            let check = try prepare("PRAGMA quick_check(1)")
            defer { check.reset() }
            guard try check.step() else { return true }
            let words = check.bytes(0) { String(decoding: $0, as: UTF8.self) }
            if words == "ok" { return true }
            throw .damaged(path, String(words.map { $0.isNewline ? " " : $0 }))
        } catch {
            if error.isInterrupted { return false }
            throw error
        }
    }

    /// All or nothing. Other connections can read meanwhile, and none can write.
    func transaction<Result>(_ body: () throws(DatabaseError) -> Result) throws(DatabaseError) -> Result {
        try execute("BEGIN IMMEDIATE")
        do throws(DatabaseError) {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // Some errors have rolled it back already.
            if sqlite3_get_autocommit(handle) == 0 { _ = sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    /// Without a trigger of the tables': rows go page by page where none is told of each.
    func executeWithoutTriggers(_ text: String) throws(DatabaseError) {
        let status = store_enable_triggers(handle, false)
        defer { _ = store_enable_triggers(handle, true) }
        guard status == SQLITE_OK else { throw error(status) }
        try execute(text)
    }

    /// Rows that the last statement which changes some has changed.
    var changedRows: Int64 { sqlite3_changes64(handle) }

    fileprivate func error(_ status: Int32) -> DatabaseError {
        DatabaseError(
            code: status, path: path, message: String(cString: sqlite3_errmsg(handle)),
            number: sqlite3_system_errno(handle))
    }
}

/// By which a file is told from the same one when it has been written to.
struct FileVersion: Equatable {
    let number: UInt64
    let size: Int64
    let seconds: Int
    let nanoseconds: Int

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        number = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }

    /// 0: there is nothing.
    static func size(_ path: String) -> Int64 { FileVersion(path)?.size ?? 0 }

    /// Whether somebody may have the log of this index in common with others. The file for that is made empty, and has
    /// 32 KiB before anybody looks into it, for which a full disk may have no room.
    static func isShared(_ index: String) -> Bool { size(index + "-shm") >= 32_768 }
}

/// A prepared statement. Parameters count from 1, columns from 0.
final class Statement {
    private let handle: OpaquePointer
    /// Closed after its last statement.
    private let database: Database

    fileprivate init(_ handle: OpaquePointer, of database: Database) {
        self.handle = handle
        self.database = database
    }

    deinit { sqlite3_finalize(handle) }

    func bind(_ parameter: Int32, _ value: Int64) { _ = sqlite3_bind_int64(handle, parameter, value) }

    func bind(_ parameter: Int32, _ value: String) {
        var value = value
        _ = value.withUTF8 { text in
            text.withMemoryRebound(to: CChar.self) {
                store_bind_text(handle, parameter, $0.baseAddress, Int32($0.count))
            }
        }
    }

    func bind(_ parameter: Int32, _ value: [UInt8]) {
        _ = value.withUnsafeBytes { store_bind_blob(handle, parameter, $0.baseAddress, Int32($0.count)) }
    }

    /// False when there is no further row.
    func step() throws(DatabaseError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let status: throw database.error(status)
        }
    }

    /// To its end, for its effect.
    func run() throws(DatabaseError) {
        defer { reset() }
        while try step() {}
    }

    /// Lets go of what it reads; keeps what is bound.
    func reset() { sqlite3_reset(handle) }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    /// To be computed with.
    func number(_ column: Int32) -> CheckedNumber { CheckedNumber(integer(column)) }

    func bytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let start = sqlite3_column_blob(handle, column)
        // NULL for what is empty, and where there is no memory for it.
        let count = start == nil ? 0 : Int(sqlite3_column_bytes(handle, column))
        return body(UnsafeRawBufferPointer(start: start, count: count))
    }
}
