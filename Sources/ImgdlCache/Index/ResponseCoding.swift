import ImgdlCore

/// What belongs to a row of the index besides the response. A response is sealed together with it: a flipped bit
/// anywhere in the row shows.
struct RowIdentity {
    var id: EntryID
    var key: String
    var length: Int64
    var checksum: Int64
}

/// A stored response as bytes: numbers in groups of seven bits, texts with their length before them, the checksum of
/// all of it and of the row's other columns at the end.
enum ResponseCoding {
    /// Changes with the format; rows of another are not read.
    private static let format: UInt8 = 1

    private enum Flags {
        static let encoded: Int64 = 1
        static let undecodable: Int64 = 2
        static let overtaken: Int64 = 4
        static let closing: Int64 = 8
    }

    static func encode(_ response: StoredResponse, _ row: RowIdentity) -> [UInt8] {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(1024)
        writer.bytes.append(format)
        writer.number(Int64(response.status))
        writer.number(Int64(response.httpVersion))
        writer.number(response.requestTime)
        writer.number(response.responseTime)
        writer.number(
            (response.wasEncoded ? Flags.encoded : 0) | (response.isUndecodable ? Flags.undecodable : 0)
                | (response.overtakenTime != nil ? Flags.overtaken : 0)
                | (response.bodyEnd == .closing ? Flags.closing : 0))
        for digest in [response.context.trust, response.context.request, response.context.credentials] {
            writer.word(digest.high)
            writer.word(digest.low)
        }
        switch response.extent {
        case .whole: writer.number(0)
        case .headAlone: writer.number(1)
        case .beginning(nil): writer.number(2)
        case .beginning(let total?):
            writer.number(3)
            writer.number(total)
        case .part(let range, let total):
            writer.number(4)
            writer.number(range.lowerBound)
            writer.number(range.upperBound)
            writer.number(total ?? -1)
        }
        writer.number(Int64(response.fields.count))
        for field in response.fields {
            writer.text(field.name)
            writer.text(field.value)
        }
        writer.number(Int64(response.varying.count))
        for field in response.varying {
            writer.text(field.name)
            writer.number(field.value == nil ? 0 : 1)
            if let value = field.value { writer.text(value) }
        }
        // Ahead of what a library takes for fractions that does not know it: it finds them unsound, and the response not.
        if let time = response.overtakenTime { writer.number(time) }
        // At the end, where a library that does not know them does not look.
        if let fractions = response.fractions {
            writer.number(fractions.request)
            writer.number(fractions.response)
        }
        return sealed(writer.bytes, row)
    }

    static func sealed(_ content: [UInt8], _ row: RowIdentity) -> [UInt8] {
        var content = content
        let seal = content.withUnsafeBytes { Self.seal(of: $0, row) }
        withUnsafeBytes(of: seal.littleEndian) { content.append(contentsOf: $0) }
        return content
    }

    /// nil: damaged, of another format, or written by somebody who means harm: the seal is no secret.
    static func decode(_ bytes: UnsafeRawBufferPointer, _ row: RowIdentity) -> StoredResponse? {
        guard bytes.count > 8 else { return nil }
        let content = UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])
        let sealed = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: content.count, as: Int64.self))
        guard content[0] == format, sealed == seal(of: content, row) else { return nil }
        var reader = ByteReader(bytes: content, position: 1)
        guard let status = reader.number(), let version = reader.number(), let requestTime = reader.number(),
            let responseTime = reader.number(), let flags = reader.number(), let context = context(&reader),
            let extent = extent(&reader),
            let status = Int32(exactly: status), let version = Int32(exactly: version)
        else { return nil }
        var response = StoredResponse(
            status: status, httpVersion: version, fields: [], requestTime: requestTime, responseTime: responseTime,
            context: context, wasEncoded: flags & Flags.encoded != 0, bodyLength: row.length, extent: extent)
        response.isUndecodable = flags & Flags.undecodable != 0
        response.bodyEnd = flags & Flags.closing != 0 ? .closing : .whole
        guard let fieldCount = reader.number(), fieldCount <= content.count else { return nil }
        response.fields.reserveCapacity(Int(max(0, fieldCount)))
        for _ in 0..<max(0, fieldCount) {
            guard let name = reader.text(), let value = reader.text() else { return nil }
            response.fields.append(HeaderField(name, value))
        }
        guard let varyingCount = reader.number(), varyingCount <= content.count else { return nil }
        for _ in 0..<max(0, varyingCount) {
            guard let name = reader.text(), let isThere = reader.number() else { return nil }
            var value: String?
            if isThere != 0 {
                value = reader.text()
                if value == nil { return nil }
            }
            response.varying.append(VaryingField(name: name, value: value))
        }
        if flags & Flags.overtaken != 0 {
            guard let time = reader.number() else { return nil }
            response.overtakenTime = time
        }
        if !reader.isAtEnd {
            guard let request = reader.number(), let came = reader.number() else { return nil }
            response.fractions = TimeFractions(request: request, response: came)
        }
        return response.isSound ? response : nil
    }

    private static func context(_ reader: inout ByteReader) -> StoredContext? {
        guard let trust = digest(&reader), let request = digest(&reader), let credentials = digest(&reader) else {
            return nil
        }
        return StoredContext(trust: trust, request: request, credentials: credentials)
    }

    private static func digest(_ reader: inout ByteReader) -> ContextDigest? {
        guard let high = reader.word(), let low = reader.word() else { return nil }
        return ContextDigest(high: high, low: low)
    }

    private static func extent(_ reader: inout ByteReader) -> StoredResponse.Extent? {
        switch reader.number() {
        case 0: .whole
        case 1: .headAlone
        case 2: .beginning(total: nil)
        case 3: reader.number().map { .beginning(total: $0) }
        case 4: part(&reader)
        default: nil
        }
    }

    private static func part(_ reader: inout ByteReader) -> StoredResponse.Extent? {
        guard let start = reader.number(), let end = reader.number(), start >= 0, start < end,
            let total = reader.number()
        else { return nil }
        return .part(start..<end, total: total < 0 ? nil : total)
    }

    private static func seal(of content: UnsafeRawBufferPointer, _ row: RowIdentity) -> Int64 {
        var writer = ByteWriter()
        writer.bytes.reserveCapacity(content.count + row.key.utf8.count + 40)
        writer.bytes.append(contentsOf: content)
        writer.number(row.id.rawValue)
        writer.text(row.key)
        writer.number(row.length)
        writer.number(row.checksum)
        return writer.bytes.withUnsafeBytes { Checksum.of($0) }
    }
}

private struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func number(_ value: Int64) {
        var rest = UInt64(bitPattern: value)
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func word(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func text(_ value: String) {
        number(Int64(value.utf8.count))
        bytes.append(contentsOf: value.utf8)
    }
}

private struct ByteReader {
    let bytes: UnsafeRawBufferPointer
    var position: Int

    var isAtEnd: Bool { position == bytes.count }

    mutating func number() -> Int64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return Int64(bitPattern: value) }
            shift += 7
        }
        return nil
    }

    mutating func word() -> UInt64? {
        guard bytes.count - position >= 8 else { return nil }
        defer { position += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    mutating func text() -> String? {
        guard let count = number(), count >= 0, count <= bytes.count - position else { return nil }
        defer { position += Int(count) }
        return String(
            decoding: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + Int(count))]), as: UTF8.self)
    }
}
