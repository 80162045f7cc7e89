import ImgdlCore

/// The header that a server may send on one exchange: its final header, interim ones (1xx), challenges and trailers
/// together. libcurl keeps all of it for as long as the exchange runs.
struct HeaderBudget {
    /// Far more than any server has reason to send; what is done with fields may take time for each pair of them.
    static let maximumFields = Limits.headerFields
    /// Status lines: interim responses have one each.
    static let maximumResponses = 1_000
    /// With the line's end. The most that all versions of libcurl take: of their 100 KiB one byte is for a zero.
    static let maximumFieldBytes = (100 << 10) - 1

    private let maximumBytes: Int
    private(set) var bytes = 0
    private var fields = 0
    private var responses = 0
    /// Of the last field, with its folded lines.
    private var fieldBytes = 0

    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// What a line belongs to, as a message names it.
    enum Part: String {
        case header = "the response's header"
        case trailers = "the response's trailers"
        case interim = "the response's interim responses"
        case tunnel = "the proxy's answer to CONNECT"
    }

    /// For one line, with its line end. `last`: the name of the field before it. Throws `headerLimit`.
    mutating func take(
        _ line: UnsafeRawBufferPointer, of part: Part = .header, behind last: String? = nil
    ) throws(Failure) {
        bytes += line.count
        guard bytes <= maximumBytes else {
            throw Self.tooMuch(part, maximumBytes)
        }
        guard let first = line.first, first != 0x0D, first != 0x0A else { return }
        if first == 0x20 || first == 0x09 {
            fieldBytes += line.count
        } else {
            fieldBytes = line.count
            if ResponseHeadParser.isStatusLine(line) { responses += 1 } else { fields += 1 }
        }
        guard fieldBytes <= Self.maximumFieldBytes else {
            let isFolded = first == 0x20 || first == 0x09
            let name = (isFolded ? last : Self.name(line)).map { " “\(Self.shown($0))”" } ?? ""
            throw Self.refusal(part, "the field\(name) has more than \(Self.maximumFieldBytes) bytes")
        }
        guard fields <= Self.maximumFields else {
            throw Self.refusal(part, "more than \(Self.maximumFields) fields in all")
        }
        guard responses <= Self.maximumResponses else {
            throw Self.refusal(part, "more than \(Self.maximumResponses) responses in one exchange")
        }
    }

    static func tooMuch(_ part: Part, _ maximumBytes: Int) -> Failure {
        refusal(part, "more than \(maximumBytes) bytes of header, interim responses and trailers together")
    }

    /// For a line that libcurl gave up before its end: nobody has seen it, nor its name. `last`: the name of the field
    /// before it; `isFirst`: nothing has come before.
    static func unseenLine(
        _ part: Part, maximumBytes: Int, behind last: String? = nil, isFirst: Bool = false
    ) -> Failure {
        let place =
            last.map { ", behind the field “\(shown($0))”" }
            ?? (isFirst ? ", the first of all" : part == .header ? ", that of its first field" : "")
        return refusal(part, "a line of more than \(maximumBytes) bytes\(place)")
    }

    /// For fields of HTTP/2 that a library has refused. `isShared`: they may be those of another response on the connection.
    static func unseenHeader(_ part: Part, _ cause: String, isShared: Bool) -> Failure {
        guard isShared else { return refusal(part, cause) }
        return Failure(.headerLimit, "a response's header on this connection went over a limit: \(cause)")
    }

    private static func refusal(_ part: Part, _ cause: String) -> Failure {
        Failure(.headerLimit, "\(part.rawValue) went over a limit: \(cause)")
    }

    private static func name(_ line: UnsafeRawBufferPointer) -> String? {
        line.firstIndex(of: UInt8(ascii: ":")).map {
            HeaderSection.text(UnsafeRawBufferPointer(rebasing: line[..<$0]))
        }
    }

    private static func shown(_ name: String) -> String {
        PrintableText.escaped(PrintableText.shortened(name, to: 40))
    }
}
