import ImgdlCore

/// Contents of files that the process holds, each once, and how much that is. Not for several threads at once: nothing
/// of it lets go of contents, whose end is told to it.
struct HeldContents {
    /// Bytes of all that differ: some thirty files as large as a request may name, or 120,000 certificates as they
    /// usually are.
    static let maximumBytes = 128 << 20
    /// Bytes that each takes besides its own.
    static let bytesBesides = 512

    private struct Entry {
        weak var contents: FileContents?
        /// Address of its bytes: another one of the same digest has others.
        let address: UnsafeRawPointer?
        let bytes: Int
    }

    private let maximumBytes: Int
    private var entries: [[UInt8]: Entry] = [:]
    private(set) var bytes = 0

    init(maximumBytes: Int = Self.maximumBytes) { self.maximumBytes = maximumBytes }

    /// nil: nobody holds them.
    func contents(of digest: [UInt8]) -> FileContents? { entries[digest]?.contents }

    /// Contents of the same bytes that are held already, or else these, which are held from now on. nil: there is no
    /// room for more.
    mutating func hold(_ read: FileContents) -> FileContents? {
        let before = entries[read.digest]
        if let held = before?.contents { return held }
        // Those of before are nobody's any more, and their end is not told yet: this entry takes the place of theirs.
        let bytes = bytes - (before?.bytes ?? 0)
        let added = read.bytes.count + Self.bytesBesides
        guard added <= maximumBytes - bytes else { return nil }
        entries[read.digest] = Entry(contents: read, address: read.bytes.baseAddress, bytes: added)
        self.bytes = bytes + added
        return read
    }

    mutating func forget(_ bytes: UnsafeRawBufferPointer, _ digest: [UInt8]) {
        guard let entry = entries[digest], entry.address == bytes.baseAddress else { return }
        entries[digest] = nil
        self.bytes -= entry.bytes
    }
}
