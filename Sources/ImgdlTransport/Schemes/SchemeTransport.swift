import ImgdlCore

/// Sends each transfer to who knows its scheme: the loader that the host registered, the network for http and https,
/// this machine for file: and data: where these are allowed.
package final class SchemeTransport: Transport {
    private let network: any Transport
    private let loaders: SchemeLoaders
    private let files: (any SchemeLoader)?
    private let data: (any SchemeLoader)?
    private let reader = LocalReader()
    private let loop: any TransportLoop
    private unowned let events: any TransportEvents
    private let clock: any Clock
    /// Those that do not run on the network.
    private var relayed: [TransferID: RelayedTransfer] = [:]

    /// `network` is this transport's from now on: `close` closes it.
    package init(
        configuration: TransportConfiguration, loaders: SchemeLoaders, network: any Transport,
        loop: any TransportLoop, events: any TransportEvents, clock: any Clock
    ) {
        self.network = network
        self.loaders = loaders
        self.loop = loop
        self.events = events
        self.clock = clock
        files = configuration.allowsFileURLs ? LocalLoader(reader) { FileSource($0) } : nil
        data = configuration.allowsDataURLs ? LocalLoader(reader) { DataSource($0) } : nil
    }

    package func parsePlain(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL? {
        PlainURL.parse(url, lastOrigin: lastOrigin)
    }

    package func parse(_ url: String) throws(Failure) -> ParsedURL {
        try URLParser.parse(
            url,
            URLSchemes(allowsFiles: files != nil, allowsData: data != nil) { [loaders] in loaders.loader(for: $0) != nil
            })
    }

    package var trust: [UInt8] { network.trust }

    package func hasLoader(for url: ParsedURL) -> Bool { loaders.loader(for: url.scheme) != nil }

    package func cookies(for request: TransportRequest) -> [UInt8]? { network.cookies(for: request) }

    package func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        try network.resolveReference(reference, against: base)
    }

    package func start(_ id: TransferID, _ request: __owned TransportRequest) {
        // As nearly all are.
        if request.url.isNetwork, loaders.areNone { return network.start(id, request) }
        let scheme = request.url.scheme
        if let loader = loaders.loader(for: scheme) { return relay(id, request, loader) }
        switch scheme {
        case "http", "https": network.start(id, request)
        case "file": relay(id, request, files)
        case "data": relay(id, request, data)
        // Its loader has been taken out while it waited.
        default: relay(id, request, nil)
        }
    }

    private func relay(_ id: TransferID, _ request: TransportRequest, _ loader: (any SchemeLoader)?) {
        let transfer = RelayedTransfer(
            id, request, waits: loader?.waits ?? false, loop: loop, events: events, clock: clock
        ) { [unowned self] id in relayed[id] = nil }
        relayed[id] = transfer
        transfer.begin(request, with: loader)
    }

    package func cancel(_ id: TransferID) {
        guard let transfer = relayed[id] else { return network.cancel(id) }
        transfer.finish(givingUp: true)
    }

    package func cancelFlooded(_ id: TransferID) {
        if relayed[id] == nil { network.cancelFlooded(id) } else { cancel(id) }
    }

    package func silence(_ id: TransferID) -> Silence { network.silence(id) }

    package func setPaused(_ id: TransferID, _ isPaused: Bool) {
        guard let transfer = relayed[id] else { return network.setPaused(id, isPaused) }
        transfer.setPaused(isPaused)
    }

    package func setPriority(_ id: TransferID, _ priority: Priority) {
        if relayed[id] == nil { network.setPriority(id, priority) }
    }

    package func trim(connections: Bool) { network.trim(connections: connections) }

    package func leaveConnections() { network.leaveConnections() }

    package func close() {
        let givesUp = !loaders.areAbandoned
        for transfer in relayed.values { transfer.finish(givingUp: givesUp) }
        reader.close()
        network.close()
    }

    package func takeLegacy() -> (@Sendable () -> Void)? { network.takeLegacy() }

    package var deadline: Instant? { network.deadline }

    package var isCrowded: Bool { network.isCrowded }

    package func deadlineReached(_ now: Instant) { network.deadlineReached(now) }

    package func reportEnds() { network.reportEnds() }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        network.descriptorReady(descriptor, readable: readable, writable: writable)
    }
}
