import Synchronization

/// Asking the host's hooks. What they answer comes through the mailbox, inside the call and later: behind all that was asked
/// of the downloader before, such as to pause in the background.
extension Engine {
    func ask(_ id: TransferID, _ question: Question) {
        open(id)
        guard let transfer = transfer(id), let hooks = transfer.request.hooks else { return }
        let pending = PendingReply(id, question.number, mailbox)
        switch question.kind {
        case .request:
            let request = transfer.request
            let outgoing = OutgoingRequest(
                url: request.url, method: request.method, fields: request.fields, body: request.body)
            hooks.modifyRequest(outgoing) { pending.give(.request($0)) }
        case .response:
            if let response = transfer.response { hooks.modifyResponse(response) { pending.give(.response($0)) } }
        case .challenge:
            if let response = transfer.response { hooks.authenticate(response) { pending.give(.credential($0)) } }
        case .redirect(let url):
            if let response = transfer.response { hooks.redirect(response, to: url) { pending.give(.redirect($0)) } }
        case .body:
            if let body = transfer.contiguousBody() {
                hooks.transformBody(body) { pending.give(.body($0)) }
            } else {
                pending.give(.body(.refused(Failure(.outOfMemory, "no memory for the body in one piece"))))
            }
        }
        clock.passes()
    }

    func answered(_ id: TransferID, _ number: UInt64, _ reply: HookReply, _ now: Instant) {
        guard downloads.isAsking(id, number), let transfer = transfer(id) else { return }
        downloads.answered(id, number, answer(reply, id, transfer), now)
    }

    private func answer(_ reply: HookReply, _ id: TransferID, _ transfer: ActiveTransfer) -> Answer {
        switch reply {
        case .request(.refused(let failure)), .response(.refused(let failure)), .body(.refused(let failure)),
            .redirect(.refused(let failure)), .credential(.refused(let failure)):
            return .refused(failure)
        case .request(.replaced(let outgoing)):
            transfer.outgoing = outgoing
            return .request(outgoing)
        case .response(.replaced(let replacement)):
            guard let head = transfer.response?.head.replaced(by: replacement) else { return .unchanged }
            receive(head, of: transfer)
            return .response(head, retryAfter: retryAfter(head))
        case .body(.replaced(let bytes)):
            guard transfer.replaceBody(bytes) else {
                return .refused(Failure(.outOfMemory, "no memory for the body"))
            }
            // What came says nothing of the picture that the hook has made of it.
            downloads.probed(id, bytes.withUnsafeBytes { transfer.probe($0, codec) } ?? .unknown)
            return .body(bytes: Int64(bytes.count))
        case .redirect(.replaced(let url)):
            guard let transport else { return .unchanged }
            let base = transfer.url
            return .redirect(Result { () throws(Failure) in try transport.resolveReference(url, against: base) })
        case .credential(.replaced(let credential)): return .credential(credential)
        case .request(.unchanged), .response(.unchanged), .body(.unchanged), .redirect(.unchanged),
            .credential(.unchanged):
            return .unchanged
        }
    }
}

/// What a hook answered to one of its questions.
enum HookReply: Sendable {
    case request(HookAnswer<OutgoingRequest>)
    case response(HookAnswer<ModifiedResponse>)
    case body(HookAnswer<[UInt8]>)
    case redirect(HookAnswer<String>)
    case credential(HookAnswer<Credential>)
}

/// Where one answer arrives.
private final class PendingReply: Sendable {
    private let id: TransferID
    private let number: UInt64
    private let mailbox: Mailbox
    private let isGiven = Atomic<Bool>(false)

    init(_ id: TransferID, _ number: UInt64, _ mailbox: Mailbox) {
        self.id = id
        self.number = number
        self.mailbox = mailbox
    }

    /// Threads: any. The first answer counts.
    func give(_ reply: HookReply) {
        if !isGiven.exchange(true, ordering: .relaxed) { mailbox.post(.answered(id, number, reply)) }
    }
}
