/// One decoder and how far it has read. Between steps it belongs to the engine's thread, during a step to one worker.
final class DecodeSession: @unchecked Sendable {
    private let decoder: any ImageDecoder
    /// Bytes of the body that the decoder has had. The engine's thread alone.
    var position = 0
    /// Of its transfer.
    private let attempt: Int

    init(_ decoder: any ImageDecoder, attempt: Int) {
        self.decoder = decoder
        self.attempt = attempt
    }

    /// On a worker: the new bytes, then what the step asks for.
    func run(_ step: DecodeStep, _ slices: [BodySlice], transfer: TransferID, variant: Int) -> DecodeReport {
        var report = DecodeReport(transfer: transfer, variant: variant, attempt: attempt)
        do throws(Failure) {
            for slice in slices {
                try slice.withBytes { (bytes) throws(Failure) in try decoder.feed(bytes) }
            }
            switch step {
            case .feed(let showing):
                if showing { report.image = decoder.partialImage() }
            case .finish, .salvage:
                report.image = try decoder.finish()
                report.verdict = .finished
            }
        } catch {
            report.verdict = .failed(error)
            report.image = decoder.salvagedImage()
        }
        report.header = decoder.header
        return report
    }
}

/// What a step brought: a partial image with `fed`, the picture with `finished`, salvaged pixels with `failed`.
struct DecodeReport: Sendable {
    let transfer: TransferID
    let variant: Int
    let attempt: Int
    var verdict = DecodeVerdict.fed
    var header: ImageHeader?
    var image: DecodedImage?
}
