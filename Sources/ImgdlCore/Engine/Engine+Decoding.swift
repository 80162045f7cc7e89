/// Decoders, which work elsewhere: a step is handed to the workers, its report comes back through the mailbox.
extension Engine {
    func decode(_ id: TransferID, _ variant: Int, _ step: DecodeStep) {
        guard let transfer = transfer(id), let options = downloads.decodeOptions(id, variant: variant) else { return }
        transfer.addVariants(upTo: variant)
        if let image = transfer.pictures[options] { return prompt(.pictured(id, variant: variant, image)) }
        let begun = transfer.variants[variant].session
        let session =
            begun
            ?? DecodeSession(
                codec.makeDecoder(options), transfer.variants[variant].charge, attempt: transfer.attempt,
                clock: clock.source)
        transfer.variants[variant].session = session
        let slices = transfer.takeNewBytes(for: session)
        let end = transfer.response?.head.bodyEnd ?? .whole
        stepsInWork += 1
        let isTaken = workers.submit(downloads.priority(id), goesOn: begun != nil) { [mailbox] in
            mailbox.post(.decodeStepped(session.run(step, slices, end, transfer: id, variant: variant)))
        }
        if !isTaken {
            var report = DecodeReport(transfer: id, variant: variant, attempt: transfer.attempt)
            report.verdict = .failed(Failure(.outOfMemory, "no thread to decode on"))
            mailbox.post(.decodeStepped(report))
        }
    }

    /// For as long as its decoder is there, or somebody holds what it made.
    func charge(_ bytes: Int64, _ id: TransferID, _ variant: Int) {
        guard let transfer = transfer(id) else { return }
        if let charge = transfer.variants[variant].charge { return charge.grow(by: bytes) }
        let charge = MemoryCharge(bytes, ledger)
        transfer.variants[variant].charge = charge
        transfer.variants[variant].session?.charge = charge
    }

    func decodeStepped(_ report: DecodeReport, _ now: Instant) {
        stepsInWork -= 1
        guard let transfer = transfer(report.transfer), downloads.contains(report.transfer),
            report.attempt == transfer.attempt
        else { return }
        if salvage(report, transfer) { return }
        measureDecode(report)
        if let header = report.header { transfer.variants[report.variant].header = header }
        if let image = report.image { transfer.variants[report.variant].image = image }
        if report.verdict != .fed { transfer.variants[report.variant].session = nil }
        if case .failed(let failure) = report.verdict {
            transfer.variants[report.variant].image = report.image
            doubtStored(failure, report.transfer, report.variant, transfer)
        }
        if report.verdict == .finished, let image = report.image {
            keepPicture(image, report.transfer, report.variant, transfer)
        }
        downloads.decodeStepped(
            report.transfer, variant: report.variant, report.verdict, hasHeader: report.header != nil,
            hasPartial: report.verdict == .fed && report.image != nil, demand: report.memoryDemand,
            beside: report.profileBytes, now)
    }

    /// A picture has failed of which somebody takes what pixels there are: a worker looks for them. False where nobody
    /// does, or where it has been done.
    private func salvage(_ report: DecodeReport, _ transfer: ActiveTransfer) -> Bool {
        guard case .failed = report.verdict, !report.isSalvaged,
            let session = transfer.variants[report.variant].session,
            downloads.salvages(report.transfer, variant: report.variant)
        else { return false }
        let isTaken = workers.submit(downloads.priority(report.transfer), goesOn: true) { [mailbox] in
            mailbox.post(.decodeStepped(session.salvage(report)))
        }
        if isTaken { stepsInWork += 1 }
        return isTaken
    }

    /// It was decoded before, for a response that is stored.
    func pictured(_ id: TransferID, _ variant: Int, _ image: DecodedImage) {
        guard let transfer = transfer(id), downloads.contains(id) else { return }
        transfer.variants[variant].header = image.header
        transfer.variants[variant].image = image
        downloads.decodeStepped(id, variant: variant, .finished, hasHeader: true, hasPartial: false, clock.now())
    }
}
