import ImgdlCore

/// Walks over the chunks of a PNG and passes on those that make pixels.
///
/// libpng keeps a chunk that has not arrived as a whole, copies what it has at every call, and may inflate it: a large
/// text or an unknown chunk costs memory and, in small pieces, the square of its length. So what is not needed never
/// reaches libpng, image data goes through as it comes, and the few others are handed over whole.
struct PNGChunkFilter {
    private enum State {
        case signature
        case head
        case whole(remaining: Int)
        case imageData(remaining: Int)
        case dropped(remaining: Int)
        case end
    }

    /// Chunks come in this order; image data that is interrupted is not taken up again.
    private enum Progress { case nothing, header, imageData, behindImageData }

    private static let signatureLength = 8
    private static let headLength = 8
    private static let checksumLength = 4
    /// No chunk that libpng is shown whole needs to be larger; EXIF may hold a thumbnail.
    private static let longestWhole = 64 * 1024
    private static let longestEXIF = 1024 * 1024

    private var state = State.signature
    private let held = ByteBuffer()
    private var progress = Progress.nothing

    /// The chunk IEND has passed.
    var isAtEnd: Bool { if case .end = state { true } else { false } }

    mutating func feed(
        _ bytes: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            switch state {
            case .signature:
                guard try hold(&rest, Self.signatureLength) else { return }
                try passHeld(pass)
                state = .head
            case .head:
                guard try hold(&rest, Self.headLength) else { return }
                try judgeHead(pass)
            case .whole(let remaining):
                guard try hold(&rest, remaining) else { return }
                let isEnd = name(of: held.bytes) == "IEND"
                try passHeld(pass)
                state = isEnd ? .end : .head
            case .imageData(let remaining):
                let taken = take(&rest, remaining)
                state = taken.count == remaining ? .head : .imageData(remaining: remaining - taken.count)
                try pass(taken)
            case .dropped(let remaining):
                let taken = take(&rest, remaining)
                state = taken.count == remaining ? .head : .dropped(remaining: remaining - taken.count)
            case .end:
                return
            }
        }
    }

    private mutating func judgeHead(_ pass: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        let length = held.bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        let name = name(of: held.bytes)
        guard let name, length <= Int32.max else {
            throw Failure(.badImageData, "the PNG is broken: a chunk has an impossible name or length")
        }
        if progress == .nothing {
            guard name == "IHDR" else {
                throw Failure(.badImageData, "the PNG does not begin with its header, but with a chunk “\(name)”")
            }
            progress = .header
        }
        if name == "IDAT", progress != .behindImageData {
            progress = .imageData
            state = .imageData(remaining: length + Self.checksumLength)
            return try passHeld(pass)
        }
        if progress == .imageData { progress = .behindImageData }
        if isNeeded(name, length) {
            state = .whole(remaining: Self.headLength + length + Self.checksumLength)
            return
        }
        let isCritical = held.bytes[4] & 0x20 == 0
        guard !isCritical || name == "IDAT" || name == "PLTE" else {
            throw Failure(.badImageData, "the PNG needs a chunk that is not known: “\(name)”")
        }
        held.removeAll()
        state = .dropped(remaining: length + Self.checksumLength)
    }

    private func isNeeded(_ name: String, _ length: Int) -> Bool {
        switch name {
        case "IHDR", "PLTE", "tRNS", "IEND": length <= Self.longestWhole
        case "eXIf": length <= Self.longestEXIF
        default: false
        }
    }

    /// nil unless there are four letters.
    private func name(of head: UnsafeRawBufferPointer) -> String? {
        let letters = head.dropFirst(4).prefix(4)
        guard letters.allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) }) else { return nil }
        return String(decoding: letters, as: UTF8.self)
    }

    /// True when as many bytes are held.
    private func hold(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) throws(Failure) -> Bool {
        try held.append(take(&rest, wanted - held.count))
        return held.count >= wanted
    }

    private func take(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) -> UnsafeRawBufferPointer {
        let count = min(wanted, rest.count)
        let taken = UnsafeRawBufferPointer(rebasing: rest[..<count])
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        return taken
    }

    private func passHeld(_ pass: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        try pass(held.bytes)
        held.removeAll()
    }
}
