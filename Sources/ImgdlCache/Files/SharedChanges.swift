import Glibc
import ImgdlCore
import Synchronization

/// Changes by other programs of what is stored, seen with one call of the kernel: memory must not answer with what they
/// have removed or replaced. Counters in a file that all programs with the folder map, by the hash of what they count:
/// two keys may share one, and then a look-up is in vain. Its own changes a program leaves out.
///
/// Nothing in the file is trusted: rubbish there costs look-ups, time, and what is on its way to the index. It may be
/// replaced or removed at any time: whoever counts, and whoever is about to answer from memory, takes the one that is
/// there now (`follow`).
///
/// Threads: any.
final class SharedChanges: @unchecked Sendable {
    private static let bucketCount = 2_048
    /// The counters, the first of which counts all that is changed; until when the index does not say that something is
    /// being removed; the hash of what it is; and, twice over, counters of keys that were removed, the first of which
    /// counts what removes everything: a key that shares one of its two with another shares hardly ever both, and no
    /// look-up is all that it would lose.
    private static let byteCount = bucketCount * 40
    private static let removals = bucketCount * 3
    /// A program that is killed before it has removed what it announced is waited for no longer.
    private static let longestNanoseconds: UInt64 = 5_000_000_000

    private typealias Counters = UnsafeMutablePointer<Atomic<UInt64>>

    /// Reserved once, so that whoever looks at it may do so while another file takes its place.
    private let shared: Counters?
    /// This program's own part of it, without the hashes; counters twice as high.
    private let own: Counters
    private static let ownRemovals = bucketCount * 2
    /// All removals by this program, whether others were told or not.
    private static let removalsHere = bucketCount * 4
    private static let ownCount = bucketCount * 6
    /// Grows with each other file, so that no mark of before is current.
    private let era = Atomic<UInt64>(0)
    private let disk: any Disk
    /// Held by who opens the file, whom the disk may let wait. Taken before the next one.
    private let opening = Lock()
    /// Another file is being opened in place of the one that is mapped: no mark is current until it is.
    private let isReplacing = Atomic<Bool>(false)
    /// Nobody who holds it waits for the disk.
    private let lock = Lock()
    /// Guarded by the lock, as the next. nil: there is none.
    private var file: ChangesFile.Name?
    private var isWritable = false
    /// Where it is, once that is known.
    private var place: (path: String, isReadOnly: Bool)?
    /// Announcements made while there was no file to say them in.
    private var unsaid = Unsaid()

    /// As much as there are buckets, at most.
    private struct Unsaid {
        /// The last of each bucket.
        var hashes: [UInt32: UInt64] = [:]
        /// Buckets of removals.
        var removals: Set<Int> = []
    }

    init(on disk: any Disk = KernelDisk()) {
        self.disk = disk
        let memory = mmap(nil, Self.byteCount, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        shared = memory.flatMap {
            $0 == MAP_FAILED ? nil : $0.bindMemory(to: Atomic<UInt64>.self, capacity: Self.bucketCount * 5)
        }
        own = .allocate(capacity: Self.ownCount)
        for index in 0..<Self.ownCount { (own + index).initialize(to: Atomic(0)) }
    }

    deinit {
        if let shared { munmap(shared, Self.byteCount) }
        own.deinitialize(count: Self.ownCount)
        own.deallocate()
    }

    // MARK: Looking

    /// The mark of an entry, to be asked for before the entry is looked for.
    func mark(_ key: String, _ id: EntryID) -> ChangeMark {
        var mark = ChangeMark(key: Self.bucket(Self.hash(key)), id: Self.bucket(Self.hash(id)))
        mark.seen = seen(mark) ?? .max
        return mark
    }

    /// The same, never current where others have changed something under the key since the request was sent.
    func mark(_ key: String, _ id: EntryID, since request: RequestMark) -> ChangeMark {
        let mark = mark(key, id)
        return isCurrent(request.changes) ? mark : .never
    }

    /// Of all that is under the key.
    func mark(_ key: String) -> ChangeMark {
        let bucket = Self.bucket(Self.hash(key))
        var mark = ChangeMark(key: bucket, id: bucket)
        mark.seen = seen(mark) ?? .max
        return mark
    }

    /// Nobody else has changed anything about it.
    @inline(__always) func isCurrent(_ mark: ChangeMark) -> Bool { mark.seen == seen(mark) }

    @inline(__always) private func seen(_ mark: ChangeMark) -> UInt64? {
        guard let key = others(mark.key), let id = others(mark.id) else { return nil }
        return key &+ id &+ era.load(ordering: .acquiring)
    }

    /// nil: this program is counting at this moment.
    @inline(__always) private func others(_ bucket: UInt32) -> UInt64? {
        guard let shared else { return 0 }
        let index = Int(bucket) & (Self.bucketCount - 1)
        let before = own[index].load(ordering: .acquiring)
        let count = shared[index].load(ordering: .acquiring)
        guard before & 1 == 0, own[index].load(ordering: .acquiring) == before else { return nil }
        return count &- before >> 1
    }

    /// Of everything: `isCurrent` after a look says that nobody has changed anything meanwhile.
    func markOfAll() -> ChangeMark {
        var mark = ChangeMark()
        mark.seen = seen(mark) ?? .max
        return mark
    }

    /// Another program is removing it, or everything, and the index does not know that yet.
    func isBeingRemoved(_ key: String, _ id: EntryID) -> Bool {
        isHidden(Self.hash(key)) || isHidden(Self.hash(id)) || isHidden(Self.everything)
    }

    private func isHidden(_ hash: UInt64) -> Bool {
        guard let shared else { return false }
        let index = Int(hash == Self.everything ? 0 : Self.bucket(hash))
        let until = shared[Self.bucketCount + index].load(ordering: .acquiring)
        guard until != 0, until != own[Self.bucketCount + index].load(ordering: .acquiring),
            shared[2 * Self.bucketCount + index].load(ordering: .acquiring) == hash
        else { return false }
        let now = Self.now()
        return until > now && until - now <= Self.longestNanoseconds
    }

    /// To be asked for before a request is sent.
    func removalMark(_ key: String) -> RemovalMark {
        var mark = RemovalMark(Self.removalBuckets(Self.hash(key)))
        note(&mark)
        return mark
    }

    /// Another program has begun to remove all of its key, or everything. Whoever asks while no other program writes to
    /// the index is told of all that were there before.
    func isRemovedByOthers(_ mark: RemovalMark) -> Bool {
        var now = mark
        note(&now)
        return Self.hasGrown(now.others, mark.others)
    }

    /// The same, or this program has. What is finished before that goes with it.
    func isRemoved(_ mark: RemovalMark) -> Bool {
        var now = mark
        note(&now)
        return Self.hasGrown(now.others, mark.others) || Self.hasGrown(now.own, mark.own)
    }

    private static func hasGrown(_ now: RemovalMark.Counts, _ before: RemovalMark.Counts) -> Bool {
        now.all != before.all || (now.first != before.first && now.second != before.second)
    }

    private func note(_ mark: inout RemovalMark) {
        lock.withLock {
            mark.others.all = removalsByOthers(0)
            mark.others.first = removalsByOthers(mark.buckets.first)
            mark.others.second = removalsByOthers(mark.buckets.second)
            mark.own.all = removalsHere(0)
            mark.own.first = removalsHere(mark.buckets.first)
            mark.own.second = removalsHere(mark.buckets.second)
        }
    }

    private func removalsHere(_ bucket: Int) -> UInt64 {
        own[Self.removalsHere + bucket].load(ordering: .acquiring)
    }

    /// In the two sets of counters.
    private static func removalBuckets(_ hash: UInt64) -> (first: Int, second: Int) {
        (Int(bucket(hash)), bucketCount + 1 + Int((hash & 0xF_FFFF) % UInt64(bucketCount - 1)))
    }

    private func removalsByOthers(_ bucket: Int) -> UInt64 {
        guard let shared else { return 0 }
        let own = own[Self.ownRemovals + bucket].load(ordering: .relaxed)
        return shared[Self.removals + bucket].load(ordering: .acquiring) &- own >> 1
    }

    // MARK: Telling

    /// This program is going to remove all of the key, of which others may learn or not.
    func countRemoval(key: String) {
        let (first, second) = Self.removalBuckets(Self.hash(key))
        for bucket in [first, second] {
            own[Self.removalsHere + bucket].wrappingAdd(1, ordering: .acquiringAndReleasing)
        }
    }
    func countRemovalOfAll() { own[Self.removalsHere].wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// It is going to be removed: until `tell` nobody else serves it. Where there is no file for that yet, others learn of
    /// it as soon as there is one.
    func announce(key: String) {
        let hash = Self.hash(key)
        let (first, second) = Self.removalBuckets(hash)
        announce(hash, in: Self.bucket(hash), removals: [first, second])
    }
    func announce(_ id: EntryID) { announce(Self.hash(id), in: Self.bucket(Self.hash(id)), removals: []) }
    func announceAll() { announce(Self.everything, in: 0, removals: [0]) }

    /// The index says it now.
    func tell(key: String) { tell([Self.bucket(Self.hash(key))]) }
    func tell(_ id: EntryID) { tell([Self.bucket(Self.hash(id))]) }
    func tell(_ ids: [EntryID]) { tell(ids.lazy.map { Self.bucket(Self.hash($0)) }) }
    func tellAll() { tell(0..<UInt32(Self.bucketCount)) }

    private func tell(_ buckets: some Sequence<UInt32>) {
        follow()
        for bucket in buckets { tell(bucket) }
    }

    /// Whether others learn of what is told. They do not where this program could not get at the file, as with no
    /// descriptor left; where nobody can use it all ask the disk.
    var reachesOthers: Bool {
        follow()
        let (place, isAttached) = lock.withLock { (self.place, isWritable && file != nil) }
        // Where nothing can be written it was told before.
        guard let place, !place.isReadOnly else { return true }
        return isAttached || !ChangesFile.isUsable(place.path, bytes: Self.byteCount)
    }

    private func announce(_ hash: UInt64, in bucket: UInt32, removals: [Int]) {
        // Another file is told what is unsaid by whoever opens it, and nobody waits for that here. Whoever is the first to
        // see that there is another opens it himself, and waits for the disk.
        if !isReplacing.load(ordering: .acquiring) { follow() }
        lock.withLock {
            unsaid.hashes[bucket] = hash
            unsaid.removals.formUnion(removals)
            sayUnsaid()
        }
    }

    /// Inside the lock.
    private func sayUnsaid() {
        guard let shared, isWritable else { return }
        let until = Self.now() + Self.longestNanoseconds
        for (bucket, hash) in unsaid.hashes {
            own[Self.bucketCount + Int(bucket)].store(until, ordering: .releasing)
            shared[2 * Self.bucketCount + Int(bucket)].store(hash, ordering: .releasing)
            shared[Self.bucketCount + Int(bucket)].store(until, ordering: .releasing)
            count(Int(bucket))
            if hash == Self.everything { for other in 1..<Self.bucketCount { count(other) } }
        }
        for bucket in unsaid.removals { countRemoval(bucket) }
        unsaid = Unsaid()
    }

    private func tell(_ bucket: UInt32) {
        lock.withLock {
            // The index says it: nobody else needs to be kept from looking there.
            unsaid.hashes[bucket] = nil
            guard let shared, isWritable else { return }
            count(Int(bucket))
            let index = Self.bucketCount + Int(bucket)
            let announced = own[index].exchange(0, ordering: .acquiringAndReleasing)
            // Unless another program has announced something since.
            if announced != 0 {
                _ = shared[index].compareExchange(expected: announced, desired: 0, ordering: .acquiringAndReleasing)
            }
        }
    }

    /// Inside the lock, as the file may be another one otherwise.
    private func count(_ bucket: Int) {
        for index in [bucket, 0] { count(index, own: index) }
    }

    private func countRemoval(_ bucket: Int) { count(Self.removals + bucket, own: Self.ownRemovals + bucket) }

    private func count(_ index: Int, own ownIndex: Int) {
        guard let shared, isWritable else { return }
        // Odd in between.
        own[ownIndex].wrappingAdd(1, ordering: .sequentiallyConsistent)
        shared[index].wrappingAdd(1, ordering: .sequentiallyConsistent)
        own[ownIndex].wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    private static func now() -> UInt64 { UInt64(max(0, MonotonicClock().now().nanoseconds)) }

    private static let everything: UInt64 = .max
    private static func hash(_ key: String) -> UInt64 { UInt64(bitPattern: Checksum.of(key)) }
    private static func hash(_ id: EntryID) -> UInt64 { UInt64(bitPattern: id.rawValue) &* 0x9E37_79B9_7F4A_7C15 }

    /// Not the first, which counts all.
    private static func bucket(_ hash: UInt64) -> UInt32 { UInt32((hash >> 20) % UInt64(bucketCount - 1)) + 1 }

    // MARK: The file

    /// Takes the folder's file, and makes it where there is none. False: it is another one than before, and what is in
    /// memory may be anything.
    @discardableResult
    func attach(_ path: String, isReadOnly: Bool) -> Bool { opening.withLock { take(path, isReadOnly) } }

    /// Whether the file that is mapped is the one that is there now, for who must not wait for the disk: a call of the
    /// kernel's, which is not made while somebody else opens another file. Else no mark is current, until somebody follows.
    func check() {
        if isReplacing.load(ordering: .acquiring) { return nextEra() }
        guard let (path, file) = lock.withLock({ place.map { ($0.path, self.file) } }) else { return }
        if ChangesFile.Name(at: path) != file { nextEra() }
    }

    /// Takes the file that is there now, if it is another one: a call of the kernel's. Where there is one that cannot
    /// be used no mark is current, as others may use it.
    func follow() {
        guard lock.withLock({ place != nil }) else { return }
        opening.withLock {
            guard let (place, file) = lock.withLock({ self.place.map { ($0, self.file) } }) else { return }
            let found = ChangesFile.Name(at: place.path)
            if found == file, found != nil || place.isReadOnly { return }
            _ = take(place.path, place.isReadOnly)
            if lock.withLock({ self.file == nil }), ChangesFile.Name(at: place.path) != nil { nextEra() }
        }
    }

    private func nextEra() { era.wrappingAdd(1 << 32, ordering: .acquiringAndReleasing) }

    /// Inside `opening`. Nothing has been counted before the first, and a mark of then is one of its beginning.
    private func take(_ path: String, _ isReadOnly: Bool) -> Bool {
        guard let shared else { return true }
        let (isFirst, before) = lock.withLock { (place == nil, file) }
        if !isFirst, ChangesFile.Name(at: path) != before { isReplacing.store(true, ordering: .releasing) }
        defer { isReplacing.store(false, ordering: .releasing) }
        let opened = ChangesFile(path, bytes: Self.byteCount, isReadOnly: isReadOnly, on: disk)
        return lock.withLock {
            place = (path, isReadOnly)
            return opened.map { use($0, shared, isFirst: isFirst) } ?? detach(shared)
        }
    }

    /// Inside the lock, as the next two.
    private func use(_ opened: ChangesFile, _ shared: Counters, isFirst: Bool) -> Bool {
        let found = opened.name
        if found == file, isWritable != opened.isReadOnly { return true }
        guard map(shared, opened.access, MAP_SHARED, opened.descriptor) else { return detach(shared) }
        isWritable = !opened.isReadOnly
        let isSame = file == nil || file == found
        if found != file, !isFirst { nextEra() }
        file = found
        sayUnsaid()
        return isSame
    }

    private func detach(_ shared: Counters) -> Bool {
        isWritable = false
        _ = map(shared, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1)
        guard file != nil else { return true }
        file = nil
        nextEra()
        return false
    }

    /// Maps another file. Removals that it has counted before are none of now.
    private func map(_ shared: Counters, _ access: Int32, _ flags: Int32, _ descriptor: Int32) -> Bool {
        let before = (0..<2 * Self.bucketCount).map(removalsByOthers)
        guard mmap(shared, Self.byteCount, access, flags | MAP_FIXED, descriptor, 0) != MAP_FAILED else { return false }
        for bucket in before.indices {
            let count = shared[Self.removals + bucket].load(ordering: .acquiring)
            own[Self.ownRemovals + bucket].store((count &- before[bucket]) << 1, ordering: .relaxed)
        }
        return true
    }
}
