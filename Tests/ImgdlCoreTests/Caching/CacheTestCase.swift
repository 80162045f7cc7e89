import XCTest

@testable import ImgdlCore

/// What tests of the rules of caching say in few words. Times are seconds from `start`.
class CacheTestCase: XCTestCase {
    typealias Fields = [(String, String)]

    /// The time at which responses are received, unless a test says otherwise.
    let start: Int64 = 1_795_219_200

    func request(
        _ fields: Fields = [], method: String = "GET", mode: CacheMode = .use, followsRedirects: Bool = true,
        staleLimit: StaleLimit = .none,
        identity: RequestIdentity = RequestIdentity(), cookies: String? = nil, url: String = "https://a.example/"
    ) -> CacheRequest {
        let fields = fields.map { HeaderField($0.0, $0.1) }
        let sent = TransportRequest(
            url: testURL(url), method: method, fields: fields, body: nil, maximumHeaderBytes: 1, identity: identity)
        return CacheRequest(
            method: method, fields: fields, mode: mode, followsRedirects: followsRedirects, staleLimit: staleLimit,
            context: StoredContext(
                SecurityContext(sent.manner, cookies: cookies.map { Array($0.utf8) }), downloader: [], testDigest))
    }

    func response(_ fields: Fields = [], status: Int32 = 200, isEncoded: Bool = false) -> ResponseHead {
        let fields = fields.map { HeaderField($0.0, $0.1) }
        return ResponseHead(
            status: status, httpVersion: 11, fields: fields, contentLength: CacheRules.announcedLength(fields),
            isEncoded: isEncoded)
    }

    func date(_ seconds: Int64) -> String { HTTPDate.text(start + seconds) }

    /// What is stored of a response of 100 bytes.
    func stored(
        _ fields: Fields, status: Int32 = 200, to asked: CacheRequest? = nil, length: Int64 = 100,
        at seconds: Int64 = 0,
        isEncoded: Bool = false
    ) -> StoredResponse? {
        let head = response(fields, status: status, isEncoded: isEncoded)
        let time = start + seconds
        var stored = CacheRules.stored(asked ?? request(), head, requestTime: time, responseTime: time)
        stored?.bodyLength = length
        return stored
    }

    private func entries(_ responses: [StoredResponse?]) -> [StoredEntry] {
        responses.compactMap { $0 }.enumerated().map { number, response in
            StoredEntry(id: EntryID(rawValue: Int64(number)), response: response, mark: ChangeMark())
        }
    }

    /// What becomes of a request.
    func decision(
        _ responses: StoredResponse?..., to asked: CacheRequest? = nil, after seconds: Int64 = 0
    ) -> CacheDecision {
        CacheRules.decide(CacheQuestion(asked ?? request()), entries(responses), wallTime: start + seconds)
    }

    /// The same with the fields and the mode of a request.
    func decision(
        _ responses: StoredResponse?..., with fields: Fields, mode: CacheMode = .use, after seconds: Int64 = 0
    ) -> CacheDecision {
        CacheRules.decide(CacheQuestion(request(fields, mode: mode)), entries(responses), wallTime: start + seconds)
    }
}

/// Of a key that everybody knows.
func testDigest(_ message: ContextMessage) -> ContextDigest {
    var hasher = Hasher()
    hasher.combine(message.bytes)
    return ContextDigest(high: UInt64(bitPattern: Int64(hasher.finalize())), low: UInt64(message.bytes.count))
}

extension CacheDecision {
    var isHit: Bool {
        if case .answer(_, _, .hit, nil) = self { return true }
        return false
    }
    var isStaleAnswer: Bool {
        if case .answer(_, _, .stale, nil) = self { return true }
        return false
    }
    /// Goes to the server, with or without a validator.
    var asksServer: Bool {
        switch self {
        case .forward, .validate, .resume: true
        default: false
        }
    }
    var adding: [HeaderField]? {
        switch self {
        case .forward(let fields, _), .validate(_, let fields, _), .resume(_, let fields): fields
        default: nil
        }
    }
    var revalidates: [HeaderField]? {
        switch self {
        case .answer(_, _, .stale, let fields), .answerPart(_, _, .stale, _, let fields): fields
        default: nil
        }
    }
    var head: ResponseHead? {
        switch self {
        case .answer(_, let head, _, _), .answerPart(_, let head, _, _, _): head
        default: nil
        }
    }
    var index: Int? {
        switch self {
        case .answer(let index, _, _, _), .answerPart(let index, _, _, _, _), .validate(let index, _, _),
            .resume(let index, _):
            index
        default: nil
        }
    }
    var stale: StaleUse? {
        if case .validate(_, _, let stale) = self { return stale }
        return nil
    }
    var range: Range<Int64>? {
        if case .answerPart(_, _, _, let range, _) = self { return range }
        return nil
    }
    /// 304, from the store.
    var isNotModified: Bool {
        if case .answerPart(_, let head, _, nil, _) = self { return head.status == 304 }
        return false
    }
}

extension [HeaderField] {
    /// "Name: value" of each, in their order.
    var lines: [String] { map { "\($0.name): \($0.value)" } }
}
