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

    /// The same but for the priority.
    package func with(_ priority: Priority) -> RequestTemplate {
        var options = options
        options.wrappedValue.priority = priority
        return RequestTemplate(options: options, profile: profile, recipient: recipient)
    }
}

/// The latest templates of a downloader, by what its callers gave, byte by byte. Whoever holds it guards it.
struct RequestTemplates {
    private static let capacity = 4
    private var entries: [(given: [UInt8], template: RequestTemplate)] = []
    private var oldest = 0
    /// How often what requests have by default has changed.
    private(set) var epoch = 0
    private var isClosed = false

    func find(_ given: UnsafeRawBufferPointer) -> RequestTemplate? {
        for index in entries.indices where entries[index].given.withUnsafeBytes({ Self.isEqual($0, given) }) {
            return entries[index].template
        }
        return nil
    }

    /// `epoch`: as it was before the template was read.
    mutating func keep(_ template: RequestTemplate, for given: UnsafeRawBufferPointer, _ epoch: Int) {
        guard epoch == self.epoch, !isClosed else { return }
        if entries.count < Self.capacity {
            entries.append((Array(given), template))
        } else {
            entries[oldest] = (Array(given), template)
            oldest = (oldest + 1) % Self.capacity
        }
    }

    mutating func forgetAll() {
        epoch += 1
        entries = []
        oldest = 0
    }

    /// Keeps none any more: their recipients hold the downloader.
    mutating func close() {
        forgetAll()
        isClosed = true
    }

    private static func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count, let start = left.baseAddress, let other = right.baseAddress else {
            return false
        }
        return memcmp(start, other, left.count) == 0
    }
}
