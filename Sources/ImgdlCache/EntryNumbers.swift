import ImgdlCore

/// Numbers for entries that no other writer of the directory gives: the second, then a count that begins anywhere. So
/// what is stored together lies together in the index, and no writer waits for another to be given numbers. Should two
/// meet all the same, the index refuses the second.
struct EntryNumbers {
    private var count = UInt32.random(in: 0...UInt32.max)

    mutating func next(wallTime: Int64) -> EntryID {
        count = count &+ 1
        let second = UInt64(UInt32(truncatingIfNeeded: max(0, wallTime)))
        return EntryID(rawValue: Int64(second << 31 | UInt64(count & 0x7FFF_FFFF)))
    }
}
