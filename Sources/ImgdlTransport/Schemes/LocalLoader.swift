import ImgdlCore
import Synchronization

/// What a URL names on this machine. Used by the reader's thread.
protocol LocalSource: AnyObject, Sendable {
    /// The answer, as a server would give it.
    func open() throws(Failure) -> ResponseHead
    /// The next piece; nil behind the last.
    func read() throws(Failure) -> [UInt8]?
}

extension LocalSource {
    static var pieceLength: Int { 128 * 1024 }

    func head(_ status: Int32, length: Int, type: String? = nil) -> ResponseHead {
        var fields = [HeaderField("Content-Length", "\(length)")]
        if let type { fields.append(HeaderField("Content-Type", type)) }
        return ResponseHead(
            status: status, httpVersion: 0, fields: fields, contentLength: Int64(length), isEncoded: false)
    }
}

/// Loads from local sources, on the reader's thread: one piece at a time, the next when that one has been taken.
final class LocalLoader: SchemeLoader {
    private let reader: LocalReader
    private let makeSource: @Sendable (ParsedURL) -> any LocalSource

    init(_ reader: LocalReader, makeSource: @escaping @Sendable (ParsedURL) -> any LocalSource) {
        self.reader = reader
        self.makeSource = makeSource
    }

    /// Its next piece comes when the one before has been taken.
    var waits: Bool { false }

    func start(_ request: OutgoingRequest, _ receiver: any LoadReceiver) -> LoadControls {
        let reading = LocalReading(makeSource(request.url), method: request.method, reader, receiver)
        reading.schedule { (reading) throws(Failure) in try reading.open() }
        return LoadControls { reading.stop() }
    }
}

private final class LocalReading: Sendable {
    private let source: any LocalSource
    private let method: String
    private let reader: LocalReader
    private let receiver: any LoadReceiver
    private let isStopped = Atomic<Bool>(false)

    init(_ source: any LocalSource, method: String, _ reader: LocalReader, _ receiver: any LoadReceiver) {
        self.source = source
        self.method = method
        self.reader = reader
        self.receiver = receiver
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    func schedule(_ step: @escaping @Sendable (LocalReading) throws(Failure) -> Void) {
        attempt { () throws(Failure) in
            try reader.submit { [self] in
                guard !isStopped.load(ordering: .relaxed) else { return }
                attempt { () throws(Failure) in try step(self) }
            }
        }
    }

    func open() throws(Failure) {
        guard method == "GET" || method == "HEAD" else {
            try receiver.receive(source.head(405, length: 0))
            return try receiver.end(nil)
        }
        try receiver.receive(try source.open())
        if method == "HEAD" { try receiver.end(nil) } else { try read() }
    }

    private func read() throws(Failure) {
        guard let piece = try source.read() else { return try receiver.end(nil) }
        try receiver.receive(piece) { [self] in
            schedule { (reading) throws(Failure) in try reading.read() }
        }
    }

    private func attempt(_ body: () throws(Failure) -> Void) {
        do throws(Failure) { try body() } catch { try? receiver.end(error) }
    }
}
