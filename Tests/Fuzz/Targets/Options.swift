import CImgdl

/// What the last bytes of an input choose. Zeros are the defaults, and every picture may be salvaged.
struct FuzzedOptions {
    static let length = 16

    /// Without limits and an allocator.
    var plain = imgdl_decode_options()
    /// All of them; `host` has to live as long as what is decoded with them.
    private(set) var all = imgdl_decode_options()
    /// nil: the library's own memory.
    let host: FuzzedMemory?
    let showsPartials: Bool
    /// How the input is cut into pieces.
    let seed: UInt32

    /// nil: there are not as many bytes. Gives the others, too.
    init?(_ input: UnsafeRawBufferPointer, _ rest: inout UnsafeRawBufferPointer) {
        guard input.count > Self.length else { return nil }
        rest = UnsafeRawBufferPointer(rebasing: input.dropLast(Self.length))
        let limits = Array(input.suffix(Self.length).prefix(8))
        let usual = Array(input.suffix(8))

        imgdl_decode_options_init(&plain, MemoryLayout<imgdl_decode_options>.stride)
        plain.flags = UInt32(usual[0]) & 0x5F | UInt32(IMGDL_DECODE_SALVAGE)
        plain.pixel_format = UInt32(usual[1] % 7)
        plain.format_hint = UInt32(usual[1] / 7 % 5)
        plain.max_pixels = fuzzedPixels
        plain.target_width = UInt32(usual[2])
        plain.target_height = UInt32(usual[3])
        plain.max_frames = usual[4] < 2 ? 50 : UInt32(usual[4] / 2)
        if usual[0] & 0x20 != 0 {
            plain.flags |= UInt32(IMGDL_DECODE_SCALE_DOWN)
            plain.max_output_bytes = 1 + UInt64(usual[2]) << 8
        }
        showsPartials = usual[4] & 1 != 0
        seed = UInt32(usual[5]) | UInt32(usual[6]) << 8 | UInt32(usual[7]) << 16
        plain.colour = UInt32(limits[0] & 1)
        plain.good_enough_scan = UInt32(limits[0] >> 1 & 0xF)

        all = plain
        host = limits[1] == 0 ? nil : FuzzedMemory(shape: limits[1], fault: limits[2])
        host?.lend(to: &all)
        all.max_side = UInt32(limits[3]) * 4
        all.max_scans = UInt32(limits[4])
        all.max_animation_pixels = UInt64(limits[5]) << 8
        all.max_metadata_bytes = UInt64(limits[6]) << 4
        all.max_memory_bytes = UInt64(limits[7]) << 12
    }

    /// 2302 to 2309 without the time.
    func isLimit(_ code: imgdl_status) -> Bool {
        (IMGDL_ERROR_PIXEL_LIMIT...IMGDL_ERROR_MEMORY_LIMIT).contains(Int(code))
    }
}

/// A host's memory for canvases: rows with padding between them, beginning at any byte, and none after a while.
final class FuzzedMemory {
    private static let untouched: UInt8 = 0xA5

    private let padding: Int
    private let offset: Int
    /// Of which call something is wrong; 0: of none.
    private let faultyCall: Int
    private let isStrideFaulty: Bool
    private var calls = 0
    private var canvases: [UnsafeMutableRawPointer: (width: Int, stride: Int, height: Int)] = [:]
    private var isPaddingWritten = false

    /// A canvas was refused, or had a stride that is too small.
    private(set) var wasFaulty = false

    init(shape: UInt8, fault: UInt8) {
        padding = Int(shape & 0x1F)
        offset = Int(shape >> 5)
        faultyCall = Int(fault & 0x7F)
        isStrideFaulty = fault & 0x80 != 0
    }

    func lend(to options: inout imgdl_decode_options) {
        options.allocator_user_data = Unmanaged.passUnretained(self).toOpaque()
        options.allocate = { width, height, bytesPerPixel, stride, memory in
            guard let stride, let memory else { return nil }
            return Unmanaged<FuzzedMemory>.fromOpaque(memory).takeUnretainedValue()
                .allocate(Int(width) * Int(bytesPerPixel), Int(height), &stride.pointee)
        }
        options.deallocate = { canvas, memory in
            guard let canvas, let memory else { return }
            Unmanaged<FuzzedMemory>.fromOpaque(memory).takeUnretainedValue().deallocate(canvas)
        }
    }

    /// To be asked when no image is left.
    func check() throws {
        try require(canvases.isEmpty, "\(canvases.count) canvases were not given back")
        try require(!isPaddingWritten, "something was written behind a row")
    }

    private func allocate(_ width: Int, _ height: Int, _ stride: inout Int) -> UnsafeMutableRawPointer? {
        calls += 1
        if calls == faultyCall {
            wasFaulty = true
            guard isStrideFaulty else { return nil }
            stride = width - 1
        } else {
            stride += padding
        }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: offset + max(1, stride * height), alignment: 1)
        memory.initializeMemory(as: UInt8.self, repeating: Self.untouched, count: offset + stride * height)
        canvases[memory + offset] = (width, stride, height)
        return memory + offset
    }

    private func deallocate(_ canvas: UnsafeMutableRawPointer) {
        guard let (width, stride, height) = canvases.removeValue(forKey: canvas) else {
            fatalError("memory that is not the host's was given back to it")
        }
        if stride > width {
            for row in 0..<height {
                let behind = UnsafeRawBufferPointer(start: canvas + row * stride + width, count: stride - width)
                if !behind.allSatisfy({ $0 == Self.untouched }) { isPaddingWritten = true }
            }
        }
        (canvas - offset).deallocate()
    }
}
