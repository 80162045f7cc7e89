import ImgdlCache

@testable import ImgdlCore

/// A cache that can be made to wait with its answers.
final class HoldingStore: Store, @unchecked Sendable {
    let cache: Cache
    private let lock = Lock()
    private let changed: Condition
    private var isHolding = false
    private var held: [() -> Void] = []
    private var finds = 0
    private var interruption: ((FoundEntry?) -> Void)?

    init(_ cache: Cache) {
        self.cache = cache
        changed = Condition(lock)
    }

    /// Look-ups of the whole store are not answered until `release`; nothing is found in memory meanwhile.
    func hold() { lock.withLock { isHolding = true } }

    func release() {
        let waiting = lock.withLock { () -> [() -> Void] in
            isHolding = false
            defer { held = [] }
            return held
        }
        for answer in waiting { answer() }
    }

    /// Runs between a look-up of the whole store and its answer, each time.
    func interrupt(_ body: @escaping (FoundEntry?) -> Void) { lock.withLock { interruption = body } }

    /// Look-ups so far, of whatever kind.
    var findCount: Int { lock.withLock { finds } }

    func waitUntilHeld(_ count: Int) -> Bool {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        return lock.withLock {
            while held.count < count { if !changed.wait(until: limit) { return false } }
            return true
        }
    }

    func findInMemory(_ key: String, _ choose: (borrowing [StoredEntry]) -> StoreChoice) -> FoundEntry? {
        let isHolding = lock.withLock { () -> Bool in
            if !self.isHolding { finds += 1 }
            return self.isHolding
        }
        return isHolding ? nil : cache.findInMemory(key, choose)
    }

    func find(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice,
        completion: @escaping @Sendable (FoundEntry?) -> Void
    ) {
        let isHeld = lock.withLock { () -> Bool in
            guard isHolding else { return false }
            finds += 1
            held.append { [cache] in cache.find(key, choose: choose, completion: completion) }
            changed.broadcast()
            return true
        }
        if isHeld { return }
        cache.find(key, choose: choose) { found in
            self.lock.withLock { self.interruption }?(found)
            completion(found)
        }
    }

    func write(_ key: String, _ response: StoredResponse, since: RequestMark) -> (any StoreWriter)? {
        cache.write(key, response, since: since)
    }

    func requestMark(_ key: String) -> RequestMark { cache.requestMark(key) }
    func removalMark(_ key: String) -> RemovalMark { cache.removalMark(key) }
    func isRemoved(_ mark: RemovalMark) -> Bool { cache.isRemoved(mark) }
    var outdated: OutdatedURLs { cache.outdated }
    func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version?) {
        cache.update(id, response, of: known)
    }
    func use(_ id: EntryID) { cache.use(id) }
    func remove(_ id: EntryID) { cache.remove(id) }
    func digest(_ message: ContextMessage) -> ContextDigest { cache.digest(message) }
    var keyNumber: UInt64 { cache.keyNumber }
    func remove(key: String) { cache.remove(key: key) }
    func count(_ outcome: StoreOutcome) { cache.count(outcome) }
    var images: (any ImageStore)? { cache.images }
}

/// Decoders that make a picture of one pixel of any bytes, and count themselves.
final class CountingCodec: ImageCodec, @unchecked Sendable {
    private let lock = Lock()
    private var made = 0
    private var verdict: (@Sendable (DecodeOptions, Int, Bool) -> ErrorCode?)?

    var decoderCount: Int { lock.withLock { made } }

    /// What is wrong with so many bytes, of a body that is whole or not; nil: nothing.
    func judges(_ verdict: (@Sendable (DecodeOptions, Int, Bool) -> ErrorCode?)?) {
        lock.withLock { self.verdict = verdict }
    }

    func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder {
        lock.withLock {
            made += 1
            return PixelDecoder(options, verdict)
        }
    }

    func makeProbe() -> (any ImageProbe)? { nil }
}

private final class PixelDecoder: ImageDecoder {
    private let options: DecodeOptions
    private(set) var header: ImageHeader?
    private(set) var count = 0

    private let verdict: (@Sendable (DecodeOptions, Int, Bool) -> ErrorCode?)?

    init(_ options: DecodeOptions, _ verdict: (@Sendable (DecodeOptions, Int, Bool) -> ErrorCode?)?) {
        self.options = options
        self.verdict = verdict
    }

    private func check(isWhole: Bool) throws(Failure) {
        if let code = verdict?(options, count, isWhole) { throw Failure(code, "as the test has it") }
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        count += bytes.count
        try check(isWhole: false)
        header = ImageHeader(format: .png, width: 1, height: 1, hasAlpha: false, isProgressive: false)
    }

    func finish(_: BodyEnd) throws(Failure) -> DecodedImage {
        try check(isWhole: true)
        guard let header else { throw Failure(.truncated, "no bytes") }
        let pixels = try PixelBuffer(width: 1, height: 1, format: options.pixelFormat)
        let whole = PixelRectangle(x: 0, y: 0, width: 1, height: 1)
        return DecodedImage(header: header, pixels: pixels, ready: whole, isComplete: true)
    }

    func partialImage() -> DecodedImage? { nil }
    func salvagedImage() -> DecodedImage? { nil }
}
