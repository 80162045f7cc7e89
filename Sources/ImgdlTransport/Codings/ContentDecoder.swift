import ImgdlCore

/// Undoes the codings of one body as its bytes come: a piece when asked for one, so that whoever is paused, cancelled or
/// at a limit holds what has come and no more. In one turn it does so much work alone, though a few bytes may mean
/// gigabytes, or take seconds to mean nothing.
final class ContentDecoder {
    enum Outcome {
        case needsInput
        /// Whoever got a piece wanted no more.
        case stopped
        /// There is more to do, in another turn.
        case turnIsOver
    }

    private enum Piece {
        /// Valid until the next call.
        case bytes(UnsafeRawBufferPointer)
        case needsInput
        case turnIsOver
    }

    /// Bytes of all layers: a step begins as long as fewer have come out. How many steps these are says little, since there
    /// may be thousands of frames that mean nothing.
    static let bytesInTurn = 8 * CodingLayer.outputBytes

    /// The one that was applied last comes first.
    private let layers: [CodingLayer]
    private let now: () -> Int64
    private var bytesOfLayers = 0
    private var budget = CodingBudget()
    /// Bytes that came out of all layers in the last call of `decode` or `resume`.
    private(set) var producedBytes = 0
    /// Nanoseconds of CPU time that it took, with what was made of the bytes.
    private(set) var usedTime: Int64 = 0
    /// A copy of what was left of the last input.
    private var rest: UnsafeMutableRawBufferPointer?

    /// `codings`: in the order in which they were applied, as in Content-Encoding. `now`: the thread's CPU time.
    init(
        _ codings: [ContentCoding], usesBrotli: Bool = BrotliStream.isMended,
        now: @escaping () -> Int64 = ThreadClock.now
    ) throws(Failure) {
        guard codings.count <= ContentCoding.maximumLayers else {
            throw Failure(
                .contentEncoding,
                "the body has \(codings.count) codings on top of each other, the limit is \(ContentCoding.maximumLayers)"
            )
        }
        var layers: [CodingLayer] = []
        for coding in codings.reversed() { layers.append(try CodingLayer(coding, usesBrotli: usesBrotli)) }
        self.layers = layers
        self.now = now
    }

    deinit { dropRest() }

    /// There is something to decode: no more input may be given.
    var isBusy: Bool { layers.contains { !$0.needsInput } }

    /// Memory that the codings hold besides what has come out of them.
    var heldBytes: Int { (rest?.count ?? 0) + layers.reduce(0) { $0 + $1.heldBytes } }

    /// All bytes have come: throws `truncated` where a stream has not ended.
    func finish() throws(Failure) {
        guard let open = layers.first(where: { !$0.isComplete }) else { return }
        throw Failure(.truncated, "the body ends before its coding “\(open.name)” does")
    }

    /// Calls `body` with each piece of what `input` means, until it says false, or the turn is over. What is left then is
    /// kept for `resume`.
    func decode(_ input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool) throws(Failure) -> Outcome {
        budget.receive(input.count)
        layers[0].input = input
        defer { keepRest() }
        return try run(body)
    }

    /// Keeps it for `resume`, and decodes nothing.
    func keep(_ input: UnsafeRawBufferPointer) {
        budget.receive(input.count)
        layers[0].input = input
        keepRest()
    }

    /// Goes on with what was kept.
    func resume(_ body: (UnsafeRawBufferPointer) -> Bool) throws(Failure) -> Outcome {
        let outcome = try run(body)
        if layers[0].input.isEmpty { dropRest() }
        return outcome
    }

    private func run(_ body: (UnsafeRawBufferPointer) -> Bool) throws(Failure) -> Outcome {
        if let failure = budget.failure { throw failure }
        let outcome = try takeTurn(body)
        try budget.hold(heldBytes)
        return outcome
    }

    private func takeTurn(_ body: (UnsafeRawBufferPointer) -> Bool) throws(Failure) -> Outcome {
        bytesOfLayers = 0
        producedBytes = 0
        let turn = DecodingTurn(now)
        // What is made of the bytes is no work of the codings.
        var timeOfOthers: Int64 = 0
        defer {
            usedTime = turn.time
            budget.spend(usedTime - timeOfOthers)
        }
        while true {
            switch try next(layers.count - 1, turn) {
            case .bytes(let bytes):
                budget.produce(bytes.count)
                let begin = turn.time
                let goesOn = body(bytes)
                timeOfOthers += turn.time - begin
                if !goesOn { return .stopped }
            case .needsInput: return .needsInput
            case .turnIsOver: return .turnIsOver
            }
        }
    }

    /// What comes out of a layer next. What goes into it is asked of the one before.
    private func next(_ index: Int, _ turn: DecodingTurn) throws(Failure) -> Piece {
        let layer = layers[index]
        while true {
            if layer.needsInput {
                guard index > 0 else { return .needsInput }
                switch try next(index - 1, turn) {
                case .bytes(let bytes): layer.input = bytes
                case let other: return other
                }
            }
            guard bytesOfLayers < Self.bytesInTurn, !turn.isOver else { return .turnIsOver }
            let output = try layer.step(turn)
            bytesOfLayers += output.count
            producedBytes += output.count
            if index < layers.count - 1 {
                budget.handOn(output.count)
                if let failure = budget.failure { throw failure }
            }
            if !output.isEmpty { return .bytes(output) }
        }
    }

    /// The memory of an input is the caller's.
    private func keepRest() {
        let input = layers[0].input
        guard !input.isEmpty else { return }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: input.count, alignment: 1)
        copy.copyMemory(from: input)
        rest = copy
        layers[0].input = UnsafeRawBufferPointer(copy)
    }

    private func dropRest() {
        rest?.deallocate()
        rest = nil
    }
}
