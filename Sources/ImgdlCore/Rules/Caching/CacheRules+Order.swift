extension StoredResponse {
    /// Whether another response to the same question is the one to keep, though this one is stored later: the most recent one
    /// by Date (RFC 9111 section 4). What was asked for once the other had come is newer, whatever its server's clock
    /// says; so a reload is never lost for a Date that lies in the future or goes back. `wallTime`: seconds since 1970.
    package func isOlder(than other: StoredResponse, wallTime: Int64) -> Bool {
        // Times of a clock that has been set back since, or while one was on its way, do not tell what was first.
        let isOrdered =
            max(responseTime, other.responseTime) <= wallTime && requestTime <= responseTime
            && other.requestTime <= other.responseTime
        let (own, others) = (times(besides: other), other.times(besides: self))
        if isOrdered {
            if own.sent > others.came { return false }
            if own.came < others.sent { return true }
        }
        if let date = telling(wallTime), let otherDate = other.telling(wallTime), date != otherDate {
            return date < otherDate
        }
        return isOrdered && own.sent < others.sent
    }

    /// Seconds and microseconds.
    private typealias Time = (seconds: Int64, fraction: Int64)

    /// As fine as both are known.
    private func times(besides other: StoredResponse) -> (sent: Time, came: Time) {
        let known = other.fractions == nil ? nil : fractions
        return ((requestTime, known?.request ?? 0), (responseTime, known?.response ?? 0))
    }

    /// Date, where it tells when the server made this. That of an answer without one is the time of receiving
    /// (`CacheRules.storable`), which says nothing of an answer that took its time, or that came while this machine's clock was
    /// ahead; nor does one from the future, as it was then or as it is now.
    private func telling(_ wallTime: Int64) -> Int64? {
        guard let date = fields.first(named: "Date").flatMap({ Freshness.seconds($0, wallTime) }),
            Freshness.span(from: min(responseTime, wallTime), to: date) <= Self.clockDifference
        else { return nil }
        let isOurs = date == responseTime && (requestTime < responseTime || responseTime > wallTime)
        return isOurs ? nil : date
    }

    /// Seconds by which the clocks of two machines that are set well may differ.
    private static let clockDifference: Int64 = 60
}
