import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// A clock that stands still until it is set.
final class TestClock: Clock, @unchecked Sendable {
    private let lock = Lock()
    private var instant = Instant(nanoseconds: 0)
    private var seconds: Int64 = 1_700_000_000

    func now() -> Instant { lock.withLock { instant } }
    func wallTime() -> Int64 { lock.withLock { seconds } }
    func wallMicroseconds() -> Int64 { wallTime() * 1_000_000 }
    func timeWithSleep() -> Int64 { now().nanoseconds }

    func advance(seconds: Int64) {
        lock.withLock {
            self.seconds += seconds
            instant = instant.advanced(byMilliseconds: seconds * 1_000)
        }
    }

    func advance(milliseconds: Int64) {
        lock.withLock { instant = instant.advanced(byMilliseconds: milliseconds) }
    }
}

/// Events in order.
final class EventLog: @unchecked Sendable {
    private let lock = Lock()
    private let came: Condition
    private var events: [CacheEvent] = []
    private var listener: ((CacheEvent) -> Void)?

    init() { came = Condition(lock) }

    /// Called with each, on the cache's thread.
    func listen(_ listener: @escaping (CacheEvent) -> Void) { lock.withLock { self.listener = listener } }

    func add(_ event: CacheEvent) {
        let listener = lock.withLock { () -> ((CacheEvent) -> Void)? in
            events.append(event)
            came.signal()
            return self.listener
        }
        listener?(event)
    }

    /// False: it has not come for so long that it will not.
    func wait(for kind: CacheEvent.Kind) -> Bool {
        let end = MonotonicClock().now().advanced(byMilliseconds: 60_000)
        return lock.withLock {
            while !events.contains(where: { $0.kind == kind }) { if !came.wait(until: end) { return false } }
            return true
        }
    }

    var all: [CacheEvent] { lock.withLock { events } }
    var kinds: [CacheEvent.Kind] { all.map(\.kind) }
}

func temporaryFolder() -> String {
    var template = Array("/tmp/imgdl-cache-test-XXXXXX".utf8CString)
    return String(cString: mkdtemp(&template))
}

func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state)
    }
}

func slices(_ bytes: [UInt8]) -> [BodySlice] {
    var body = Body(expected: Int64(bytes.count))
    bytes.withUnsafeBytes { XCTAssertTrue(body.append($0)) }
    return body.slices(from: 0)
}

func response(
    _ fields: [HeaderField] = [], at time: Int64 = 100, varying: [VaryingField] = [],
    extent: StoredResponse.Extent = .whole
) -> StoredResponse {
    StoredResponse(
        status: 200, httpVersion: 11, fields: fields, requestTime: time, responseTime: time, varying: varying,
        context: .blank,
        extent: extent)
}

extension FoundEntry {
    var bytes: [UInt8] { body.flatMap { slice in slice.withBytes { Array($0) } } }
}

extension Cache {
    /// Waits for a look-up of the newest entry.
    @discardableResult
    func put(_ key: String, _ content: [UInt8], _ response: StoredResponse = response(), keeps: Bool = false) -> Bool {
        guard let writer = write(key, response) else { return false }
        // In two pieces.
        let half = content.count / 2
        writer.append(slices(Array(content[..<half])))
        writer.append(slices(Array(content[half...])))
        if keeps { writer.keep(response) } else { writer.finish(response) }
        return true
    }
}

extension ImageStore {
    /// Of what has been found.
    func keep(_ image: DecodedImage, _ options: DecodeOptions, of entry: StoredEntry, key: String) {
        let images = expect(key)
        images.areOf(found: entry)
        images.keep(image, options)
    }
}

/// What a folder and all that is in it take of the disk.
func bytesOnDisk(_ path: String) -> Int64 {
    var status = stat()
    guard lstat(path, &status) == 0 else { return 0 }
    var bytes = Int64(status.st_blocks) * 512
    if status.st_mode & S_IFMT == S_IFDIR {
        for name in Folder.names(in: path) { bytes += bytesOnDisk("\(path)/\(name)") }
    }
    return bytes
}

/// The same of bodies, stored and on their way, without their folders.
func bodyBytes(_ path: String) -> Int64 {
    var bytes: Int64 = 0
    for folder in ["\(path)/bodies-1", "\(path)/writers-1"] {
        for inner in Folder.names(in: folder) {
            for name in Folder.names(in: "\(folder)/\(inner)") { bytes += bytesOnDisk("\(folder)/\(inner)/\(name)") }
        }
    }
    return bytes
}

/// A store in a folder of its own, which is written when the test says so.
class StoreTestCase: XCTestCase {
    var path = ""
    let clock = TestClock()
    let log = EventLog()
    var tuning = CacheTuning()
    var configuration = CacheConfiguration()

    override func setUp() {
        path = temporaryFolder() + "/cache"
        tuning.batchMilliseconds = nil
        configuration.directory = path
    }

    override func tearDown() { removeFolder(String(path.dropLast("/cache".count))) }

    func open() throws -> Cache {
        try Cache(configuration, clock: clock, tuning: tuning) { [log] in log.add($0) }
    }

    /// All body files.
    var files: [String] {
        Folder.names(in: "\(path)/bodies-1").flatMap { shard in
            Folder.names(in: "\(path)/bodies-1/\(shard)").map { "\(path)/bodies-1/\(shard)/\($0)" }
        }
    }

    var temporaries: [String] {
        Folder.names(in: "\(path)/writers-1").flatMap { Folder.names(in: "\(path)/writers-1/\($0)") }
    }

    func read(_ file: String) -> [UInt8] {
        guard let stream = fopen(file, "r") else { return [] }
        defer { fclose(stream) }
        var content = [UInt8](repeating: 0, count: 1 << 20)
        content.removeLast(content.count - fread(&content, 1, content.count, stream))
        return content
    }

    func write(_ content: [UInt8], to file: String) {
        guard let stream = fopen(file, "w") else { return XCTFail("\(file): \(errno)") }
        XCTAssertEqual(fwrite(content, 1, content.count, stream), content.count)
        fclose(stream)
    }
}
