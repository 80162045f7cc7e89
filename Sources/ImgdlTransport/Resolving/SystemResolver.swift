import ImgdlCore

/// Looks names up as this machine has it done: with c-ares where it says files and name servers, with getaddrinfo where
/// nsswitch.conf asks for more (`NameSources`). Name servers of the configuration's own are asked by c-ares alone.
///
/// Threads: the engine's.
package final class SystemResolver: Resolver {
    private let environment: NameEnvironment
    private let servers: NameServers?
    private let ares: AresResolver
    private let system: ThreadedResolver

    /// `servers`: as `dns_servers` has it; nil for the system's. Throws `invalidArgument` for what is no list of them, and
    /// `internal` when c-ares does not start.
    package init(loop: any TransportLoop, clock: any Clock, servers text: String? = nil) throws(Failure) {
        environment = NameEnvironment { [unowned loop] in loop.now }
        var servers: NameServers?
        if let text { servers = try NameServers(text) }
        self.servers = servers
        ares = try AresResolver(loop: loop, environment: environment, servers: servers)
        system = ThreadedResolver(clock: clock)
    }

    package func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
        if servers == nil, environment.answerer(of: host) == .system {
            return system.resolve(host, completion: completion).map { LookUpID(rawValue: $0.rawValue &* 2 &+ 1) }
        }
        return ares.resolve(host, completion: completion).map { LookUpID(rawValue: $0.rawValue &* 2) }
    }

    package func abandon(_ id: LookUpID) {
        let own = LookUpID(rawValue: id.rawValue / 2)
        if id.rawValue % 2 == 1 { system.abandon(own) } else { ares.abandon(own) }
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
