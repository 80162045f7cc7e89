@testable import ImgdlCore

/// Pictures that wait for room to be decoded.
extension Witness {
    /// The one that has stood in line for longest since `passes` others have got room.
    struct OldestDecode {
        let decode: Downloads.OpenVariant
        var passes = 0
        /// When the last event had been dealt with: bodies came whose canvases were reserved; all who want it were on executors
        /// that are behind.
        var areOthersComing: Bool
        var isBehind: Bool
    }

    /// Small pictures do not keep a large one waiting for ever.
    mutating func seeDecodeLine(_ downloads: borrowing Downloads) throws {
        var oldest: Downloads.OpenVariant?
        for decode in downloads.heldDecodes where oldest == nil && downloads.contains(decode.transfer) {
            let variant = downloads.transfers[decode.transfer].variants[decode.variant]
            if variant.phase == .unopened, variant.subscriberCount > 0 { oldest = decode }
        }
        guard let oldest else { return oldestDecode = nil }
        let areOthersComing = charges.contains { !$0.isAbandoned && transfers[$0.transfer]!.transport == .receiving }
        let isBehind = downloads.waitsForExecutors(oldest.transfer, variant: oldest.variant)
        var now = OldestDecode(decode: oldest, areOthersComing: areOthersComing, isBehind: isBehind)
        if let before = oldestDecode, before.decode == oldest {
            let passing = reservedNow.filter { $0.transfer != oldest.transfer || $0.variant != oldest.variant }
            if before.passes >= limits.maximumPasses, !before.isBehind, !isBehind {
                let areWhole = passing.allSatisfy { transfers[$0.transfer]!.finished || transfers[$0.transfer]!.failed }
                try require(areWhole, "decoded early, though another has waited too long for room")
                let mayPass = before.areOthersComing || areOthersComing
                try require(passing.isEmpty || mayPass, "another has waited too long for room to be decoded")
            }
            now.passes = before.passes + passing.count
        }
        oldestDecode = now
    }
}
