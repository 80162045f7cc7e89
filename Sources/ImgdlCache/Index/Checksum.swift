import CStore

/// XXH3 of bytes that come in pieces.
final class Checksum {
    private let state: OpaquePointer

    /// nil without memory.
    init?() {
        guard let state = store_hash_begin() else { return nil }
        self.state = state
    }

    deinit { store_hash_end(state) }

    func add(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty { store_hash_add(state, bytes.baseAddress, bytes.count) }
    }

    var value: Int64 { Int64(bitPattern: store_hash_value(state)) }

    static func of(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        Int64(bitPattern: store_hash(bytes.baseAddress, bytes.count))
    }

    static func of(_ text: String) -> Int64 {
        var text = text
        return text.withUTF8 { of(UnsafeRawBufferPointer($0)) }
    }
}
