import XCTest

@testable import ImgdlCore

/// A URL as the transport's parser would give it.
func testURL(_ text: String, user: String? = nil) -> ParsedURL {
    let scheme = String(text.prefix { $0 != ":" })
    let rest = text.dropFirst(scheme.count + 3)
    let authority = rest.prefix { $0 != "/" }.split(separator: ":")
    let port = authority.count > 1 ? UInt16(authority[1])! : scheme == "https" ? 443 : 80
    let bare = text.prefix { $0 != "?" }
    return ParsedURL(
        canonical: text, scheme: scheme, host: String(authority[0]), port: port, user: user, password: nil,
        redacted: bare.count < text.count ? "\(bare)?…" : text)
}

/// The rules with a clock that stands still until it is moved: the stage of the transcript tests.
struct Play: ~Copyable {
    typealias Entry = (subscriber: SubscriberID, transfer: TransferID)

    var downloads: Downloads
    var now = Instant(nanoseconds: 1_000_000_000)

    init(width: Int = 6, order: ExecutionOrder = .fifo, _ change: (inout Limits) -> Void = { _ in }) {
        var limits = Limits()
        limits.maximumConcurrent = width
        limits.order = order
        change(&limits)
        downloads = Downloads(limits)
    }

    // MARK: Events

    mutating func submit(_ request: TransferRequest, _ options: SubscriberOptions = .quiet) -> Entry {
        let admission = downloads.submit(request, Boxed(wrappedValue: options), now)
        downloads.looked(admission.transfer, .unknown, now)
        return (admission.subscriber, admission.transfer)
    }

    mutating func submit(_ path: String, _ options: SubscriberOptions = .quiet) -> Entry {
        submit(TransferRequest(url: testURL("https://a.example/\(path)")), options)
    }

    mutating func cancel(_ entry: Entry) { downloads.cancel(entry.subscriber, now) }
    mutating func connected(_ id: TransferID) { downloads.connected(id, now) }

    @discardableResult
    mutating func head(
        _ id: TransferID, _ status: Int32 = 200, length: Int64? = nil, isEncoded: Bool = false,
        location: Result<ParsedURL, Failure>? = nil, type: String? = nil, retryAfter: Int64? = nil
    ) -> BodyDisposition {
        let head = ResponseHead(
            status: status, httpVersion: 11, fields: type.map { [HeaderField("Content-Type", $0)] } ?? [],
            contentLength: length, isEncoded: isEncoded)
        return downloads.headReceived(id, head, location: location, retryAfter: retryAfter, now)
    }

    mutating func answer(_ id: TransferID, _ number: UInt64, _ answer: Answer) {
        downloads.answered(id, number, answer, now)
    }

    mutating func body(_ id: TransferID, _ count: Int) { downloads.bodyReceived(id, count, now) }
    mutating func finished(_ id: TransferID) { downloads.finished(id, now) }
    mutating func failed(_ id: TransferID, _ failure: Failure) { downloads.failed(id, failure, now) }

    mutating func stepped(
        _ id: TransferID, variant: Int = 0, _ verdict: DecodeVerdict, header: Bool = false, partial: Bool = false,
        demand: Int64 = 0, beside: Int64 = 0
    ) {
        downloads.decodeStepped(
            id, variant: variant, verdict, hasHeader: header, hasPartial: partial, demand: demand,
            beside: beside, now)
    }

    /// Moves the clock and has the rules do what is due, as the engine does: at the moment they ask for, not later.
    mutating func pass(_ milliseconds: Int64) {
        let end = now.advanced(byMilliseconds: milliseconds)
        while let deadline = downloads.nextDeadline, deadline <= end {
            now = max(now, deadline)
            downloads.deadlineReached(now)
        }
        now = end
    }

    /// Connects, answers, sends `count` bytes.
    mutating func receive(_ id: TransferID, _ count: Int, of length: Int64? = nil) {
        connected(id)
        head(id, length: length)
        body(id, count)
    }

    // MARK: Actions

    mutating func expect(
        _ expected: [Action], _ message: String = "", file: StaticString = #filePath, line: UInt = #line
    ) {
        // What an observer is told has tests of its own.
        let actions = take()
        XCTAssertEqual(actions, expected, message, file: file, line: line)
    }

    mutating func take() -> [Action] {
        downloads.takeActions().filter { if case .observe = $0 { false } else { true } }
    }

    /// What an observer is told, between the starts, stops and ends.
    mutating func expectObserved(_ expected: [Action], file: StaticString = #filePath, line: UInt = #line) {
        let actions = downloads.takeActions().filter {
            switch $0 {
            case .start, .observe, .stop, .end: true
            default: false
            }
        }
        XCTAssertEqual(actions, expected, file: file, line: line)
    }

    /// What has gathered is not the point of the test.
    mutating func skip() { _ = downloads.takeActions() }

    /// The transfers that were started since the last look.
    mutating func takeStarts() -> [TransferID] {
        downloads.takeActions().compactMap { if case .start(let id) = $0 { id } else { nil } }
    }

    func expectEmpty(file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertEqual(downloads.transferCount, 0, "transfers", file: file, line: line)
        XCTAssertEqual(downloads.subscriberCount, 0, "subscribers", file: file, line: line)
        XCTAssertEqual(downloads.waitingCount, 0, "waiting", file: file, line: line)
        XCTAssertEqual(downloads.runningCount, 0, "running", file: file, line: line)
    }
}

extension SubscriberOptions {
    /// No event but the end, no decode.
    static var quiet: SubscriberOptions { with { $0.decode = nil } }
    /// No event but the end, the default decode.
    static var image: SubscriberOptions { with { _ in } }

    /// As `quiet`.
    static func priority(_ priority: Priority) -> SubscriberOptions {
        with {
            $0.decode = nil
            $0.priority = priority
        }
    }

    static func with(_ events: EventMask = [], _ change: (inout SubscriberOptions) -> Void = { _ in }) -> Self {
        var options = SubscriberOptions()
        options.events = events
        change(&options)
        return options
    }
}

extension DecodeOptions {
    /// Different for each number.
    static func number(_ number: UInt64) -> DecodeOptions {
        var options = DecodeOptions()
        options.maximumPixels = 1000 + number
        return options
    }
}

extension Outcome {
    static let cancelled = Outcome.failure(Failure(.cancelled, "cancelled"))
    static let lost = Outcome.failure(.lost)
}

extension Failure {
    static let lost = Failure(.connectionLost, "reset by peer")
    static let bad = Failure(.badImageData, "not a picture")

    func with(status: Int32) -> Failure { Failure(code, message, status: status) }
}

extension Downloads {
    mutating func takeActions() -> [Action] {
        var queue = takeActions(reusing: Queue())
        var actions: [Action] = []
        while let action = queue.popFirst() { actions.append(action) }
        return actions
    }
}
