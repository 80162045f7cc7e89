import ImgdlCore

/// A codec that the host brought (features X5, T22, T32). Threads: any, several at the same time.
package protocol CodecPlugin: AnyObject, Sendable {
    /// nil: more bytes are needed to tell. At most `CodecRegistry.prefixLength` are shown.
    func canDecode(_ prefix: UnsafeRawBufferPointer) -> Bool?
    /// Throws `outOfMemory`.
    func makeDecoder(_ options: DecodeOptions) throws(Failure) -> any ImageDecoder
}

/// The codecs that the host registered, for the whole process. Threads: any.
package final class CodecRegistry: @unchecked Sendable {
    /// So many bytes must be enough to tell.
    package static let prefixLength = 64

    /// Held across fork().
    package let lock = Lock()
    private var plugins: [(id: UInt64, plugin: any CodecPlugin)] = []
    private var lastID: UInt64 = 0

    package init() {}

    package func add(_ plugin: any CodecPlugin) -> UInt64 {
        lock.withLock {
            lastID += 1
            plugins.append((lastID, plugin))
            return lastID
        }
    }

    /// Decoders that it made go on.
    package func remove(_ id: UInt64) {
        // It may end here, with the host's destructor: outside the lock.
        let removed = lock.withLock { () -> (any CodecPlugin)? in
            plugins.firstIndex { $0.id == id }.map { plugins.remove(at: $0).plugin }
        }
        withExtendedLifetime(removed) {}
    }

    func plugin(_ id: UInt64) -> (any CodecPlugin)? {
        lock.withLock { plugins.first { $0.id == id }?.plugin }
    }

    /// The newest first.
    func all() -> [any CodecPlugin] {
        lock.withLock { plugins.isEmpty ? [] : plugins.reversed().map(\.plugin) }
    }
}
