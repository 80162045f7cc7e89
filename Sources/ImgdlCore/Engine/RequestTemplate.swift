import Glibc

/// What requests that ask in the same way have in common, read once.
package final class RequestTemplate: Sendable {
    package let options: Boxed<SubscriberOptions>
    package let profile: TransferRequest.Profile
    package let recipient: Recipient

    package init(options: Boxed<SubscriberOptions>, profile: TransferRequest.Profile, recipient: Recipient) {
        self.options = options
        self.profile = profile
        self.recipient = recipient
    }

    // An object that is asked by its owner is not counted up and down for it, as one is that others ask: so these are
    // here.

    var tellsAtOnce: Bool { recipient.tellsAtOnce }

    func post(_ event: DownloadEvent, of subscription: Subscription) { recipient.post(event, of: subscription) }

    func post(_ terminal: consuming Terminal, of subscription: Subscription) {
        recipient.post(terminal, of: subscription)
    }

    func end(_ subscription: Subscription, _ terminal: consuming Terminal) -> Bool {
        recipient.end(subscription, terminal)
    }

    /// The same but for the priority.
    package func with(_ priority: Priority) -> RequestTemplate {
        var options = options
        options.wrappedValue.priority = priority
        return RequestTemplate(options: options, profile: profile, recipient: recipient)
    }
}

/// The latest templates of a downloader, by what its callers gave, byte by byte. Whoever holds it guards it, and lets
/// what is taken out end outside its lock: hooks of the host's may end with it.
struct RequestTemplates: ~Copyable {
    private static let capacity = 4
    private var entries = ObjectTable<KnownRequest>()
    private var count = 0
    private var oldest = 0
    /// How often what requests have by default has changed.
    private(set) var epoch = 0
    private var isClosed = false

    func find(_ given: UnsafeRawBufferPointer) -> RequestTemplate? {
        for slot in 0..<count {
            if let found = entries.look(at: slot, { $0.isGiven(given) ? $0.template : nil }) ?? nil { return found }
        }
        return nil
    }

    /// `epoch`: as it was before the template was read. Gives the one that it takes the place of.
    mutating func keep(
        _ template: RequestTemplate, for given: UnsafeRawBufferPointer, _ epoch: Int
    ) -> KnownRequest? {
        guard epoch == self.epoch, !isClosed else { return nil }
        let slot = oldest
        oldest = (oldest + 1) % Self.capacity
        count = max(count, slot + 1)
        let displaced = entries.take(slot)
        entries.put(KnownRequest(Array(given), template), at: slot)
        return displaced
    }

    /// Gives them all.
    mutating func forgetAll() -> [KnownRequest] {
        epoch += 1
        let all = (0..<count).compactMap { entries.take($0) }
        count = 0
        oldest = 0
        return all
    }

    /// Keeps none any more: their recipients hold the downloader. Gives those that there were.
    mutating func close() -> [KnownRequest] {
        isClosed = true
        return forgetAll()
    }
}

/// What was given, byte by byte, and what was read.
final class KnownRequest {
    private let given: [UInt8]
    let template: RequestTemplate

    init(_ given: [UInt8], _ template: RequestTemplate) {
        self.given = given
        self.template = template
    }

    func isGiven(_ other: UnsafeRawBufferPointer) -> Bool {
        given.withUnsafeBytes { own in
            guard own.count == other.count, let start = own.baseAddress, let otherStart = other.baseAddress else {
                return false
            }
            return memcmp(start, otherStart, own.count) == 0
        }
    }
}
