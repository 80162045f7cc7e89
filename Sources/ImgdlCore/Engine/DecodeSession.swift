import Synchronization

/// One decoder and how far it has read. Between steps it belongs to the engine's thread, during a step to one worker.
final class DecodeSession: @unchecked Sendable {
    private let decoder: any ImageDecoder
    /// The charge for what the decoder needs: that is in use while it is there. The engine's thread alone.
    var charge: MemoryCharge?
    private let clock: any Clock
    /// Bytes of the body that the decoder has had. The engine's thread alone.
    var position = 0
    /// Of its transfer.
    private let attempt: Int
    private let isAbandoned = Atomic<Bool>(false)

    init(_ decoder: any ImageDecoder, _ charge: MemoryCharge?, attempt: Int, clock: any Clock) {
        self.decoder = decoder
        self.charge = charge
        self.attempt = attempt
        self.clock = clock
    }

    /// Nobody waits for its picture any more: steps that have not begun do nothing, and one that has goes no further than
    /// it must. The engine's thread.
    func abandon() {
        isAbandoned.store(true, ordering: .relaxed)
        decoder.stop()
    }

    private func check() throws(Failure) {
        if isAbandoned.load(ordering: .relaxed) { throw Failure(.cancelled, "nobody waits for the picture") }
    }

    /// On a worker: the new bytes, then what the step asks for.
    func run(
        _ step: DecodeStep, _ slices: [BodySlice], _ end: BodyEnd, transfer: TransferID, variant: Int
    ) -> DecodeReport {
        var report = DecodeReport(transfer: transfer, variant: variant, attempt: attempt)
        let start = clock.now()
        do throws(Failure) {
            for slice in slices {
                try check()
                try slice.withBytes { (bytes) throws(Failure) in try decoder.feed(bytes) }
            }
            try check()
            switch step {
            case .feed(let showing):
                if showing { report.image = decoder.partialImage() }
            case .finish, .salvage:
                report.image = try decoder.finish(step == .finish ? end : .closing)
                report.verdict = .finished
            }
        } catch {
            report.verdict = .failed(error)
        }
        report.header = decoder.header
        report.memoryDemand = decoder.memoryDemand
        report.profileBytes = decoder.profileBytes
        report.duration = clock.now().nanoseconds - start.nanoseconds
        return report
    }

    /// The report of a failed step again, with the pixels that could be had. On a worker: it may be as much work as the step.
    func salvage(_ failed: DecodeReport) -> DecodeReport {
        var report = failed
        report.isSalvaged = true
        let start = clock.now()
        if !isAbandoned.load(ordering: .relaxed) { report.image = decoder.salvagedImage() }
        report.duration += clock.now().nanoseconds - start.nanoseconds
        return report
    }
}

/// The result of a step: a partial image with `fed`, the picture with `finished`, salvaged pixels with `failed` where
/// somebody asked for them.
struct DecodeReport: Sendable {
    let transfer: TransferID
    let variant: Int
    let attempt: Int
    var verdict = DecodeVerdict.fed
    var header: ImageHeader?
    var image: DecodedImage?
    /// Whether the pixels that a failed step leaves have been looked for.
    var isSalvaged = false
    /// As the decoder says them.
    var memoryDemand: Int64 = 0
    var profileBytes: Int64 = 0
    /// Nanoseconds of the worker's.
    var duration: Int64 = 0
}
