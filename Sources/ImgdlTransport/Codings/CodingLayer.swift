import ImgdlCore

/// One coding of a body, and where its stream stands. Streams may follow one another (RFC 1952 section 2.2, RFC 8878
/// section 3); what follows otherwise is not part of the body, and is passed over as browsers do, up to a limit: whether
/// it came along with the stream's last bytes or later makes no difference.
final class CodingLayer {
    static let maximumTrailingBytes = 64 << 10
    static let outputBytes = 64 << 10

    private enum State: Equatable {
        /// No byte has come.
        case untouched
        /// These bytes of its beginning.
        case beginning(StreamPrefix)
        case inStream
        /// A stream has ended, and these bytes of the next one's beginning have come.
        case between(StreamPrefix)
        case ended
    }

    private let coding: ContentCoding
    private let stream: any CodingStream
    private let output: UnsafeMutableRawBufferPointer
    private var state = State.untouched
    private var trailingBytes = 0
    /// The last output filled all there was room for.
    private var mayHaveMore = false
    /// Thrown by the next step: the last output came before it.
    private var failure: Failure?
    /// What is still to be decoded. The memory is the caller's.
    var input = UnsafeRawBufferPointer(start: nil, count: 0)

    init(_ coding: ContentCoding, usesBrotli: Bool = BrotliStream.isMended) throws(Failure) {
        guard coding != .brotli || usesBrotli else {
            throw Failure(
                .contentEncoding,
                "the body has the coding “br”, which was not asked for: this machine's libbrotlidec has CVE-2026-111497"
            )
        }
        let stream: (any CodingStream)? =
            switch coding {
            case .gzip: InflateStream(isGzip: true)
            case .deflate: InflateStream(isGzip: false)
            case .brotli: BrotliStream()
            case .zstd: ZstdStream()
            }
        guard let stream else { throw Self.outOfMemory(coding) }
        self.coding = coding
        self.stream = stream
        output = .allocate(byteCount: Self.outputBytes, alignment: 16)
    }

    deinit { output.deallocate() }

    var needsInput: Bool { input.isEmpty && !mayHaveMore && failure == nil }

    /// A body without any bytes is complete, too.
    var isComplete: Bool {
        switch state {
        case .untouched, .between, .ended: true
        case .beginning, .inStream: false
        }
    }

    var name: String { coding.name }

    var heldBytes: Int { Self.outputBytes + stream.heldBytes }

    /// Decodes a piece, of what is there by the end of the turn; valid until the next one. It may be empty, though there is
    /// more to decode.
    func step(_ turn: DecodingTurn) throws(Failure) -> UnsafeRawBufferPointer {
        if let failure { throw failure }
        switch state {
        case .untouched:
            state = stream.beginnings.isEmpty ? .inStream : .beginning(StreamPrefix())
            return try step(turn)
        case .beginning(let seen), .between(let seen):
            return try look(seen, turn)
        case .inStream:
            return try decode(&input, turn)
        case .ended:
            try passOver(input.count)
            input = UnsafeRawBufferPointer(rebasing: input.dropFirst(input.count))
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    private func decode(
        _ bytes: inout UnsafeRawBufferPointer, _ turn: DecodingTurn
    ) throws(Failure) -> UnsafeRawBufferPointer {
        var written = 0
        var verdict = CodingStep.Verdict.goesOn
        repeat {
            let given = min(bytes.count, type(of: stream).inputBytes)
            var piece = UnsafeRawBufferPointer(rebasing: bytes[..<given])
            let step = stream.decode(&piece, into: UnsafeMutableRawBufferPointer(rebasing: output[written...]))
            bytes = UnsafeRawBufferPointer(rebasing: bytes[(given - piece.count)...])
            written += step.written
            verdict = step.verdict
            guard case .goesOn = verdict else { break }
            // It would be asked for ever.
            guard given == 0 || piece.count < given || step.written > 0 else {
                throw Failure(.contentEncoding, "the body's coding “\(coding.name)” does not go on")
            }
        } while !bytes.isEmpty && written < output.count && !turn.isOver
        mayHaveMore = written == output.count
        switch verdict {
        case .goesOn:
            break
        case .ended:
            mayHaveMore = false
            state = stream.beginnings.isEmpty ? .ended : .between(StreamPrefix())
        case .broken(let cause):
            let broken = broken(cause)
            guard written > 0 else { throw broken }
            failure = broken
        case .outOfMemory:
            throw Self.outOfMemory(coding)
        }
        return UnsafeRawBufferPointer(rebasing: output[..<written])
    }

    private static func outOfMemory(_ coding: ContentCoding) -> Failure {
        Failure(.outOfMemory, "no memory to undo the coding “\(coding.name)”")
    }

    private func broken(_ cause: String) -> Failure {
        Failure(.contentEncoding, "the body's coding “\(coding.name)” is broken: \(cause)")
    }

    private var isFirst: Bool { if case .beginning = state { true } else { false } }

    /// Whether a stream begins: decided byte by byte, so that it does not matter how they came, and not left to the
    /// libraries, some of which read older formats, too.
    private func look(_ seen: StreamPrefix, _ turn: DecodingTurn) throws(Failure) -> UnsafeRawBufferPointer {
        var seen = seen
        while let byte = input.first {
            let longer = seen.followed(by: byte)
            guard let beginning = stream.beginnings.first(where: { $0.matches(longer) }) else {
                if isFirst { throw broken("it does not begin as one") }
                state = .ended
                try passOver(seen.count)
                break
            }
            seen = longer
            input = UnsafeRawBufferPointer(rebasing: input.dropFirst())
            if seen.count == beginning.count { return try begin(seen, turn) }
            state = isFirst ? .beginning(seen) : .between(seen)
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    private func begin(_ seen: StreamPrefix, _ turn: DecodingTurn) throws(Failure) -> UnsafeRawBufferPointer {
        guard isFirst || stream.restart() else {
            throw Self.outOfMemory(coding)
        }
        state = .inStream
        let result = withUnsafeBytes(of: seen.bits.littleEndian) { bytes in
            var bytes = UnsafeRawBufferPointer(rebasing: bytes[..<seen.count])
            return Result { () throws(Failure) in try decode(&bytes, turn) }
        }
        return try result.get()
    }

    private func passOver(_ count: Int) throws(Failure) {
        trailingBytes += count
        guard trailingBytes <= Self.maximumTrailingBytes else {
            throw Failure(
                .contentEncoding,
                "more than \(Self.maximumTrailingBytes) bytes follow the end of the body's coding “\(coding.name)”")
        }
    }
}
