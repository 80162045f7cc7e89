import CCodings

/// br, by libbrotlidec. Its window is at most 16 MiB (RFC 7932 section 9.1).
final class BrotliStream: CodingStream {
    /// Whether this libbrotlidec has no CVE-2026-111497, with which a body keeps it busy for ever, or writes where it must
    /// not. Version numbers do not tell, since distributions mend old versions: mended ones know one more error.
    static let isMended =
        String(cString: BrotliDecoderErrorString(BrotliDecoderErrorCode(rawValue: -17))) == "BLOCK_SWITCH"

    /// A block's head may have 16,384 entries of context maps in 80 bytes, none of which means anything: 5 µs a byte.
    static let inputBytes = 512

    private let state: OpaquePointer
    private let held: UnsafeMutablePointer<Int>

    init?() {
        held = .allocate(capacity: 1)
        held.initialize(to: 0)
        guard let state = ccodings_brotli_create(held) else {
            held.deallocate()
            return nil
        }
        self.state = state
    }

    deinit {
        BrotliDecoderDestroyInstance(state)
        held.deallocate()
    }

    var heldBytes: Int { held.pointee }

    var beginnings: [StreamBeginning] { [] }
    func restart() -> Bool { false }

    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodingStep {
        var nextIn = input.bindMemory(to: UInt8.self).baseAddress
        var availableIn = input.count
        var nextOut = output.bindMemory(to: UInt8.self).baseAddress
        var availableOut = output.count
        let result = BrotliDecoderDecompressStream(state, &availableIn, &nextIn, &availableOut, &nextOut, nil)
        input = UnsafeRawBufferPointer(rebasing: input.suffix(availableIn))
        var step = CodingStep(written: output.count - availableOut)
        switch result {
        case BROTLI_DECODER_RESULT_SUCCESS: step.verdict = .ended
        case BROTLI_DECODER_RESULT_ERROR:
            let code = BrotliDecoderGetErrorCode(state)
            let isMemory =
                code.rawValue <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES.rawValue
                && code.rawValue >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES.rawValue
            step.verdict = isMemory ? .outOfMemory : .broken(String(cString: BrotliDecoderErrorString(code)))
        default: break
        }
        return step
    }
}
