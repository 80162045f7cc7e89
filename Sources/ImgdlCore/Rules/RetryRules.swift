/// What may pass, and how long to wait for it (features B14, I30).
package enum RetryRules {
    /// A failure of the network or of a server that is overloaded; never one of the request, the picture or the caller.
    package static func isTransient(_ failure: Failure) -> Bool {
        switch failure.code {
        case .connectFailed, .connectionLost, .resolveFailed, .truncated, .connectTimeout, .idleTimeout: true
        case .invalidStatus: isTransient(status: failure.status)
        default: false
        }
    }

    package static func isTransient(status: Int32) -> Bool {
        switch status {
        case 501, 505: false
        case 408, 429, 500...599: true
        default: false
        }
    }

    /// What may be sent twice (RFC 9110 section 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"].contains(method)
    }

    /// How a request came to be without an answer.
    package enum Loss: CaseIterable, Sendable {
        /// The server says that it has not looked at it.
        case refused
        /// Its connection has ended, or brought what was meant for somebody else.
        case lost
        /// libcurl is about to send it once more by itself. Over HTTP/2 it does that with what was refused and with what was
        /// lost, and does not tell them apart.
        case repeated
    }

    /// Whether it may be sent once more though nobody has asked for attempts: not where the server may have done what it
    /// asks, and would do it twice. `hasAnswer`: a byte of an answer has come.
    package static func maySendAgain(_ method: String, inHTTP2: Bool, after loss: Loss, hasAnswer: Bool) -> Bool {
        guard !hasAnswer else { return false }
        return switch loss {
        case .refused: true
        case .lost: isIdempotent(method)
        case .repeated: inHTTP2 || isIdempotent(method)
        }
    }

    /// Milliseconds: the wait before this attempt after the first is at random between 0 and this ("full jitter").
    package static func longestWait(_ policy: RetryPolicy, attempt: Int) -> Int64 {
        let doublings = max(0, min(attempt - 1, 40))
        let span = CheckedNumber(max(0, policy.base)) * CheckedNumber(Int64(1) << Int64(doublings))
        return min(max(0, policy.maximum), span?.length ?? .max)
    }

    /// The part of that wait that jitter is of all numbers.
    static func wait(_ longest: Int64, _ jitter: UInt64) -> Int64 {
        Int64((UInt64(max(0, min(longest, .max - 1))) + 1).multipliedFullWidth(by: jitter).high)
    }

    /// Whether a request with these options would wait so long for another attempt of its own, in milliseconds, and still
    /// have time for it.
    package static func waits(_ milliseconds: Int64, _ options: SubscriberOptions) -> Bool {
        options.retry.count > 0 && milliseconds <= options.retry.maximum
            && (options.totalTimeout == 0 || milliseconds < options.totalTimeout)
    }

    /// Retry-After in milliseconds (RFC 9110 section 10.2.3), nil when there is none or it is not valid. `wallTime`:
    /// seconds since 1970, asked for where it says a date.
    package static func retryAfter(_ head: ResponseHead, wallTime: @autoclosure () -> Int64) -> Int64? {
        guard isTransient(status: head.status), let value = head.first(named: "Retry-After") else { return nil }
        let text = value.utf8.drop { $0 == 0x20 || $0 == 0x09 }
        if !text.isEmpty, text.allSatisfy({ (0x30...0x39).contains($0) }) {
            // More than any number has room for: longer than anybody waits.
            return (CheckedNumber(digits: text) * 1_000)?.length ?? .max
        }
        let wallTime = wallTime()
        guard let date = HTTPDate.seconds(value, wallTime: wallTime) else { return nil }
        guard wallTime < date else { return 0 }
        return ((CheckedNumber(date) - CheckedNumber(wallTime)) * 1_000)?.length
    }
}

/// SplitMix64: small, seeded, and good enough to spread retries by.
package struct SmallGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
