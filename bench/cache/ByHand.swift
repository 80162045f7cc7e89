import CStore
import Glibc
import ImgdlCore

/// The disk cache that a person writes in an afternoon: a table of SQLite by URL, with the response's fields, a file for each body,
/// and a thread that looks both up, with a mutex and a condition each way. Nothing is verified, no other program and no older
/// answer is thought of.
final class ByHand {
    private let table: Table
    private let worker: Worker
    private let source = (0..<CacheBench.bodies).map { _ in [UInt8](repeating: 7, count: 100_000) }
    private let target = UnsafeMutableRawPointer.allocate(byteCount: 100_000, alignment: 16)

    /// Among so many rows.
    init(_ folder: String, _ count: Int) {
        let table = Table(folder, count)
        self.table = table
        worker = Worker { table.lookUp() }
    }

    deinit {
        worker.end()
        target.deallocate()
    }

    func cost(of part: CacheBench.Part) -> Double {
        if part == .memory { return copying() }
        table.part = part
        return CacheBench.cpu(2_000) { _ in worker.perform() }
    }

    /// As many bytes as a hit from memory has, of which it copies none.
    private func copying() -> Double {
        CacheBench.cpu(20_000) { i in
            source[i % source.count].withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        }
    }
}

/// The table and the files.
private final class Table: @unchecked Sendable {
    /// Which bodies are looked up. Changed while nobody does.
    var part = CacheBench.Part.small
    private let folder: String
    private let count: Int
    private var database: OpaquePointer?
    private var select: OpaquePointer?

    init(_ folder: String, _ count: Int) {
        self.folder = folder
        self.count = count
        mkdir(folder, 0o700)
        guard sqlite3_open(folder + "/index.sqlite", &database) == SQLITE_OK else { CacheBench.fail("no table") }
        fill()
        sqlite3_prepare_v2(database, "SELECT file, fields FROM pictures WHERE url = ?1", -1, &select, nil)
        for part in [CacheBench.Part.small, .large] {
            for body in 0..<CacheBench.bodies { write(CacheBench.number(body, part, among: count), part.bytes) }
        }
    }

    deinit {
        sqlite3_finalize(select)
        sqlite3_close_v2(database)
    }

    /// Of any body.
    func lookUp() {
        let key = CacheBench.key(CacheBench.number(Int.random(in: 0..<CacheBench.bodies), part, among: count))
        _ = store_bind_text(select, 1, key, Int32(key.utf8.count))
        defer { sqlite3_reset(select) }
        guard sqlite3_step(select) == SQLITE_ROW, let fields = sqlite3_column_text(select, 1) else {
            CacheBench.fail("a row was not found")
        }
        let response = String(cString: fields)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: part.bytes, alignment: 16)
        defer { memory.deallocate() }
        let descriptor = Glibc.open("\(folder)/\(sqlite3_column_int64(select, 0))", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        guard Glibc.read(descriptor, memory, part.bytes) == part.bytes, !response.isEmpty else {
            CacheBench.fail("a file was not read")
        }
    }

    private func write(_ number: Int, _ count: Int) {
        let bytes = [UInt8](repeating: 7, count: count)
        let descriptor = Glibc.open("\(folder)/\(number)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        guard Glibc.write(descriptor, bytes, count) == count else { CacheBench.fail("a file was not written") }
    }

    private func fill() {
        let fields = CacheBench.fields(100_000).map { "\($0.name): \($0.value)\r\n" }.joined()
        sqlite3_exec(
            database,
            """
            PRAGMA journal_mode = WAL;
            CREATE TABLE pictures (url TEXT PRIMARY KEY, file INTEGER, fields TEXT);
            BEGIN
            """, nil, nil, nil)
        var insert: OpaquePointer?
        sqlite3_prepare_v2(database, "INSERT INTO pictures VALUES (?1, ?2, ?3)", -1, &insert, nil)
        for number in 0..<count {
            let key = CacheBench.key(number)
            _ = store_bind_text(insert, 1, key, Int32(key.utf8.count))
            sqlite3_bind_int64(insert, 2, Int64(number))
            _ = store_bind_text(insert, 3, fields, Int32(fields.utf8.count))
            guard sqlite3_step(insert) == SQLITE_DONE else { CacheBench.fail("a row was not written") }
            sqlite3_reset(insert)
        }
        sqlite3_finalize(insert)
        sqlite3_exec(database, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)", nil, nil, nil)
    }
}

/// A hit of a cache whose callers do not wait for the disk changes threads twice, and with less it cannot be done: from the
/// caller to the thread that reads, and from there to who waits for the answer.
private final class Worker: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let asked = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let answered = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let work: () -> Void
    private var isAsked = false
    private var isEnding = false
    private var thread = pthread_t()

    init(_ work: @escaping () -> Void) {
        self.work = work
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(asked, nil)
        pthread_cond_init(answered, nil)
        let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { worker in
            if let worker { Unmanaged<Worker>.fromOpaque(worker).takeUnretainedValue().run() }
            return nil
        }
        guard pthread_create(&thread, nil, run, Unmanaged.passUnretained(self).toOpaque()) == 0 else {
            CacheBench.fail("there is no thread")
        }
    }

    private func run() {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            while !isAsked, !isEnding { pthread_cond_wait(asked, mutex) }
            if isEnding { return }
            pthread_mutex_unlock(mutex)
            work()
            pthread_mutex_lock(mutex)
            isAsked = false
            pthread_cond_signal(answered)
        }
    }

    /// Waits for it.
    func perform() {
        pthread_mutex_lock(mutex)
        isAsked = true
        pthread_cond_signal(asked)
        while isAsked { pthread_cond_wait(answered, mutex) }
        pthread_mutex_unlock(mutex)
    }

    func end() {
        pthread_mutex_lock(mutex)
        isEnding = true
        pthread_cond_signal(asked)
        pthread_mutex_unlock(mutex)
        pthread_join(thread, nil)
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(asked)
        pthread_cond_destroy(answered)
        mutex.deallocate()
        asked.deallocate()
        answered.deallocate()
    }
}
