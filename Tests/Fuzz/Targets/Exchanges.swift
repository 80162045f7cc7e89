import ImgdlCache
import ImgdlCore

/// What happens between one client, its cache and a server that lies, one exchange after the other. Each has a line
/// `STATUS LENGTH SECONDS`: what the server would answer, and how much later. Then its fields: `>` ahead of what is asked, `<`
/// ahead of what is answered. An empty line ends it.
///
/// Each byte that the server sends tells where in the resource it stands, as far as its Content-Range says. So each answer
/// from the cache can be held against what it claims to be.
func fuzzExchanges(_ bytes: UnsafeRawBufferPointer) throws {
    let client = try Client()
    var exchange: Exchange?
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).prefix(400) {
        let text = String(decoding: line, as: UTF8.self)
        if text.isEmpty {
            if let exchange { try client.run(exchange) }
            exchange = nil
        } else if exchange == nil {
            exchange = Exchange(text)
        } else if let field = field(text.dropFirst()) {
            if text.first == ">" { exchange?.asked.append(field) } else { exchange?.answered.append(field) }
        }
    }
    if let exchange { try client.run(exchange) }
}

private func field(_ text: Substring) -> HeaderField? {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let value = text[text.index(after: colon)...].drop { $0 == " " }
    return HeaderField(String(text[..<colon]), String(value))
}

private struct Exchange {
    let status: Int32
    let length: Int
    let seconds: Int64
    var asked: [HeaderField] = []
    var answered: [HeaderField] = []

    init(_ line: String) {
        let numbers = line.split(separator: " ").map { CheckedNumber(digits: $0) ?? 0 }
        func number(_ at: Int, _ bounds: ClosedRange<Int64>) -> Int64 {
            at < numbers.count ? numbers[at].clamped(to: bounds) : bounds.lowerBound
        }
        status = Int32(number(0, 200...599))
        length = Int(number(1, 0...4096))
        seconds = number(2, 0...1 << 33)
    }

    /// As the engine has it: the length where it can be read.
    var head: ResponseHead {
        let length = answered.first(named: "Content-Length").flatMap {
            CheckedNumber(digits: $0)?.within(0...Int64.max)
        }
        return ResponseHead(
            status: status, httpVersion: 11, fields: answered, contentLength: length, isEncoded: false)
    }

    /// Where its body stands in the resource.
    var start: Int64 {
        status == 206 ? head.first(named: "Content-Range").flatMap(ContentRange.init)?.range?.lowerBound ?? 0 : 0
    }

    var body: [UInt8] { (0..<Int64(length)).map { byte(at: start + $0) } }
}

private func byte(at position: Int64) -> UInt8 { UInt8(truncatingIfNeeded: position &* 167 >> 3) }

private final class SetClock: Clock, @unchecked Sendable {
    var seconds: Int64 = 1_800_000_000
    func now() -> Instant { Instant(nanoseconds: 0) }
    func wallTime() -> Int64 { seconds }
    func wallMicroseconds() -> Int64 { seconds * 1_000_000 }
    func timeWithSleep() -> Int64 { 0 }
}

private final class Client {
    private let clock = SetClock()
    private let cache: Cache

    init() throws { cache = try Cache(CacheConfiguration(), clock: clock) { _ in } }

    deinit { cache.close() }

    func run(_ exchange: Exchange) throws {
        clock.seconds += exchange.seconds
        let request = CacheRequest(method: "GET", fields: exchange.asked, mode: .use, context: StoredContext.blank)
        var decision = CacheDecision.forward(adding: [], stores: true)
        var isSound = true
        let wallTime = clock.seconds
        let found = cache.findInMemory("k") { entries -> StoreChoice in
            for index in entries.indices where !entries[index].response.isSound { isSound = false }
            decision = CacheRules.decide(CacheQuestion(request), copy entries, wallTime: wallTime)
            switch decision {
            case .answer(let index, _, _, _), .answerPart(let index, _, _, _, _), .resume(let index, _),
                .validate(let index, _, _):
                return .entry(index, withBody: true)
            case .forward, .unavailable: return .nothing
            }
        }
        try require(isSound, "what is stored is not sound")
        try follow(decision, found, request, exchange)
    }

    private func follow(
        _ decision: CacheDecision, _ found: FoundEntry?, _ request: CacheRequest, _ exchange: Exchange
    ) throws {
        switch (decision, found) {
        case (.answer(_, let head, _, _), let found?): try check(head, found, nil)
        case (.answerPart(_, let head, _, let range, _), let found?): try check(head, found, range)
        case (.validate(_, _, let stale), let found?):
            _ = CacheRules.mayUse(
                found.entry.response, stale: stale, insteadOf: exchange.status, wallTime: clock.seconds)
            guard exchange.status == 304 else { return store(request, exchange.head, exchange.body) }
            let validation = CacheRules.validated(
                found.entry.response, by: exchange.head, for: request, requestTime: clock.seconds,
                responseTime: clock.seconds)
            if case .kept(let updated) = validation {
                try require(
                    !CacheControl(updated.fields).noStore || CacheControl(updated.fields).mustUnderstand,
                    "kept, though it is no-store")
                cache.update(found.entry.id, updated)
            } else {
                cache.remove(found.entry.id)
            }
        case (.resume, let found?):
            switch ResumeRules.answer(to: found.entry.response, exchange.head) {
            case .continues(let whole): store(request, whole, found.bytes + exchange.body)
            case .whole: store(request, exchange.head, exchange.body)
            case .refetch: cache.remove(found.entry.id)
            }
        case (.forward(_, let stores), _): if stores { store(request, exchange.head, exchange.body) }
        case (_, nil), (.unavailable, _): throw Finding("a decision about nothing: \(decision)")
        }
    }

    /// As the engine does: whole, or what came of it.
    private func store(_ request: CacheRequest, _ head: ResponseHead, _ body: [UInt8]) {
        let time = clock.seconds
        guard var response = CacheRules.stored(request, head, requestTime: time, responseTime: time),
            let writer = cache.write("k", response, since: cache.requestMark("k"))
        else { return }
        var collected = Body(expected: Int64(body.count))
        guard body.withUnsafeBytes({ collected.append($0) }) else { return writer.abandon() }
        writer.append(collected.slices(from: 0))
        if Int64(body.count) == head.contentLength ?? Int64(body.count) {
            response.bodyLength = Int64(body.count)
            if response.isSound { writer.finish(response) } else { writer.abandon() }
        } else {
            let kept = ResumeRules.beginning(
                request, head, received: Int64(body.count), requestTime: time, responseTime: time)
            if let kept { writer.keep(kept) } else { writer.abandon() }
        }
    }

    private func check(_ head: ResponseHead, _ found: FoundEntry, _ range: Range<Int64>?) throws {
        let stored = found.bytes
        try require(Int64(stored.count) == found.entry.response.bodyLength, "\(stored.count) bytes")
        guard let range else { return }
        try require(range.lowerBound >= 0 && range.upperBound <= stored.count, "\(range) of \(stored.count) bytes")
        let shown = head.first(named: "Content-Range").flatMap(ContentRange.init)?.range
        guard let shown else { throw Finding("206 without a range: \(head.fields)") }
        try require(shown.count == range.count && head.contentLength == Int64(range.count), "\(shown) for \(range)")
        for (offset, position) in zip(range, shown) where stored[Int(offset)] != byte(at: position) {
            throw Finding("another byte at \(position) of the resource, which is \(offset) of what is stored")
        }
    }
}

extension FoundEntry {
    fileprivate var bytes: [UInt8] { body.flatMap { slice in slice.withBytes { Array($0) } } }
}
