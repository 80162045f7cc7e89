import ImgdlCore

/// Looks names up as this machine has it done: with c-ares where it says files and name servers, with getaddrinfo where
/// nsswitch.conf asks for more (`NameSources`). Name servers of the configuration's own are asked by c-ares alone.
///
/// Threads: the engine's.
package final class SystemResolver: Resolver {
    /// nil: c-ares is asked for all names.
    private let environment: NameEnvironment?
    private let ares: AresResolver
    private let system: ThreadedResolver

    /// `servers`: as `dns_servers` has it; nil for the system's. Throws `invalidArgument` for what is no list of them, and
    /// `internal` when c-ares does not start.
    package convenience init(
        loop: any TransportLoop, clock: any Clock, servers text: String? = nil
    ) throws(Failure) {
        let environment = NameEnvironment { [unowned loop] in loop.now }
        var servers: NameServers?
        if let text { servers = try NameServers(text) }
        self.init(
            servers == nil ? environment : nil,
            try AresResolver(loop: loop, environment: environment, servers: servers), ThreadedResolver(clock: clock))
    }

    init(_ environment: NameEnvironment?, _ ares: AresResolver, _ system: ThreadedResolver) {
        self.environment = environment
        self.ares = ares
        self.system = system
    }

    package func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
        // Both count their look-ups from 1.
        guard environment?.answerer(of: host) == .system else {
            return ares.resolve(host, completion: completion).map { LookUpID(rawValue: $0.rawValue &* 2) }
        }
        return system.resolve(host, completion: completion).map { LookUpID(rawValue: $0.rawValue &* 2 &+ 1) }
    }

    package func abandon(_ id: LookUpID) {
        let own = LookUpID(rawValue: id.rawValue / 2)
        if id.rawValue % 2 == 1 { system.abandon(own) } else { ares.abandon(own) }
    }

    package func networkChanged() {
        environment?.forget()
        ares.networkChanged()
        system.networkChanged()
    }

    package func close() {
        ares.close()
        system.close()
    }

    package var deadline: Instant? { ares.deadline }

    package func deadlineReached(_ now: Instant) { ares.deadlineReached(now) }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) -> Bool {
        ares.descriptorReady(descriptor, readable: readable, writable: writable)
    }
}
