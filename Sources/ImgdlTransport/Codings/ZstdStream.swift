import CCodings

/// zstd, by libzstd.
final class ZstdStream: CodingStream {
    /// 8 MiB, more than which no sender may ask for (RFC 9659 section 3).
    private static let maximumWindowLog: Int32 = 23

    /// A block of 20 bytes may have tables that take some microseconds.
    static let inputBytes = 16 << 10

    private let context: OpaquePointer

    init?() {
        guard let context = ZSTD_createDCtx() else { return nil }
        self.context = context
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.maximumWindowLog)
    }

    deinit { ZSTD_freeDCtx(context) }

    var heldBytes: Int { ZSTD_sizeof_DCtx(context) }

    /// A frame, or one that is to be skipped (RFC 8878 section 3.1).
    private static let frames = [
        StreamBeginning([0x28, 0xB5, 0x2F, 0xFD]),
        StreamBeginning([0x50, 0x2A, 0x4D, 0x18], masks: [0xF0]),
    ]
    var beginnings: [StreamBeginning] { Self.frames }

    /// The context does so by itself.
    func restart() -> Bool { true }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodingStep {
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
        let result = ZSTD_decompressStream(context, &target, &source)
        input = UnsafeRawBufferPointer(rebasing: input.dropFirst(source.pos))
        var step = CodingStep(written: target.pos)
        if ZSTD_isError(result) != 0 {
            let isMemory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation
            step.verdict = isMemory ? .outOfMemory : .broken(String(cString: ZSTD_getErrorName(result)))
        } else if result == 0 {
            step.verdict = .ended
        }
        return step
    }
}
