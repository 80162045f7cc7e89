import CCodings

/// gzip and deflate, by zlib.
final class InflateStream: CodingStream {
    /// A dynamic block without contents is 30 bytes, and its tables take a microsecond or two.
    static let inputBytes = 16 << 10

    private enum Format {
        case gzip
        /// zlib's format, as the coding is specified, or bare deflate, as some servers send it: the first two bytes tell.
        case unknown
        case known
    }

    private var stream = z_stream()
    private var format: Format
    private var isInitialized = false
    /// Seen, and not yet given to zlib.
    private var held: [UInt8] = []

    init(isGzip: Bool) { format = isGzip ? .gzip : .unknown }

    deinit { if isInitialized { inflateEnd(&stream) } }

    /// Its window and its tables (zlib's zconf.h).
    var heldBytes: Int { isInitialized ? 40 << 10 : 0 }

    private static let members = [StreamBeginning([0x1F, 0x8B])]
    var beginnings: [StreamBeginning] { format == .gzip ? Self.members : [] }

    func restart() -> Bool { inflateReset(&stream) == Z_OK }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodingStep {
        if format == .unknown {
            while held.count < 2, let byte = input.first {
                held.append(byte)
                input = UnsafeRawBufferPointer(rebasing: input.dropFirst())
            }
            guard held.count == 2 else { return CodingStep() }
        }
        guard isInitialized || begin() else { return CodingStep(verdict: .outOfMemory) }
        guard !held.isEmpty else { return inflate(&input, into: output) }
        let step = held.withUnsafeBytes { bytes in
            var bytes = bytes
            let step = inflate(&bytes, into: output)
            return (step, bytes.count)
        }
        held.removeFirst(held.count - step.1)
        return step.0
    }

    private func begin() -> Bool {
        var windowBits: Int32 = 15 + 16
        if format == .unknown {
            // RFC 1950 section 2.2.
            let isWrapped = held[0] & 0x0F == 8 && (Int(held[0]) << 8 | Int(held[1])) % 31 == 0
            windowBits = isWrapped ? 15 : -15
            format = .known
        }
        isInitialized = ccodings_inflate_init(&stream, windowBits) == Z_OK
        return isInitialized
    }

    private func inflate(
        _ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) -> CodingStep {
        let given = min(input.count, Int(UInt32.max))
        stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(given)
        stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
        stream.avail_out = UInt32(output.count)
        let status = CCodings.inflate(&stream, Z_NO_FLUSH)
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(given - Int(stream.avail_in)))
        var step = CodingStep(written: output.count - Int(stream.avail_out))
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: step.verdict = .ended
        case Z_MEM_ERROR: step.verdict = .outOfMemory
        default: step.verdict = .broken(stream.msg.map { String(cString: $0) } ?? "not what zlib can read")
        }
        return step
    }
}
