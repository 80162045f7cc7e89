import Glibc
import ImgdlCore

/// Bytes that a decoder has to keep. Unlike an array it says so when there is no memory, and its address may be lent to
/// a codec until the next change.
final class ByteBuffer {
    private var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

    deinit { free(memory) }

    /// Amortised constant time for each byte.
    func append(_ more: UnsafeRawBufferPointer) throws(Failure) {
        guard let source = more.baseAddress, !more.isEmpty else { return }
        let (needed, overflow) = count.addingReportingOverflow(more.count)
        guard !overflow else { throw Self.outOfMemory }
        if needed > capacity { try reserve(max(needed, capacity + capacity / 2)) }
        memory?.advanced(by: count).copyMemory(from: source, byteCount: more.count)
        count = needed
    }

    /// For what is long and may not be had twice, as it is while a buffer grows. Pages come with the bytes.
    func reserve(_ wanted: Int) throws(Failure) {
        guard wanted > capacity else { return }
        guard let grown = realloc(memory, wanted) else { throw Self.outOfMemory }
        memory = grown
        capacity = wanted
    }

    func removeFirst(_ removed: Int) {
        guard removed > 0, let memory else { return }
        count -= min(removed, count)
        memmove(memory, memory.advanced(by: removed), count)
    }

    /// Writes over four bytes that are there.
    func store(_ number: UInt32, at offset: Int) {
        guard let memory, offset >= 0, offset + 4 <= count else { return }
        memory.storeBytes(of: number, toByteOffset: offset, as: UInt32.self)
    }

    /// Keeps the memory for what comes next.
    func removeAll() { count = 0 }

    /// Empty from now on; nil if it is already.
    func takeProfile() -> ProfileBytes? {
        guard let taken = memory, count > 0 else { return nil }
        let profile = ProfileBytes(owning: taken, count: count)
        memory = nil
        release()
        return profile
    }

    func release() {
        free(memory)
        memory = nil
        capacity = 0
        count = 0
    }

    private static var outOfMemory: Failure { Failure(.outOfMemory, "no memory for the body of a picture") }
}
