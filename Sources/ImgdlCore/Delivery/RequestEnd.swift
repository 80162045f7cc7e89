/// The end of one accepted request, for whoever owes it: its terminal, told once, and then its destructor. It is moved from
/// owner to owner and used up where it is told. It cannot be copied: the compiler asks each owner where it went.
///
/// One at a time has it (docs/architecture.md tells which event moves it):
/// - its batch, while it is held back: the batch submits it, or has the engine end it;
/// - the mailbox, until the engine has taken its message: it refuses what comes once it is shut down, and what it
///   has left when it closes the engine ends in its last turn;
/// - the engine, while it has a slot in the rules, which end whatever they have: the queue at `cancelAll` and shutdown, what
///   a hook, the cache, the transport or a decoder answers for when that answers, is cancelled, or is past its time;
/// - its executor, as a `Terminal`, from `post` until that has been told; one that is released discards it.
struct RequestEnd: ~Copyable {
    /// Held by it.
    let subscription: Subscription
    private let obligation: Obligation

    init(_ subscription: Subscription, _ obligation: consuming Obligation) {
        self.subscription = subscription
        self.obligation = obligation
    }

    /// To its executor, or, where nobody listens, at once.
    consuming func post(_ result: DownloadResult) { subscription.post(Terminal(result, obligation)) }

    /// One that the engine never had.
    consuming func post(_ failure: Failure?) {
        let message = failure.map { subscription.message(of: $0) } ?? ""
        post(DownloadResult(failure: failure, message: message))
    }
}

/// The last event of a request. It goes with its subscription and may lie down in that, and so does not hold it.
package struct Terminal: ~Copyable {
    let result: DownloadResult
    let obligation: Obligation

    init(_ result: DownloadResult, _ obligation: consuming Obligation) {
        self.result = result
        self.obligation = obligation
    }
}
