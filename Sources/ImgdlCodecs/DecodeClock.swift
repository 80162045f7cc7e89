import CCodecs
import ImgdlCore

/// The CPU time that one decoder has used, on whatever threads. Without a limit it costs nothing.
final class DecodeClock {
    /// So many bytes are decoded between two looks: those of one row or a few, of what is packed very tightly a million
    /// pixels.
    static let slice = 4096

    private let limit: Int64?
    private var used: Int64 = 0
    private var began: Int64 = 0

    init(_ options: DecodeOptions) { limit = options.maximumMilliseconds }

    var isRunning: Bool { limit != nil }

    /// For work on this thread between `begin` and `end`, in its CPU time; 0: none.
    var deadline: Int64 {
        guard let limit else { return 0 }
        let left = limit * 1_000_000 - used
        return left > 0 ? began + left : 0
    }

    func begin() { if isRunning { began = codec_cpu_time() } }
    func end() { if isRunning { used += codec_cpu_time() - began } }

    /// Throws `decodeTimeout`. Between `begin` and `end`.
    func check() throws(Failure) {
        guard let limit, used + codec_cpu_time() - began > limit * 1_000_000 else { return }
        throw failure
    }

    var failure: Failure {
        Failure(.decodeTimeout, "decoding takes more than the limit of \(limit ?? 0) ms of CPU time")
    }
}
