/// Port: who is told of every transfer of a downloader (features N1–N4). Called on the engine's thread; no lock is held.
package protocol TransferObserver: AnyObject, Sendable {
    func observe(_ observation: Observation)
    /// Nothing will be observed any more. Once.
    func close()
}

/// What became of a transfer. One that never left the queue is not observed.
package struct Observation: Sendable {
    /// ABI: IMGDL_OBSERVED_….
    package enum Kind: UInt32, Sendable {
        /// It has left the queue, or tries again.
        case started = 1
        /// The head is there that is no redirect to follow, also one that is then refused.
        case response = 2
        /// It has ended at the network, for whatever reason.
        case stopped = 3
        /// `stopped` was without error.
        case finished = 4
    }

    package let kind: Kind
    package let transfer: TransferID
    package let url: ParsedURL
    package let code: ErrorCode
    /// Of the last response, 0 before one.
    package let status: Int32
    package let subscribers: Int
    /// `stopped` and `finished` tell everything, the others what there is.
    package let metrics: Metrics
}
