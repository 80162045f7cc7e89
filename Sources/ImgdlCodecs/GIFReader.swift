import ImgdlCore

/// Walks over the blocks of a GIF as they arrive. Nothing but small blocks is kept; no byte is looked at twice.
struct GIFReader {
    /// What comes next in the file.
    enum Event {
        case screen(width: Int, height: Int)
        case frame(GIFFrame)
        /// A part of the frame's LZW data, valid until the next call.
        case data(UnsafeRawBufferPointer)
        case frameEnd
        case trailer
    }

    private enum State {
        case screen, block, extensionLabel, extensionSize, imageDescriptor, codeSize, dataSize, end
        case extensionData(Int)
        case dropped(Int)
        case globalPalette(Int)
        case localPalette(Int)
        case data(remaining: Int)
    }

    private var state = State.screen
    private let held = ByteBuffer()
    private var label: UInt8 = 0
    /// Sub-blocks of this extension so far, and whether it is the one that counts loops.
    private var blocks = 0
    private var isLoopExtension = false

    private var globalPalette: [UInt32] = []
    private var frame = GIFFrame()
    private var control = GIFFrame.Control()
    /// Repetitions as the file counts them, behind the first play; 0: for ever; nil: no such block so far.
    private(set) var repetitions: Int?
    /// Between blocks, where there is nothing to be.
    private(set) var hasStrayZeros = false
    /// A block has said how the next frame is to be shown.
    private var expectsFrame = false
    private let isBGRA: Bool
    private static let control: UInt8 = 0xF9

    /// No frame has begun whose data has not.
    var isBehindFrames: Bool {
        switch state {
        case .screen, .globalPalette, .imageDescriptor, .localPalette, .codeSize: false
        case .extensionSize, .extensionData, .dropped: !expectsFrame && label != Self.control
        default: !expectsFrame
        }
    }

    init(isBGRA: Bool) { self.isBGRA = isBGRA }

    mutating func next(_ rest: inout UnsafeRawBufferPointer) throws(Failure) -> Event? {
        while !rest.isEmpty {
            switch state {
            case .screen:
                guard let bytes = try hold(&rest, 13) else { return nil }
                let flags = bytes[10]
                state = flags & 0x80 != 0 ? .globalPalette(3 << (Int(flags & 7) + 1)) : .block
                return .screen(width: Self.number(bytes, 6), height: Self.number(bytes, 8))
            case .globalPalette(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                globalPalette = palette(bytes)
                state = .block
            case .block:
                guard let byte = Self.byte(&rest) else { return nil }
                switch byte {
                // Some encoders end what has ended.
                case 0: hasStrayZeros = true
                case 0x21: state = .extensionLabel
                case 0x2C: state = .imageDescriptor
                case 0x3B:
                    state = .end
                    return .trailer
                default: throw Failure(.badImageData, "the GIF has a block of an unknown kind, \(byte)")
                }
            case .extensionLabel:
                guard let byte = Self.byte(&rest) else { return nil }
                (label, blocks, isLoopExtension) = (byte, 0, false)
                state = .extensionSize
            case .extensionSize:
                guard let size = Self.byte(&rest) else { return nil }
                if size == 0 {
                    state = .block
                } else {
                    state = isRead ? .extensionData(Int(size)) : .dropped(Int(size))
                }
            case .extensionData(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                readExtension(bytes)
                blocks += 1
                state = .extensionSize
            case .dropped(let remaining):
                let taken = Self.take(&rest, remaining)
                state = taken.count == remaining ? .extensionSize : .dropped(remaining - taken.count)
            case .imageDescriptor:
                guard let bytes = try hold(&rest, 9) else { return nil }
                frame = GIFFrame(bytes, control)
                control = GIFFrame.Control()
                expectsFrame = false
                let flags = bytes[8]
                frame.palette = globalPalette
                state = flags & 0x80 != 0 ? .localPalette(3 << (Int(flags & 7) + 1)) : .codeSize
            case .localPalette(let size):
                guard let bytes = try hold(&rest, size) else { return nil }
                frame.palette = palette(bytes)
                state = .codeSize
            case .codeSize:
                guard let size = Self.byte(&rest) else { return nil }
                guard (1...8).contains(size) else {
                    throw Failure(.badImageData, "the GIF has LZW codes for \(size) bits; 1 to 8 are possible")
                }
                frame.codeSize = Int(size)
                frame.completePalette()
                state = .dataSize
                return .frame(frame)
            case .dataSize:
                guard let size = Self.byte(&rest) else { return nil }
                state = size == 0 ? .block : .data(remaining: Int(size))
                if size == 0 { return .frameEnd }
            case .data(let remaining):
                let taken = Self.take(&rest, remaining)
                state = taken.count == remaining ? .dataSize : .data(remaining: remaining - taken.count)
                return .data(taken)
            case .end:
                return nil
            }
        }
        return nil
    }

    /// Comments, plain text and what other programs add is passed over.
    private var isRead: Bool {
        switch label {
        case 0xF9: blocks == 0
        case 0xFF: blocks == 0 || isLoopExtension
        default: false
        }
    }

    private mutating func readExtension(_ bytes: UnsafeRawBufferPointer) {
        switch (label, blocks) {
        case (Self.control, _) where bytes.count >= 4:
            expectsFrame = true
            control = GIFFrame.Control(bytes)
        case (0xFF, 0):
            let name = String(decoding: bytes, as: UTF8.self)
            isLoopExtension = name == "NETSCAPE2.0" || name == "ANIMEXTS1.0"
        case (0xFF, _) where bytes.count >= 3 && bytes[0] & 7 == 1 && repetitions == nil:
            repetitions = Self.number(bytes, 1)
        default:
            break
        }
    }

    /// Colours as they lie in memory, opaque.
    private func palette(_ bytes: UnsafeRawBufferPointer) -> [UInt32] {
        let (red, blue): (UInt32, UInt32) = isBGRA ? (16, 0) : (0, 16)
        return stride(from: 0, to: bytes.count, by: 3).map { at in
            let color = UInt32(bytes[at]) << red | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2]) << blue
            return (color | 0xFF00_0000).littleEndian
        }
    }

    // MARK: Bytes

    /// That many bytes, valid until the next call; nil until they are there.
    private func hold(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) throws(Failure) -> UnsafeRawBufferPointer? {
        if held.isEmpty, rest.count >= wanted { return Self.take(&rest, wanted) }
        try held.append(Self.take(&rest, wanted - held.count))
        guard held.count == wanted else { return nil }
        defer { held.removeAll() }
        return held.bytes
    }

    private static func byte(_ rest: inout UnsafeRawBufferPointer) -> UInt8? {
        guard let byte = rest.first else { return nil }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
        return byte
    }

    private static func take(_ rest: inout UnsafeRawBufferPointer, _ wanted: Int) -> UnsafeRawBufferPointer {
        let count = min(wanted, rest.count)
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
        return UnsafeRawBufferPointer(rebasing: rest[..<count])
    }

    /// Two bytes, which are there: sums and products of two such numbers have room.
    static func number(_ bytes: UnsafeRawBufferPointer, _ at: CheckedNumber) -> Int {
        CheckedNumber(littleEndian: bytes, at: at, count: 2)?.count(upTo: Int(UInt16.max)) ?? 0
    }
}

/// A frame's descriptor, with the control block ahead of it.
struct GIFFrame {
    struct Control {
        var disposal = FrameCanvas.Disposal.none
        var milliseconds = 0
        var transparentIndex: Int?

        init() {}

        init(_ bytes: UnsafeRawBufferPointer) {
            switch bytes[0] >> 2 & 7 {
            case 2: disposal = .background
            case 3: disposal = .previous
            default: disposal = .none
            }
            milliseconds = 10 * GIFReader.number(bytes, 1)
            if bytes[0] & 1 != 0 { transparentIndex = Int(bytes[3]) }
        }
    }

    var rectangle = PixelRectangle(x: 0, y: 0, width: 0, height: 0)
    var isInterlaced = false
    var control = Control()
    /// Pixels as they lie in memory; 0 is transparent.
    var palette: [UInt32] = []
    private(set) var isOpaque = false
    var codeSize = 0

    init() {}

    init(_ bytes: UnsafeRawBufferPointer, _ control: Control) {
        rectangle = PixelRectangle(
            x: GIFReader.number(bytes, 0), y: GIFReader.number(bytes, 2), width: GIFReader.number(bytes, 4),
            height: GIFReader.number(bytes, 6))
        isInterlaced = bytes[8] & 0x40 != 0
        self.control = control
    }

    /// A colour for every index. One that the file does not have is transparent, as browsers see it.
    mutating func completePalette() {
        palette += Array(repeating: 0, count: max(0, 256 - palette.count))
        if let transparent = control.transparentIndex { palette[transparent] = 0 }
        isOpaque = !palette.contains(0)
    }
}
