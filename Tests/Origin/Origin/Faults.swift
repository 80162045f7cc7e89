/// The faults that a picture's URL asks for. A key that is not known is an error, never ignored: a test with a
/// misspelt fault would pass for the wrong reason. `n` and keys that begin with `_` are free, to tell URLs apart.
struct Faults {
    enum Cut: Equatable { case reset, close, stall, hold }
    enum Length: Equatable {
        case right, lie, none
        case value(String)
    }
    enum Coding: String { case identity, gzip, deflate }
    enum Ranges: String {
        case ok, ignore, wrong
        case refuse = "416"
    }

    struct Unknown: Error { var text: String }

    var status: Int?
    var type: String?
    var headers: Headers = [:]
    var fillerKilobytes = 0
    var etag: String?
    var keepsAlive = true
    var ranges = Ranges.ok

    var isChunked = false
    var lastChunkIsMissing = false
    var length = Length.right
    var shortBy = 0
    var coding = Coding.identity
    var bomb: Int?
    /// Bytes that the coded body lacks at its end, and that follow it: announced as they are sent.
    var codingCut = 0
    var codingTail = 0
    var isEmpty = false

    var delay = Duration.zero
    var firstByteNeverComes = false
    var holdsHead = false
    var gate = "hold"
    var writeSize: Int?
    var pause = Duration.zero
    var bytesPerSecond: Int?
    /// What happens once so many body bytes were sent, in order.
    var cuts: [(offset: Int, cut: Cut)] = []

    init(_ query: Query) throws {
        for item in query.items { try read(item.name, item.value) }
        cuts.sort { $0.offset < $1.offset }
    }

    private mutating func read(_ name: String, _ value: String) throws {
        func unknown() -> Unknown { Unknown(text: "\(name)=\(value)") }
        func number(in range: ClosedRange<Int> = 0...Int.max) throws -> Int {
            guard let number = Int(value), range.contains(number) else { throw unknown() }
            return number
        }
        func flag() throws -> Bool { try number(in: 0...1) == 1 }

        switch name {
        case "status": status = try number(in: 200...999)
        case "type": type = value
        case "header":
            guard let colon = value.firstIndex(of: ":") else { throw unknown() }
            headers.add(String(value[..<colon]), value[value.index(after: colon)...].trimmed)
        case "headers": fillerKilobytes = try number(in: 0...65536)
        case "etag": etag = value
        case "keepalive": keepsAlive = try flag()
        case "range":
            guard let mode = Ranges(rawValue: value) else { throw unknown() }
            ranges = mode

        case "chunked": isChunked = try flag()
        case "cut_chunked":
            lastChunkIsMissing = try flag()
            isChunked = isChunked || lastChunkIsMissing
        case "length":
            switch value {
            case "lie": length = .lie
            case "none": length = .none
            case "huge": length = .value(String(1 << 50))
            default: length = .value(value)
            }
        case "short_by": shortBy = try number()
        case "gzip": if try flag() { coding = .gzip }
        case "deflate": if try flag() { coding = .deflate }
        case "coding_cut": codingCut = try number()
        case "coding_tail": codingTail = try number(in: 0...(1 << 24))
        case "gzip_bomb": bomb = try number(in: 1...(1 << 34))
        case "empty": isEmpty = try flag()

        case "delay_ms": delay = .milliseconds(try number())
        case "first_byte":
            guard value == "never" else { throw unknown() }
            firstByteNeverComes = true
        case "hold_head": holdsHead = try flag()
        case "gate": gate = value
        case "chunk": writeSize = try number(in: 1...Int.max)
        case "pause_ms": pause = .milliseconds(try number())
        case "drip_ms":
            writeSize = 1
            pause = .milliseconds(try number())
        case "rate": bytesPerSecond = try number(in: 1...Int.max)

        case "reset_after": cuts.append((try number(), .reset))
        case "close_after": cuts.append((try number(), .close))
        case "stall_after": cuts.append((try number(), .stall))
        case "hold_after": cuts.append((try number(), .hold))
        case "n": break
        case _ where name.hasPrefix("_"): break
        default: throw unknown()
        }
    }
}
