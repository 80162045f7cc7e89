@testable import ImgdlCore

// What doubles of the ports leave out. Only tests have such defaults: what a type of the library forgets does not compile.

extension Transport {
    func trim(connections: Bool) {}
    func reportEnds() {}
    func leaveConnections() {}
    func silence(_ id: TransferID) -> Silence { Silence() }
    var isCrowded: Bool { false }
    var trust: [UInt8] { [] }
    func cookies(for request: TransportRequest) -> [UInt8]? { nil }
    func parsePlain(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL? { nil }
}

extension Clock {
    /// Of a machine that never sleeps.
    func timeWithSleep() -> Int64 { now().nanoseconds }
    /// Of one that counts whole seconds.
    func wallMicroseconds() -> Int64 { wallTime() * 1_000_000 }
}
