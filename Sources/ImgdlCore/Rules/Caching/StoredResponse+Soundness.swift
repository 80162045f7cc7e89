extension StoredResponse {
    /// No body is longer: 8 PiB. What is above is not stored and not believed, and sums of such lengths have room in 64 bits.
    package static let greatestLength: Int64 = 1 << 53
    /// Seconds before and after 1970 within which every time of a response lies: some 34,000 years.
    package static let times: ClosedRange<Int64> = -(1 << 40)...1 << 40

    /// Whether its numbers agree with each other and can be meant. Held against whatever is to be stored, once its body's
    /// length is known, and against whatever an index gives back, which somebody else may have written: what is not sound
    /// is not stored and not found.
    package var isSound: Bool {
        guard (0...Self.greatestLength).contains(bodyLength), Self.times.contains(requestTime),
            Self.times.contains(responseTime), overtakenTime.map(Self.times.contains) ?? true
        else { return false }
        if let fractions {
            let microseconds: Range<Int64> = 0..<1_000_000
            guard microseconds.contains(fractions.request), microseconds.contains(fractions.response) else {
                return false
            }
        }
        switch extent {
        case .whole, .headAlone, .beginning(total: nil): return true
        case .beginning(let total?): return bodyLength < total && total <= Self.greatestLength
        case .part(let held, let total):
            let end = total ?? Self.greatestLength
            guard held.lowerBound >= 0, held.upperBound <= end, end <= Self.greatestLength else { return false }
            return held.upperBound - held.lowerBound == bodyLength
        }
    }
}
