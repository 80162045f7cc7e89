import CCurl
import Glibc
import ImgdlCore

/// The transport over libcurl's multi interface, on the engine's thread. The engine owns it and outlives it; the loop is
/// kept until the transport goes.
///
/// Only running transfers hold an easy handle; handles are used again. What is asked for inside a report waits until
/// curl has returned, since curl may not be called from its own callbacks: whoever is cancelled hears nothing more from
/// that moment, and its connection closes right after.
package final class CurlTransport: Transport {
    private static let maximumSpareHandles = 32

    private let loop: any TransportLoop
    private unowned let events: any TransportEvents
    private let resolver: any Resolver
    private let options: RequestOptions
    private var multi: CurlMulti?
    private var spareHandles: [EasyHandle] = []
    /// By their number: those that have neither ended nor been cancelled.
    private var transfers: [TransferID: CurlTransfer] = [:]
    private var isReporting = false
    private var deferred: [Deferred] = []

    private enum Deferred {
        case begin(CurlTransfer, addresses: [String])
        case release(CurlTransfer)
        case close
    }

    /// The resolver is the transport's from now on: `close` closes it.
    package init(
        configuration: TransportConfiguration, loop: any TransportLoop, events: any TransportEvents,
        clock: any Clock, resolver: any Resolver
    ) throws(Failure) {
        try CurlGlobal.setUp()
        self.loop = loop
        self.events = events
        self.resolver = resolver
        multi = try CurlMulti(
            loop: loop, clock: clock, maximumIdleConnections: configuration.maximumIdleConnections)
        let handle = try EasyHandle()
        options = RequestOptions(
            trust: TrustAnchors(
                configured: configuration.certificateAuthorities,
                builtIn: ccurl_default_ca_file(handle.easy).map { String(cString: $0) }),
            proxies: ProxyRules(configured: configuration.proxy))
        spareHandles = [handle]
    }

    package func parse(_ url: String) throws(Failure) -> ParsedURL { try Self.parse(url) }

    /// Without a transport: what a hook answers may be parsed before its transfer goes on.
    package static func parse(_ url: String) throws(Failure) -> ParsedURL { try URLParser.parse(url) }

    package func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        try URLParser.resolve(reference, against: base)
    }

    // MARK: Starting

    package func start(_ id: TransferID, _ request: TransportRequest) {
        let transfer = CurlTransfer(id, request, events: events)
        transfers[id] = transfer
        do throws(Failure) {
            try RequestOptions.check(request)
        } catch {
            failLater(transfer, error)
            return
        }
        if options.needsAddresses(request.url) { lookUp(transfer) } else { begin(transfer, addresses: []) }
    }

    private func lookUp(_ transfer: CurlTransfer) {
        let road = WayBack(transport: self, loop: loop, transfer: transfer, isStarting: true)
        let starter = pthread_self()
        resolver.resolve(transfer.request.url.host) { result in
            // Known at once: no need to go round through the loop.
            if pthread_equal(pthread_self(), starter) != 0, road.isStarting, case .success(let addresses) = result {
                road.transport?.begin(road.transfer, addresses: addresses)
            } else {
                road.loop?.perform { road.transport?.resolved(road.transfer, result) }
            }
        }
        road.isStarting = false
    }

    private func resolved(_ transfer: CurlTransfer, _ result: Result<[String], Failure>) {
        guard !transfer.isEnded else { return }
        switch result {
        case .success(let addresses): begin(transfer, addresses: addresses)
        case .failure(let failure): fail(transfer, failure)
        }
    }

    private func begin(_ transfer: CurlTransfer, addresses: [String]) {
        guard !isReporting else {
            deferred.append(.begin(transfer, addresses: addresses))
            return
        }
        guard let multi, !transfer.isEnded else { return }
        do throws(Failure) {
            let handle = try takeHandle()
            transfer.handle = handle
            options.apply(transfer.request, addresses: addresses, to: handle)
            if transfer.needsFreshConnection { handle.set(CURLOPT_FRESH_CONNECT, 1) }
            transfer.addresses = addresses
            transfer.installCallbacks(on: handle)
            try handle.check()
            try multi.add(handle)
        } catch {
            release(transfer, isAdded: false)
            failLater(transfer, error)
        }
    }

    private func takeHandle() throws(Failure) -> EasyHandle {
        if let handle = spareHandles.popLast() { return handle }
        return try EasyHandle()
    }

    // MARK: Ending

    package func cancel(_ id: TransferID) {
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        transfer.isEnded = true
        guard transfer.handle != nil else { return }
        transfer.abandon()
        if isReporting { deferred.append(.release(transfer)) } else { release(transfer) }
    }

    package func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    package func setPriority(_ id: TransferID, _ priority: Priority) {}

    package func close() {
        guard !isReporting else {
            for transfer in transfers.values { transfer.isEnded = true }
            deferred.append(.close)
            return
        }
        for transfer in transfers.values {
            transfer.isEnded = true
            release(transfer)
        }
        transfers = [:]
        spareHandles = []
        multi?.close()
        multi = nil
        resolver.close()
    }

    /// Takes the handle off the multi, which closes the connection of an unfinished HTTP/1.1 transfer and resets the
    /// stream of an HTTP/2 one, and keeps it for the next transfer.
    private func release(_ transfer: CurlTransfer, isAdded: Bool = true) {
        guard let handle = transfer.handle else { return }
        transfer.handle = nil
        if isAdded { multi?.remove(handle) }
        if isAdded, transfer.isAbandoned { flushConnection(of: transfer) }
        if handle.reset(), spareHandles.count < Self.maximumSpareHandles { spareHandles.append(handle) }
    }

    /// Those that share its HTTP/2 connection carry its RST_STREAM to the server.
    private func flushConnection(of ended: CurlTransfer) {
        let url = ended.request.url
        guard url.scheme == "https", ended.isConnected else { return }
        for other in transfers.values where other.isConnected && other !== ended {
            if other.request.url.host == url.host, other.request.url.port == url.port { other.handle?.flush() }
        }
    }

    private func failLater(_ transfer: CurlTransfer, _ failure: Failure) {
        let road = WayBack(transport: self, loop: loop, transfer: transfer, isStarting: false)
        loop.perform { road.transport?.fail(road.transfer, failure) }
    }

    private func fail(_ transfer: CurlTransfer, _ failure: Failure) {
        guard !transfer.isEnded else { return }
        transfer.isEnded = true
        transfers[transfer.id] = nil
        events.transferFailed(transfer.id, failure, TransferTimes())
    }

    // MARK: Driving

    package var deadline: Instant? { multi?.deadline }

    package func deadlineReached(_ now: Instant) {
        guard let multi, let deadline = multi.deadline, deadline <= now else { return }
        drive { $0.timeReached() }
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        drive { $0.descriptorReady(descriptor, readable: readable, writable: writable) }
    }

    private func drive(_ step: (CurlMulti) -> Void) {
        guard let multi else { return }
        isReporting = true
        step(multi)
        while let (context, code) = multi.nextDone() {
            let transfer = CurlTransfer.at(context)
            if transfer.beginsAgain(after: code) {
                release(transfer)
                begin(transfer, addresses: transfer.addresses)
                continue
            }
            let failure = transfer.failure(for: code)
            release(transfer)
            guard !transfer.isEnded else { continue }
            transfer.isEnded = true
            transfers[transfer.id] = nil
            if let failure {
                events.transferFailed(transfer.id, failure, TransferTimes())
            } else {
                events.transferFinished(transfer.id, TransferTimes())
            }
        }
        isReporting = false
        performDeferred()
    }

    private func performDeferred() {
        guard !deferred.isEmpty else { return }
        let actions = deferred
        deferred = []
        for action in actions {
            switch action {
            case .begin(let transfer, let addresses): begin(transfer, addresses: addresses)
            case .release(let transfer): release(transfer)
            case .close: close()
            }
        }
    }
}

/// How an answer of another thread finds back. Only the engine's thread takes the transport and the transfer out of it;
/// both references are weak where the engine may have ended meanwhile.
private final class WayBack: @unchecked Sendable {
    weak var transport: CurlTransport?
    weak var loop: (any TransportLoop)?
    let transfer: CurlTransfer
    /// Read and written on the engine's thread only.
    var isStarting: Bool

    init(transport: CurlTransport, loop: any TransportLoop, transfer: CurlTransfer, isStarting: Bool) {
        self.transport = transport
        self.loop = loop
        self.transfer = transfer
        self.isStarting = isStarting
    }
}
