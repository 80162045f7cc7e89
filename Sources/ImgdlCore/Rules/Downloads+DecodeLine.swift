/// The line of pictures that have all their bytes and wait for room to be decoded. By priority, then by age; others that come
/// later and need less go before them while they fit. Once the one that has stood there for longest has been passed so often it is
/// the next, and others wait for it: small pictures may come without end, and leave a large one no room.
extension Downloads {
    struct OpenVariant: Equatable {
        let transfer: TransferID
        let variant: Int
    }

    /// It is asked again when there is room.
    mutating func lineUp(_ decode: OpenVariant) {
        guard !transfers[decode.transfer].variants[decode.variant].isInLine else { return }
        transfers[decode.transfer].variants[decode.variant].isInLine = true
        heldDecodes.append(decode)
    }

    mutating func openHeldDecodes(_ now: Instant) {
        dropLeftDecodes()
        while let next = nextHeldDecode {
            // Meanwhile it keeps where it stands: it waits for none behind it.
            let decode = heldDecodes[next]
            transfers[decode.transfer].variants[decode.variant].isInLine = false
            stepDecoder(decode.transfer, decode.variant, now)
            guard !transfers[decode.transfer].variants[decode.variant].isInLine else {
                heldDecodes.removeLast()
                return
            }
            heldDecodes.remove(at: next)
        }
    }

    private var nextHeldDecode: Int? {
        if let first = heldDecodes.first, holdsUp(first, isWhole: true) { return 0 }
        return heldDecodes.indices.max { goesBefore(heldDecodes[$1].transfer, heldDecodes[$0].transfer) }
    }

    /// Somebody gets room before the one that has stood in line for longest.
    mutating func passOldestDecode(_ decode: OpenVariant) {
        guard let oldest = oldestHeldDecode, oldest != decode else { return }
        transfers[oldest.transfer].variants[oldest.variant].passes += 1
    }

    /// Whether this one waits though there is room for it. `isWhole`: it has all its bytes; else its decoder would begin early.
    func waitsForOldestDecode(_ decode: OpenVariant, isWhole: Bool) -> Bool {
        guard let oldest = oldestHeldDecode, oldest != decode else { return false }
        return holdsUp(oldest, isWhole: isWhole)
    }

    /// Whether others wait for the oldest, since it has been passed often enough. Those that are whole go on while bodies come
    /// whose canvases leave it no room: it would have none of theirs.
    private func holdsUp(_ oldest: OpenVariant, isWhole: Bool) -> Bool {
        let variant = transfers[oldest.transfer].variants[oldest.variant]
        guard variant.passes >= limits.maximumPasses, !waitsForExecutors(oldest.transfer, variant: oldest.variant)
        else {
            return false
        }
        guard isWhole else { return true }
        var coming: Int64 = 0
        for open in openVariants where transfers.contains(open.transfer) {
            guard transfers[open.transfer].phase == .receiving, makesRoomAtItsEnd(open) else { continue }
            coming += transfers[open.transfer].variants[open.variant].reserved
        }
        let bytes = MemoryRules.canvas(transfers[oldest.transfer].picture, variant.options)
        return coming == 0 || coming + bytes <= memory.budget
    }

    private var oldestHeldDecode: OpenVariant? { heldDecodes.first { isHeldDecode($0) } }

    /// It still waits, and somebody for it.
    private func isHeldDecode(_ decode: OpenVariant) -> Bool {
        guard transfers.contains(decode.transfer), transfers[decode.transfer].phase == .decoding else { return false }
        let variant = transfers[decode.transfer].variants[decode.variant]
        return variant.isIdle && variant.subscriberCount > 0
    }

    private mutating func dropLeftDecodes() {
        var held: [OpenVariant] = []
        swap(&held, &heldDecodes)
        for decode in held where !isHeldDecode(decode) && transfers.contains(decode.transfer) {
            transfers[decode.transfer].variants[decode.variant].isInLine = false
        }
        held.removeAll { !isHeldDecode($0) }
        swap(&held, &heldDecodes)
    }
}
