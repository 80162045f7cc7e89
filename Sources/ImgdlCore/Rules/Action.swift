/// Names one subscriber between rules and engine: slot and generation.
package typealias SubscriberID = UInt64

/// What the rules want done. The engine performs them in order and decides nothing. What refers to more than a number
/// is indirect: most actions do not, and cost nothing to hand on.
package enum Action: Equatable {
    /// The transfer leaves the queue: send its request.
    case start(TransferID)
    /// The response was a redirect that is followed: send the next hop's request.
    indirect case follow(TransferID, Redirect)
    /// The server wants a credential, and a hook has given one: let go of what came of the body, and send the hop's
    /// request again with it.
    indirect case authenticate(TransferID, Credential)
    /// Look into the cache; answered with `consulted`, soon or later.
    case consult(TransferID, Consultation)
    /// What was consulted about last has to go to the server: send its request, or send it again.
    case send(TransferID)
    /// The response is wanted, or is a redirect that is followed: it may be stored.
    case store(TransferID)
    /// Ask the host's hook; answered with `answered`, inside the call or later.
    indirect case ask(TransferID, Question)
    /// Have the transport go on with less or more hurry than the others: of one that runs.
    case setPriority(TransferID, Priority)
    /// Have it come to a standstill at the transport, or go on.
    case setPaused(TransferID, Bool)
    /// The attempt is over, and there will be another one: let go of its body, its decoders and their images. Steps of
    /// decoders that are under way are not reported.
    case restart(TransferID)
    /// Nobody waits for it any more, or its time is over: end it at the transport.
    case stop(TransferID)
    /// A flood is all that has come of it in its time: the same, with its connection.
    case stopFlooded(TransferID)
    /// It is over: let go of its body, its decoders and its number.
    case forget(TransferID)
    /// So many bytes are counted for one of its decoders, until `memoryReleased` says that nobody holds them any more.
    case reserve(TransferID, variant: Int, bytes: Int64)
    /// So many bytes more are counted for it, since its decoder has said that it needs them.
    case reserveMore(TransferID, variant: Int, bytes: Int64)
    /// Have one of its decoders do something; answered with `decodeStepped`.
    case decode(TransferID, variant: Int, DecodeStep)
    /// The network may be another one: what is sent from now on gets new connections, and names are looked up anew.
    case leaveConnections
    /// Tell one subscriber something, then, once and last, how it ended.
    case emit(SubscriberID, Notice)
    case end(SubscriberID, Outcome)
    /// Tell the downloader's observer, where there is one. `subscribers`: how many the transfer has.
    case observe(TransferID, Milestone, subscribers: Int)
}

/// What an observer is told besides the starts (features N2–N4).
package enum Milestone: Equatable {
    case answered
    /// It has ended at the network: `ok` without error. Before the `end` of those who are left.
    case stopped(ErrorCode)
}

/// What a decoder does in one go on a worker: it takes the bytes that have come since the last time, and then …
package enum DecodeStep: Equatable {
    /// … shows the picture so far, if `showing`.
    case feed(showing: Bool)
    /// … ends: no more bytes will come.
    case finish
    /// … gives what pixels it has: the transfer failed.
    case salvage
}

/// How a step ended.
package enum DecodeVerdict: Equatable {
    case fed
    case finished
    case failed(Failure)
}

package enum Notice: Equatable {
    case started
    case response
    case header(variant: Int)
    /// expected: -1 while unknown.
    case progress(received: Int64, expected: Int64)
    case partial(variant: Int)
}

package enum Outcome: Equatable {
    /// variant: whose image it gets, nil for none.
    case success(variant: Int?)
    /// salvaged: the variant whose pixels come with the failure.
    indirect case failure(Failure, salvaged: Int? = nil)
}

/// Where a redirect leads and with what.
package struct Redirect: Equatable {
    package var url: ParsedURL
    package var method: String
    package var sendsBody: Bool
    /// It is another origin, or another one lies between it and the first: Authorization, Cookie and Host are for the first
    /// one alone, as the caller asked it (features I24).
    package var leavesOrigin: Bool

    package init(url: ParsedURL, method: String, sendsBody: Bool, leavesOrigin: Bool) {
        self.url = url
        self.method = method
        self.sendsBody = sendsBody
        self.leavesOrigin = leavesOrigin
    }
}
