/// What was asked for before its URL was outdated (`OutdatedURLs`) is for those who have joined it by then, and for nobody who
/// comes later.
extension Downloads {
    /// At this moment a hop of it goes to its server, or what is stored is looked for, and may be played.
    package mutating func asked(_ id: TransferID, at moment: UInt64) {
        guard transfers.contains(id) else { return }
        // What led to a later hop was asked for before.
        if !transfers[id].laterHops.isEmpty, transfers[id].askedAt != nil { return }
        transfers[id].askedAt = moment
    }

    /// Nothing that was found has a part in it: until it goes to its server it cannot be outdated.
    package mutating func forgetLookUp(_ id: TransferID) {
        guard transfers.contains(id), transfers[id].laterHops.isEmpty else { return }
        transfers[id].askedAt = nil
    }

    /// Before this request comes: it joins nothing that is outdated, and no failure of before is its own.
    package mutating func partFromOutdated(
        _ request: TransferRequest, _ isOutdated: (_ url: ParsedURL, _ since: UInt64) -> Bool
    ) {
        for id in shared(by: request) {
            guard let moment = transfers[id].askedAt else { continue }
            if transfers[id].hops.contains(where: { isOutdated($0, moment) }) { unshare(id) }
        }
        failedURLs.forgetOutdated(request, isOutdated)
    }
}
