import Glibc
import ImgdlCore

/// The thread that looks up, with a connection of its own: it never waits for what the other one writes.
final class DiskReader {
    private let store: DiskStore
    private var index: Index?
    private var indexNumber = 0
    /// Another index has the name of the one of this number.
    private var replacedNumber = 0
    private var impatientUntil = Instant(nanoseconds: 0)
    private static let impatientMilliseconds: Int64 = 1_000

    /// Told together while others wait, so that who gets them is woken once.
    private var answers: [Answer] = []
    private var answerBytes: Int64 = 0
    private var firstAnswer = Instant(nanoseconds: 0)

    private struct Answer {
        let found: FoundEntry?
        let completion: @Sendable (FoundEntry?) -> Void
    }

    private static let manyAnswers = 8
    private static let manyBytes: Int64 = 1 << 20
    private static let longestNanoseconds: Int64 = 500_000

    init(_ store: DiskStore) { self.store = store }

    func run() {
        while true {
            if let lookup = store.nextLookup(waits: answers.isEmpty) {
                answer(lookup)
            } else if answers.isEmpty {
                return
            } else {
                tell()
            }
        }
    }

    private func add(_ found: FoundEntry?, _ lookup: Lookup) {
        let now = MonotonicClock().now()
        if answers.isEmpty { firstAnswer = now }
        answers.append(Answer(found: found, completion: lookup.completion))
        if let found, !found.body.isEmpty { answerBytes += found.entry.response.bodyLength }
        let isOld = now.nanoseconds - firstAnswer.nanoseconds >= Self.longestNanoseconds
        if isOld || answers.count >= Self.manyAnswers || answerBytes >= Self.manyBytes { tell() }
    }

    private func tell() {
        for answer in answers { answer.completion(answer.found) }
        answers.removeAll(keepingCapacity: true)
        answerBytes = 0
    }

    private func answer(_ lookup: Lookup) {
        var candidates: Candidates
        let lastChange: Int64
        var looked = 0
        do throws(DatabaseError) {
            (candidates, lastChange) = try Candidates.find(
                lookup.key, in: store, usedSince: store.configuration.maximumAge.map { store.clock.wallTime() - $0 },
                damaged: { store.removeDamaged($0) }
            ) { (number) throws(DatabaseError) in
                looked = number
                try openIndex(number)
                return index
            }
        } catch {
            if error.isDamage { store.replaceIndex(number: looked, message: error.message) }
            index = nil
            indexNumber = 0
            return add(nil, lookup)
        }
        while true {
            guard !candidates.list.isEmpty,
                case .entry(let position, let withBody) = lookup.choose(candidates.list.map(\.entry)),
                candidates.list.indices.contains(position)
            else { return add(nil, lookup) }
            let candidate = candidates.list[position]
            if !withBody || candidate.entry.response.bodyLength == 0 {
                return add(FoundEntry(entry: candidate.entry, body: [], isFromMemory: false), lookup)
            }
            switch read(candidate, lookup) {
            case .whole(let slices):
                remember(candidate.entry, slices, lookup.key, lastChange)
                return add(FoundEntry(entry: candidate.entry, body: slices, isFromMemory: false), lookup)
            case .later: return
            case .unreadable: return add(nil, lookup)
            case .gone: candidates.remove(position)
            }
        }
    }

    private func openIndex(_ number: Int) throws(DatabaseError) {
        let isOpen = number == indexNumber
        let hasMoved = isOpen && index?.database.hasMoved ?? false
        if hasMoved { replacedNumber = number }
        if number == 0 ? access(store.folder.index, F_OK) == 0 : number == replacedNumber { store.lookAgain() }
        guard !isOpen || hasMoved || index?.database.isRewritten ?? false else { return }
        index = nil
        indexNumber = 0
        if number != 0 {
            let isReadOnly = store.withState { $0.isIndexReadOnly }
            let place = IndexPlace(folder: store.folder)
            index = try place.whileInPlace(milliseconds: patience()) { (check) throws(DatabaseError) in
                try isReadOnly
                    ? Index.openUnchanging(store.folder.index, check) : Index.openForReading(store.folder.index, check)
            }
            // Somebody is moving it: nothing is found at this moment.
            if index == nil {
                impatientUntil = MonotonicClock().now().advanced(byMilliseconds: Self.impatientMilliseconds)
                return
            }
        }
        indexNumber = number
    }

    /// How long a look-up waits for who moves the index: the next ones do not wait, where one did in vain.
    private func patience() -> Int { MonotonicClock().now() < impatientUntil ? 0 : 100 }

    private enum Reading {
        case whole([BodySlice])
        /// The look-up has been handed over.
        case later
        case unreadable
        case gone
    }

    private func read(_ candidate: Candidates.Candidate, _ lookup: Lookup) -> Reading {
        let id = candidate.entry.id
        let length = candidate.entry.response.bodyLength
        switch candidate.place {
        case .file(let checksum):
            switch BodyFile.read(store.folder.body(id), length: length, checksum: checksum) {
            case .whole(let slices): return .whole(slices)
            case .unreadable: return .unreadable
            case .missing, .damaged:
                // Perhaps another process has just removed it: then there is nothing to be removed and nothing is
                // counted.
                store.removeDamaged(id)
                return .gone
            }
        case .body(let body): return read(body, lookup, length)
        }
    }

    private func read(_ body: DiskBody, _ lookup: Lookup, _ length: Int64) -> Reading {
        let (state, slices) = store.withState { _ -> (DiskBody.State, [BodySlice]?) in
            if case .writing = body.state, body.slices == nil { body.waiting.append(lookup) }
            return (body.state, body.slices)
        }
        if let slices { return .whole(slices) }
        switch state {
        case .writing: return .later
        case .failed: return .gone
        case .written(let checksum, let path):
            // It may be getting its last name now.
            for path in [path, store.folder.body(body.id)].compactMap({ $0 }) {
                if case .whole(let slices) = BodyFile.read(path, length: length, checksum: checksum) {
                    return .whole(slices)
                }
            }
            return .gone
        }
    }

    /// What was read may be asked for again. `number`: of the last change when it was looked for.
    private func remember(_ entry: StoredEntry, _ slices: [BodySlice], _ key: String, _ number: Int64) {
        guard entry.response.bodyLength <= store.memory.maximumEntryBytes, store.changes.isCurrent(entry.mark) else {
            return
        }
        _ = store.memory.insert(entry, key: key, body: slices, wallTime: store.clock.wallTime())
        // Who removes tells the disk first: it may have found nothing in memory a moment ago.
        if store.withState({ $0.changes.lastNumber }) != number { store.memory.remove(entry.id) }
    }
}
