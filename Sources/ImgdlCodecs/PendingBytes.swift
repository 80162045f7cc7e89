import ImgdlCore

/// What a suspended codec has not used yet: it wants to see those bytes again, with more behind them.
///
/// A codec that used nothing starts the same unit again at the next call. When bytes come one by one that would cost
/// the square of the unit's length, so another try waits until there is a sixteenth more.
///
/// Small pieces are gathered where `batch` says so: for a codec that has a faster way for long ones. What is kept can be
/// offered at any time.
struct PendingBytes {
    var batch = 0
    private let kept = ByteBuffer()
    private var enough = 0

    var bytes: UnsafeRawBufferPointer { kept.bytes }

    /// `use` returns how many bytes it is done with.
    mutating func offer(
        _ bytes: UnsafeRawBufferPointer, _ use: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        if kept.isEmpty, bytes.count >= batch {
            let used = try use(bytes)
            try kept.append(UnsafeRawBufferPointer(rebasing: bytes[used...]))
        } else {
            try kept.append(bytes)
            if kept.count >= max(enough, batch) { try offerKept(use) }
        }
    }

    mutating func offerKept(_ use: (UnsafeRawBufferPointer) throws(Failure) -> Int) throws(Failure) {
        let used = try use(kept.bytes)
        kept.removeFirst(used)
        enough = used == 0 ? kept.count + kept.count / 16 + 1 : 0
    }

    func keep(_ bytes: UnsafeRawBufferPointer) throws(Failure) { try kept.append(bytes) }
}
