/// How much of a folder one writer may fill. Room is granted to it by the count that all writers of the folder share, before
/// anything is written: so their files together never take more than is allowed, whoever is killed, and whenever.
package struct StorageLedger: Equatable, Sendable {
    /// Counted for this writer in the folder.
    package private(set) var granted: Int64 = 0
    /// Of it: files that grow, and bodies and rows that the index does not count yet.
    package private(set) var held: Int64 = 0

    package init() {}

    package var free: Int64 { granted - held }

    /// For something that is about to be written. False: no room has been granted for it.
    package mutating func take(_ bytes: Int64) -> Bool {
        guard bytes <= free else { return false }
        held += bytes
        return true
    }

    /// Where the count cannot be asked, since others write for long: what is promised besides the limit has room for one body of
    /// each writer. `own`: what that body holds already. False: something else is held, too.
    package mutating func takeUngranted(_ bytes: Int64, beside own: Int64) -> Bool {
        guard held == own else { return false }
        held += bytes
        granted = max(granted, held)
        return true
    }

    /// It is gone, will not be written, or the index counts it from now on.
    package mutating func giveBack(_ bytes: Int64) { held = max(0, held - bytes) }

    /// So much besides what is held.
    package mutating func grant(_ bytes: Int64) { granted = held + max(0, bytes) }
}

/// What a folder holds, of all its writers, and what may come besides.
package struct StorageUse: Equatable, Sendable {
    /// The index beyond its rows, and the log: what is promised besides the limit has room for them.
    package static let indexAllowance: Int64 = 1 << 20
    /// Each number below is this at most, so that sums of them have room.
    package static let greatest: Int64 = 1 << 60

    /// Bodies and rows: what can be evicted.
    package var entries: Int64
    /// Of `entries`: rows.
    package var rows: Int64
    /// Granted to writers: files that grow or wait for the index, or are being removed.
    package var reserved: Int64
    /// The file of the index, as large as it is.
    package var index: Int64
    /// Files that lie there besides, such as an index that was moved aside.
    package var others: Int64

    package init(entries: Int64, rows: Int64 = 0, reserved: Int64 = 0, index: Int64 = 0, others: Int64 = 0) {
        let bounds = 0...Self.greatest
        self.entries = CheckedNumber(entries).clamped(to: bounds)
        self.rows = CheckedNumber(rows).clamped(to: bounds)
        self.reserved = CheckedNumber(reserved).clamped(to: bounds)
        self.index = CheckedNumber(index).clamped(to: bounds)
        self.others = CheckedNumber(others).clamped(to: bounds)
    }

    /// What no eviction makes less.
    private var fixed: Int64 { reserved + others + max(0, index - rows - Self.indexAllowance) }

    package var total: Int64 { entries + fixed }

    package enum Admission: Equatable, Sendable {
        case granted(Int64)
        /// So much has to go first.
        case evict(Int64)
        /// It does not fit, whatever goes.
        case refused
    }

    /// Whether `need` bytes more may be written; up to `wanted` are granted, so that not every body has to ask.
    package func admission(of need: Int64, wanting wanted: Int64, within maximum: Int64) -> Admission {
        let room = maximum - min(fixed, maximum)
        guard need <= room else { return .refused }
        let wanted = max(need, wanted)
        let free = maximum - min(total, maximum)
        if need <= free { return .granted(min(wanted, free)) }
        return .evict(total - (maximum - min(wanted, room)))
    }

    /// What a writer asks for at a time, and what is evicted with it.
    package static func portion(of maximum: Int64) -> Int64 { min(maximum / 16, 4 << 20) }
}
