import ImgdlCore

private let wallTime: Int64 = 1_800_000_000

/// One field in each line.
func fuzzCacheControl(_ bytes: UnsafeRawBufferPointer) throws {
    let lines = bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    let control = CacheControl(lines.map { HeaderField("Cache-Control", $0) })
    for seconds in [
        control.maxAge, control.minFresh, control.maxStale, control.staleIfError, control.staleWhileRevalidate,
    ] {
        if let value = seconds.value { try require((0...1 << 31).contains(value), "\(value) seconds") }
    }
    try require(control.noCacheFields.allSatisfy(HeaderRules.isToken), "a field without a name")
    for line in lines {
        let stricter = CacheControl([HeaderField("Cache-Control", line + ", no-store, max-age=x")])
        try require(stricter.noStore && stricter.maxAge == .invalid, "“\(line)” hides what stands behind it")
    }
}

/// Content-Range, and what an answer with it does to 40 bytes that were kept.
func fuzzContentRange(_ bytes: UnsafeRawBufferPointer) throws {
    if let content = ContentRange(bytes.text) {
        try require(content.range?.lowerBound ?? 0 >= 0, "a negative position")
        try require(content.total ?? .max >= content.range?.upperBound ?? 0, "more than there is")
    }
    let tag = HeaderField("ETag", "\"a\"")
    let kept = StoredResponse(
        status: 200, httpVersion: 11, fields: [tag], requestTime: wallTime, responseTime: wallTime, context: .blank,
        bodyLength: 40,
        extent: .beginning(total: nil))
    let head = ResponseHead(
        status: 206, httpVersion: 11, fields: [tag, HeaderField("Content-Range", bytes.text)], contentLength: nil,
        isEncoded: false)
    if case .continues(let whole) = ResumeRules.answer(to: kept, head) {
        try require(whole.contentLength ?? 0 > 40, "the rest of 40 bytes are \(whole.contentLength ?? 0) in all")
    }
}

/// A request's fields, an empty line, a response's: stored, used, validated and continued.
func fuzzCaching(_ bytes: UnsafeRawBufferPointer) throws {
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    let end = lines.firstIndex(of: "") ?? lines.count
    let sent = fields(lines[..<end])
    let received = fields(lines[min(lines.count, end + 1)...])
    let head = ResponseHead(status: 200, httpVersion: 11, fields: received, contentLength: nil, isEncoded: false)
    let plain = CacheRequest(method: "GET", fields: [], mode: .use, context: StoredContext.blank)
    for request in [plain, CacheRequest(method: "GET", fields: sent, mode: .use, context: StoredContext.blank)] {
        guard var stored = CacheRules.stored(request, head, requestTime: wallTime - 1, responseTime: wallTime) else {
            continue
        }
        stored.bodyLength = 100
        var changed = head
        changed.status = 304
        let validated = CacheRules.validated(
            stored, by: changed, for: request, requestTime: wallTime, responseTime: wallTime)?.response
        for mode in [CacheMode.use, .only, .refresh] {
            for asked in [plain.fields, sent] {
                let again = CacheRequest(method: "GET", fields: asked, mode: mode, context: StoredContext.blank)
                try check(again, [stored] + (validated.map { [$0] } ?? []), wallTime: wallTime + 50)
            }
        }
    }
    if let kept = ResumeRules.beginning(plain, head, received: 10, requestTime: wallTime, responseTime: wallTime) {
        let decision = CacheRules.decide(CacheQuestion(plain), [entry(kept)], wallTime: wallTime)
        guard case .resume(0, let fields) = decision else {
            throw Finding("kept, and not continued")
        }
        try require(fields.contains { $0.name == "If-Range" }, "continued without a condition")
    }
}

private func entry(_ response: StoredResponse) -> StoredEntry {
    StoredEntry(id: EntryID(rawValue: 1), response: response, mark: ChangeMark())
}

private func check(_ request: CacheRequest, _ stored: [StoredResponse], wallTime: Int64) throws {
    switch CacheRules.decide(CacheQuestion(request), stored.map(entry), wallTime: wallTime) {
    case .answer(let index, let head, _, _):
        try require(stored.indices.contains(index), "no such response")
        try checkAge(head)
    case .answerPart(_, let head, _, let range, _):
        try require(range.map { $0.lowerBound >= 0 && $0.upperBound <= 100 && !$0.isEmpty } ?? true, "\(range as Any)")
        try require(head.status == (range == nil ? head.status : 206), "a part with status \(head.status)")
        try checkAge(head)
    case .validate(_, let fields, _), .resume(_, let fields), .forward(let fields, _):
        try require(request.mode != .only, "something is sent")
        try require(fields.count <= 3, "\(fields.count) fields added")
    case .unavailable: break
    }
}

private func checkAge(_ head: ResponseHead) throws {
    let ages = head.fields.filter { equalIgnoringCase($0.name, "Age") }
    try require(ages.count == 1, "\(ages.count) ages")
    try require((0...1 << 31).contains(Int64(ages[0].value) ?? -1), "an age of \(ages[0].value)")
}

private func fields(_ lines: ArraySlice<String>) -> [HeaderField] {
    lines.compactMap { line in
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return HeaderField(String(line[..<colon]), String(line[line.utf8.index(after: colon)...]))
    }
}
