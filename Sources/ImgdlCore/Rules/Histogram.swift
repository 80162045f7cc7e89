/// Durations by powers of two: bucket i counts those below 2^i microseconds and not below 2^(i-1). So it is small,
/// adding costs nothing, and a quantile is right to within a factor of two (features I40).
package struct Histogram: Equatable, Sendable {
    package static let bucketCount = 40

    package private(set) var count: UInt64 = 0
    /// Microseconds.
    package private(set) var sum: UInt64 = 0
    package private(set) var buckets: [UInt64]

    package init() { buckets = Array(repeating: 0, count: Self.bucketCount) }

    package mutating func add(nanoseconds: Int64) {
        let microseconds = UInt64(max(0, nanoseconds)) / 1_000
        count += 1
        sum += microseconds
        buckets[Self.bucket(microseconds)] += 1
    }

    /// The last one takes all that is longer.
    static func bucket(_ microseconds: UInt64) -> Int {
        min(UInt64.bitWidth - microseconds.leadingZeroBitCount, bucketCount - 1)
    }

    /// Microseconds that the part `part`, 0 to 1, of what the buckets count stayed below, as if it lay evenly in its
    /// bucket; 0 when there is none, or `part` is no number.
    package static func quantile(_ part: Double, _ buckets: some Collection<UInt64>) -> Double {
        let count = buckets.reduce(0.0) { $0 + Double($1) }
        guard count > 0, !part.isNaN else { return 0 }
        let rank = min(max(part, 0), 1) * count
        var below = 0.0
        var end = 0.0
        for (index, bucket) in buckets.enumerated() where bucket > 0 {
            let start = index == 0 ? 0 : Double(UInt64(1) << UInt64(index - 1))
            end = Double(UInt64(1) << UInt64(index))
            if below + Double(bucket) >= rank { return start + (end - start) * (rank - below) / Double(bucket) }
            below += Double(bucket)
        }
        return end
    }
}
