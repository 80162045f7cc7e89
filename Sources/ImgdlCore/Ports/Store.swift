/// Port: where responses and their bodies are kept between downloads. `ImgdlCache` implements it. Threads: any; nothing here
/// but `close` waits. What one thread does is done in its order: a look-up finds what was finished before it.
///
/// Keys are URLs without fragment, user and password, in canonical form (`ParsedURL.cacheKey`). Several responses may be
/// stored under one key, which differ in their varying fields; the rules choose.
package protocol Store: AnyObject, Sendable {
    /// Looks up without leaving the calling thread: in memory. nil: look into the whole store; an entry whose body is not in
    /// memory is not given.
    func findInMemory(_ key: String, _ choose: (borrowing [StoredEntry]) -> StoreChoice) -> FoundEntry?

    /// Looks up. `choose` is asked once, on any thread, with everything that is stored under the key, the newest first;
    /// `completion` runs once, on any thread. A body whose checksum or length is wrong is removed and `choose` is asked again
    /// with what is left.
    func find(
        _ key: String, choose: @escaping @Sendable ([StoredEntry]) -> StoreChoice,
        completion: @escaping @Sendable (FoundEntry?) -> Void)

    /// Begins to store a body, in place of an entry with the same varying fields once it is finished. nil: nothing is stored
    /// now. Readers see it when it is finished and whole.
    /// `since`: from before the request was sent. What was removed since, by whichever program, is not stored again by an
    /// answer that began before; nor does this answer where what has come since is newer.
    func write(_ key: String, _ response: StoredResponse, since: RequestMark) -> (any StoreWriter)?

    /// To be asked for before a request is sent.
    func requestMark(_ key: String) -> RequestMark
    /// The first part of it: to be asked for before it is looked for what the answer may go on from.
    func removalMark(_ key: String) -> RemovalMark

    /// Whether what is under its key has been removed since, by whichever program.
    func isRemoved(_ mark: RemovalMark) -> Bool

    /// What an answer has changed of a stored response, of the same body (RFC 9111 section 4.3.4). `known`: as it was when the
    /// answer was asked for; where it is no longer so, somebody has asked later and knows better, and nothing changes. nil: it
    /// is changed in any case.
    func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version?)
    /// It has answered: for eviction by recency.
    func use(_ id: EntryID)
    func remove(_ id: EntryID)
    /// Everything under the key (RFC 9111 section 4.4).
    func remove(key: String)

    /// Of everything that is removed by its key, or altogether, once that is gone; the same for all that use the store.
    var outdated: OutdatedURLs { get }

    /// A keyed digest, always the same for what is kept here: what other programs that use it make of the message, too.
    func digest(_ message: ContextMessage) -> ContextDigest
    /// Which key digests are made with: another one, once the folder has another key. To be asked for before a digest is.
    var keyNumber: UInt64 { get }

    /// Counts for the statistics.
    func count(_ outcome: StoreOutcome)
    /// Decoded images of stored responses; nil: none are kept.
    var images: (any ImageStore)? { get }
}

/// What the rules want of what is stored.
package enum StoreChoice: Sendable {
    case nothing
    /// The entry of this index in the list, with its body or without.
    case entry(Int, withBody: Bool)
}

package struct FoundEntry: Sendable {
    package let entry: StoredEntry
    /// Empty without body, and for an empty one.
    package let body: [BodySlice]
    package let isFromMemory: Bool

    package init(entry: StoredEntry, body: [BodySlice], isFromMemory: Bool) {
        self.entry = entry
        self.body = body
        self.isFromMemory = isFromMemory
    }
}

/// One body being stored. Threads: one after the other; nothing waits. One of the last three, once.
package protocol StoreWriter: AnyObject, Sendable {
    /// What the entry will be known by once it is finished.
    var id: EntryID { get }
    /// Of the entry, from before its body came.
    var mark: ChangeMark { get }
    /// The next bytes: shared, not copied.
    func append(_ slices: [BodySlice])
    /// It is whole. `response`: as at the beginning, with the length. False: it is not kept, since it was removed meanwhile,
    /// or a newer one is there.
    @discardableResult
    func finish(_ response: StoredResponse) -> Bool
    /// There was no room for it, or no time: what it would have taken the place of is there. Asked once it is finished.
    var isLost: Bool { get }
    /// It broke off: what came is kept to be resumed, if it is worth it. The extent is a beginning.
    func keep(_ response: StoredResponse)
    func abandon()
}

package enum StoreOutcome: Sendable { case hit, memoryHit, imageHit, validated, stale, miss, resumed }

/// Decoded images of stored responses, by entry and decode options: the same image for everybody (features B20). Threads: any.
package protocol ImageStore: AnyObject, Sendable {
    /// The newest responses under the key that have images here.
    func entries(_ key: String) -> [StoredEntry]
    /// Of one of those.
    func image(_ id: EntryID, _ options: DecodeOptions) -> DecodedImage?
    /// To be asked for before it is looked for what is stored under the key.
    func expect(_ key: String) -> any ExpectedImages
}

/// Images that are made of one stored response, for as long as this lives: they are kept where it is still stored when they come,
/// and nothing has taken its place. Threads: one after the other.
package protocol ExpectedImages: AnyObject {
    /// The one that was found when it was looked for. Not where something may have gone since.
    func areOf(found entry: StoredEntry)
    /// The one that is about to be stored: before it is.
    func areOf(new entry: StoredEntry)
    func keep(_ image: DecodedImage, _ options: DecodeOptions)
}
