/// The budget of bytes at work (features B20). When it is reached nothing new starts, no decoder is opened early, and
/// HTTP/1.1 transfers are paused: all of them while decoders are at their end or pictures on their way, which gives
/// memory back; else all but a leader, so that something always ends; none of them where they are slow (Downloads+Pace).
/// Decoders that are to finish wait until their canvas fits, or until there is no other whose end would make room: one that
/// is paused for memory is such another, since it may lead.
extension Downloads {
    package var memoryInUse: Int64 { memory.inUse }
    package var memoryPeak: Int64 { memory.peak }
    /// Somebody waits for memory: `memoryReleased` should come soon.
    package var isHeldBack: Bool {
        isPressing || !heldDecodes.isEmpty || memory.isFull && waiting.count > 0 || backlogs.behindCount > 0
    }
    var isShortOfMemory: Bool { memory.isFull || isPressing || !heldDecodes.isEmpty }

    /// What the first bytes say of the picture; before `bodyReceived` of the bytes that say it.
    package mutating func probed(_ id: TransferID, _ size: PictureSize) {
        guard transfers.contains(id) else { return }
        transfers[id].picture = size
        for variant in transfers[id].variants.indices { transfers[id].variants[variant].isHeldBack = false }
    }

    /// Whether anybody has a use for what the first bytes of its body say of the picture.
    package func needsProbe(_ id: TransferID) -> Bool {
        transfers.contains(id) && (!transfers[id].variants.isEmpty || transfers[id].request.hooks != nil)
    }

    /// Whether somebody has joined it who decodes the bytes that are there already, and `looked` is to tell what they
    /// say of the picture, before anything else is reported.
    package func awaitsLook(_ id: TransferID) -> Bool { transfers.contains(id) && transfers[id].awaitsLook }

    package mutating func looked(_ id: TransferID, _ size: PictureSize, _ now: Instant) {
        guard awaitsLook(id) else { return }
        transfers[id].awaitsLook = false
        probed(id, size)
        stepDecoders(id, now)
    }

    /// Bytes that live on outside of the rules, such as a body that is handed over, until they are released. `reviewBacklogs`
    /// is to follow.
    package mutating func holdMemory(_ bytes: Int64) {
        memory.changeCanvases(bytes)
        if memory.isFull { needsReview = true }
    }

    /// The same of what a transfer holds besides its body, perhaps for as long as it lives.
    package mutating func holdMemory(_ bytes: Int64, of id: TransferID) {
        guard transfers.contains(id) else { return holdMemory(bytes) }
        transfers[id].keptBytes += bytes
        keptBytes += bytes
        holdMemory(bytes)
    }

    /// It is over, or begins anew.
    mutating func forgetKept(_ id: TransferID) {
        guard keptBytes > 0, transfers[id].keptBytes > 0 else { return }
        keptBytes -= transfers[id].keptBytes
        transfers[id].keptBytes = 0
        hasRoom = true
    }

    /// Hosts have taken something, or let go of it. What waits for an executor that is behind does not count while it waits: it is
    /// taken before its bytes are gone, or others would get room for them twice.
    package mutating func memoryCameBack(
        _ bytes: Int64, taken: [(executor: Backlogs.Executor, bytes: Int64)], _ now: Instant
    ) {
        for (executor, bytes) in taken { self.taken(bytes, by: executor, now) }
        if bytes > 0 { memoryReleased(bytes, now) }
    }

    /// Nobody holds so much of what was reserved or held any more.
    package mutating func memoryReleased(_ bytes: Int64, _ now: Instant) {
        memory.changeCanvases(-bytes)
        hasRoom = true
        startWaiting(now)
    }

    // MARK: Bodies

    /// The body is let go: the transfer is over, or begins anew.
    mutating func forgetBody(_ id: TransferID) {
        letGoOfExecutors(id)
        forgetOwed(id)
        changeCodings(id, 0)
        guard transfers[id].countedBytes > 0 else { return }
        hasRoom = true
        memory.changeBodies(-transfers[id].countedBytes)
        transfers[id].countedBytes = 0
        if transfers[id].heldBytes != 0 { transfers[id].heldBytes = 0 }
        if slowCount > 0 { updateSlow(id) }
    }

    /// So much is held at the transport now.
    mutating func changeHeld(_ id: TransferID, _ bytes: Int64) {
        let change = bytes - transfers[id].heldBytes
        guard change != 0 else { return }
        transfers[id].heldBytes = bytes
        transfers[id].countedBytes += change
        if transfers[id].question != nil { updateOwed(id) }
        updatePace(id)
        memory.changeBodies(change)
        if change < 0 { hasRoom = true }
    }

    /// So much is held there to undo its codings.
    mutating func changeCodings(_ id: TransferID, _ bytes: Int64) {
        let change = bytes - transfers[id].codingBytes
        guard change != 0 else { return }
        transfers[id].codingBytes = bytes
        memory.changeCodings(change)
    }

    /// A hook has given so many bytes for its body: it holds those from now on, and nothing of what came.
    mutating func replaceBody(_ id: TransferID, _ bytes: Int64) {
        let change = bytes - transfers[id].countedBytes
        transfers[id].countedBytes = bytes
        memory.changeBodies(change)
        if change < 0 { hasRoom = true }
    }

    // MARK: Canvases

    /// Whether a decoder that is to begin before the last byte may be opened; then its canvas is reserved.
    mutating func reserveEarly(_ id: TransferID, _ variant: Int) -> Bool {
        let state = transfers[id].variants[variant]
        let bytes = MemoryRules.canvas(transfers[id].picture, state.options, showsParts: state.partialCount > 0)
        guard transfers[id].picture != .undecided,
            bytes == 0
                || !memory.isFull && memory.fits(bytes) && !waitsForExecutors(id, variant: variant)
                    && !waitsForOldestDecode(OpenVariant(transfer: id, variant: variant), isWhole: false)
        else {
            transfers[id].variants[variant].isHeldBack = true
            releaseProgress(of: variant, id)
            return false
        }
        reserve(id, variant, bytes)
        return true
    }

    /// The same for one that has all its bytes. It is asked again when there is room.
    mutating func reserveForEnd(_ id: TransferID, _ variant: Int) -> Bool {
        let decode = OpenVariant(transfer: id, variant: variant)
        let bytes = MemoryRules.canvas(transfers[id].picture, transfers[id].variants[variant].options)
        let fits = bytes == 0 || !waitsForOldestDecode(decode, isWhole: true) && self.fits(bytes)
        if bytes > 0, waitsForExecutors(id, variant: variant) {
            holdForExecutors(id, variant)
            return false
        }
        guard fits else {
            lineUp(decode)
            transfers[id].variants[variant].isHeldBack = true
            releaseProgress(of: variant, id)
            return false
        }
        reserve(id, variant, bytes)
        return true
    }

    private mutating func reserve(_ id: TransferID, _ variant: Int, _ bytes: Int64) {
        transfers[id].variants[variant].isHeldBack = false
        transfers[id].variants[variant].waitsForExecutor = false
        updateHeld(id)
        guard bytes > 0 else { return }
        passOldestDecode(OpenVariant(transfer: id, variant: variant))
        count(bytes, for: variant, of: id)
        actions.append(.reserve(id, variant: variant, bytes: bytes))
    }

    /// Its decoder turned out to need more than the first bytes said: frames of an animation, which all stay, or a colour
    /// profile. They are there already, so they count, whether or not there was room; what comes after them waits.
    mutating func reserveMore(_ id: TransferID, _ variant: Int, upTo demand: Int64, beside: Int64) {
        let reserved = transfers[id].variants[variant].reserved
        let known = transfers[id].variants[variant].reservedBeside
        let kept = max(known, min(beside, MemoryRules.greatestCanvas))
        let more = max(min(demand, MemoryRules.greatestCanvas), reserved - known) + kept - reserved
        guard more > 0 else { return }
        transfers[id].variants[variant].reservedBeside = kept
        count(more, for: variant, of: id)
        actions.append(.reserveMore(id, variant: variant, bytes: more))
        if memory.isFull { needsReview = true }
    }

    private mutating func count(_ bytes: Int64, for variant: Int, of id: TransferID) {
        let isNew = transfers[id].variants[variant].reserved == 0
        transfers[id].variants[variant].reserved += bytes
        if slowCount > 0 { updateSlow(id) }
        memory.changeCanvases(bytes)
        guard isNew else { return }
        if openVariants.count >= leftoversLookedAt { dropLeftovers() }
        openVariants.append(OpenVariant(transfer: id, variant: variant))
    }

    /// Room for it, or nothing whose end would make room.
    private mutating func fits(_ bytes: Int64) -> Bool {
        if memory.fits(bytes) || memory.canvases == 0 { return true }
        dropLeftovers()
        // A picture that is done, or that nobody wants any more, stays as long as its transfer, which may live only for
        // the one that asks here. One that still comes ends without it: it is not paused, or may lead.
        var stuck = keptBytes
        for open in openVariants {
            if makesRoomAtItsEnd(open) { return false }
            stuck += transfers[open.transfer].variants[open.variant].reserved
        }
        judgeExecutors(stuck)
        return memory.fits(bytes) || memory.canvases - backlogs.excused <= stuck
    }

    /// Somebody waits for its picture, and it goes on, or would if it led.
    func makesRoomAtItsEnd(_ open: OpenVariant) -> Bool {
        let variant = transfers[open.transfer].variants[open.variant]
        let isWanted = variant.phase != .done && variant.subscriberCount > 0
        let isAtWork = transfers[open.transfer].pauses.isEmpty && !transfers[open.transfer].isSlow
        return isWanted && isAtWork || isPressable(open.transfer)
    }

    /// Its decoders are let go with what they hold, which `memoryReleased` will tell.
    mutating func forgetCanvases(_ id: TransferID) {
        openVariants.removeAll { $0.transfer == id }
        for variant in transfers[id].variants.indices {
            transfers[id].variants[variant].reserved = 0
            transfers[id].variants[variant].reservedBeside = 0
        }
        if slowCount > 0 { updateSlow(id) }
    }

    private mutating func dropLeftovers() {
        var open: [OpenVariant] = []
        swap(&open, &openVariants)
        open.removeAll { !transfers.contains($0.transfer) }
        swap(&open, &openVariants)
        leftoversLookedAt = max(64, 2 * openVariants.count)
    }

    /// By priority, then by age.
    func goesBefore(_ left: TransferID, _ right: TransferID) -> Bool {
        let (a, b) = (transfers[left].priority, transfers[right].priority)
        return a != b ? a > b : transfers[left].startNumber < transfers[right].startNumber
    }

    // MARK: Back-pressure

    /// Brings pauses and held decoders in line with the memory there is. O(1) where nothing has changed.
    mutating func relieve(_ now: Instant) {
        let hasChanged = hasRoom
        hasRoom = false
        if hasChanged, !heldDecodes.isEmpty { openHeldDecodes(now) }
        // Perhaps nothing but executors could make room.
        if hasChanged, memory.isFull { _ = makesRoom() }
        if isPressing, !memory.isFull {
            isPressing = false
            leader = nil
            needsLeader = false
            isLeadOpen = false
            for id in pressed where transfers.contains(id) { resume(id, .memory, now) }
            pressed = []
        }
        guard isPressing else { return pressIfFull(now) }
        if leader == nil, !isLeadOpen, needsLeader || hasChanged { chooseLeader(now) }
        lookAgain(now)
    }

    /// For those that it has paused since no decoder waits any more.
    private mutating func lookAgain(_ now: Instant) {
        if hasRoom, !heldDecodes.isEmpty, !holdsStarts { relieve(now) }
    }

    /// Back-pressure begins.
    mutating func pressIfFull(_ now: Instant) {
        guard memory.isFull, !isPressing else { return }
        if backlogs.areSomeAhead { _ = makesRoom() }
        guard memory.isFull else { return }
        isPressing = true
        leader = nil
        isLeadOpen = false
        chooseLeader(now)
        lookAgain(now)
        beginLooks(now)
    }

    private mutating func chooseLeader(_ now: Instant) {
        needsLeader = false
        electLeader(now)
        for id in running { press(id, now) }
    }

    /// None where room comes by itself.
    private mutating func electLeader(_ now: Instant) {
        guard !makesRoom() else { return }
        leader = running.filter { isPressable($0) }.min { leadsBefore($0, $1) }
        if let leader { resume(leader, .memory, now) }
    }

    /// Pauses it, where it is one of those that have to wait for memory.
    mutating func press(_ id: TransferID, _ now: Instant) {
        guard isPressing, !isLeadOpen, id != leader, transfers.contains(id), isPressable(id) else { return }
        if leader == nil { electLeader(now) }
        guard id != leader, !transfers[id].pauses.contains(.memory) else { return }
        pressed.append(id)
        pause(id, .memory, now)
    }

    /// As `press` of one that has brought something. Where the lead is open, the first that is not slow takes it.
    mutating func pressReceiving(_ id: TransferID, _ now: Instant) {
        guard isPressing, id != leader, transfers.contains(id), !transfers[id].pauses.contains(.memory) else { return }
        guard isLeadOpen else { return press(id, now) }
        guard isPressable(id), isQuick(id) else { return }
        isLeadOpen = false
        if !makesRoom() { leader = id }
        for other in running { press(other, now) }
    }

    /// Whether memory will come back without another byte from the network.
    private mutating func makesRoom() -> Bool {
        dropLeftovers()
        var kept = keptBytes
        var mayOneLead = false
        for open in openVariants {
            let variant = transfers[open.transfer].variants[open.variant]
            let isWanted = variant.phase != .done && variant.subscriberCount > 0
            if isWanted, transfers[open.transfer].phase == .decoding { return true }
            if isPressable(open.transfer) { mayOneLead = true }
            kept += variant.reserved
        }
        // Decoders that wait go beyond the budget only where the end of no other would make room (`fits`).
        if !heldDecodes.isEmpty, !mayOneLead { return true }
        judgeExecutors(kept)
        // What no transfer has any more is on its way to somebody, or with a worker.
        return memory.canvases - backlogs.excused > kept
    }

    /// One whose decoder is open gives most back.
    private func leadsBefore(_ left: TransferID, _ right: TransferID) -> Bool {
        let (a, b) = (isDecoding(left), isDecoding(right))
        return a != b ? a : goesBefore(left, right)
    }

    private func isDecoding(_ id: TransferID) -> Bool { transfers[id].variants.contains { $0.reserved > 0 } }

    /// Its body comes, not slowly, over a connection of its own. A paused stream of HTTP/2 would hold up its siblings in the
    /// end.
    private func isPressable(_ id: TransferID) -> Bool {
        transfers[id].phase == .receiving && transfers[id].hasHead && !transfers[id].isDraining
            && transfers[id].httpVersion < 20 && transfers[id].place >= 0 && !transfers[id].isSlow
    }
}
