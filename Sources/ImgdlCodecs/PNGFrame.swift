import CCodecs
import ImgdlCore

/// One frame of an APNG, made into a PNG of its own for libpng: the file's header with another size, the frame's data
/// named image data. Pixels come as stored, alpha straight.
final class PNGFrame {
    /// What stands ahead of the image data: signature, header, and the chunks that say what samples mean.
    private static let sizeOffset = 16

    let pixels: PixelBuffer
    private let session: OpaquePointer
    private let clock: DecodeClock
    private var hasStarted = false

    init(_ setup: ByteBuffer, width: Int, height: Int, format: PixelFormat, _ clock: DecodeClock) throws(Failure) {
        self.clock = clock
        pixels = try PixelBuffer(width: width, height: height, format: format, clock)
        guard let session = codec_png_create(format.isBGRA ? 1 : 0, clock.session) else {
            throw Failure(.outOfMemory, "no memory for a PNG decoder")
        }
        self.session = session
        // The chunks are not as they were when their checksums were made; the data has another, its own.
        codec_png_ignore_checksums(session)
        let copy = ByteBuffer()
        try copy.append(setup.bytes)
        copy.store(UInt32(clamping: width).bigEndian, at: Self.sizeOffset)
        copy.store(UInt32(clamping: height).bigEndian, at: Self.sizeOffset + 4)
        try feed(copy.bytes)
    }

    deinit { codec_png_destroy(session) }

    func beginData(length: Int) throws(Failure) { try feedChunkHead("IDAT", length) }

    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            var used = 0
            let status = codec_png_feed(
                session, rest.baseAddress?.assumingMemoryBound(to: UInt8.self), rest.count, &used)
            guard status != CODEC_LATE else { throw clock.failure }
            guard status != CODEC_FAILED else { throw failure }
            rest = UnsafeRawBufferPointer(rebasing: rest[used...])
            var found = codec_png_header()
            if !hasStarted, codec_png_header_of(session, &found) != 0 {
                hasStarted = true
                let layout = CanvasLayout(storedWidth: pixels.width, storedHeight: pixels.height, orientation: .upright)
                let status = codec_png_start(
                    session, layout.placement(on: pixels, nil, clock), 0, nil, pixels.format == .rgba16 ? 1 : 0)
                guard status != CODEC_FAILED else { throw failure }
            }
        }
    }

    /// Every pixel is there.
    var isWhole: Bool { hasStarted && codec_png_is_whole(session) != 0 && codec_png_is_damaged(session) == 0 }

    func finish() throws(Failure) {
        guard isWhole else { throw failure }
    }

    private func feedChunkHead(_ name: StaticString, _ length: Int) throws(Failure) {
        let head = ByteBuffer()
        let stored = UInt32(clamping: length).bigEndian
        try withUnsafeBytes(of: stored) { (bytes) throws(Failure) in try head.append(bytes) }
        try head.append(UnsafeRawBufferPointer(start: name.utf8Start, count: 4))
        try feed(head.bytes)
    }

    private var failure: Failure {
        let words = codec_png_message(session).map { "libpng: " + String(cString: $0) }
        let code = codec_png_is_out_of_memory(session) != 0 ? ErrorCode.outOfMemory : .badImageData
        return Failure(code, words ?? "a frame of the PNG has less image data than pixels")
    }
}
