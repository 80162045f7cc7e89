import CImgdl
import ImgdlTransport

@testable import ImgdlCodecs
@testable import ImgdlCore

/// A line with Range, one with a Content-Range, and one with the length of a body: what is found lies within the body and is
/// what was asked for.
func fuzzRange(_ bytes: UnsafeRawBufferPointer) throws {
    let lines = bytes.split(separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
    guard lines.count == 3, let wanted = ByteRange(lines[0]) else { return }
    let length = (CheckedNumber(digits: lines[2]) ?? 0).clamped(to: 0...StoredResponse.greatestLength)
    try requireAsked(wanted.resolved(length), by: wanted, within: 0..<length, of: length)
    guard let content = ContentRange(lines[1]), let held = content.range else { return }
    let reachesEnd = held.upperBound == content.total
    let found = wanted.resolved(within: held, reachesEnd: reachesEnd)
    guard let found else { return }
    let inBody = found.lowerBound + held.lowerBound..<found.upperBound + held.lowerBound
    try requireAsked(inBody, by: wanted, within: held, of: reachesEnd ? held.upperBound : nil)
}

/// `length`: of the body; nil: it is not known where it ends.
private func requireAsked(
    _ found: Range<Int64>?, by wanted: ByteRange, within held: Range<Int64>, of length: Int64?
) throws {
    guard let found else { return }
    try require(!found.isEmpty && held.lowerBound <= found.lowerBound, "\(found) of \(held)")
    try require(found.upperBound <= held.upperBound, "\(found) of \(held)")
    switch wanted {
    case .from(let first):
        try require(first == CheckedNumber(found.lowerBound) && found.upperBound == length, "\(found), from \(first)")
    case .closed(let first, let last):
        try require(first == CheckedNumber(found.lowerBound), "\(found), from \(first)")
        let isCut = found.upperBound == length && CheckedNumber(found.upperBound - 1) < last
        try require(isCut || CheckedNumber(found.upperBound - 1) == last, "\(found), up to \(last)")
    case .suffix(let count):
        let isAll = found == 0..<(length ?? -1) && CheckedNumber(found.upperBound) < count
        try require(isAll || CheckedNumber(found.upperBound - found.lowerBound) == count, "\(found), the last \(count)")
        try require(found.upperBound == length, "\(found) is not the end")
    }
}

/// Fields of one request, an empty line, those of a response, an empty line, those of another request.
func fuzzVary(_ bytes: UnsafeRawBufferPointer) throws {
    var parts: [[HeaderField]] = [[]]
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
        let text = String(decoding: line, as: UTF8.self)
        if text.isEmpty, parts.count < 3 {
            parts.append([])
        } else if let colon = text.firstIndex(of: ":") {
            parts[parts.count - 1].append(
                HeaderField(String(text[..<colon]), String(text[text.index(after: colon)...])))
        }
    }
    parts += Array(repeating: [], count: 3 - parts.count)
    guard let url = try? CurlTransport.parse("https://a.example/") else { return }
    func request(_ fields: [HeaderField]) -> CacheRequest {
        let sent = TransportRequest(url: url, method: "GET", fields: fields, body: nil, maximumHeaderBytes: 1)
        let context = StoredContext(SecurityContext(sent.manner, cookies: nil), downloader: []) { message in
            ContextDigest(high: UInt64(bitPattern: Int64(message.bytes.hashValue)), low: 0)
        }
        return CacheRequest(method: "GET", fields: fields, mode: .use, context: context)
    }
    func varying(_ request: CacheRequest) -> [VaryingField]? {
        request.context.flatMap { VaryRules.varying(request, $0, parts[1]) }
    }
    let (first, second) = (request(parts[0]), request(parts[2]))
    guard let ours = varying(first), let context = first.context else { return }
    let stored = StoredResponse(
        status: 200, httpVersion: 11, fields: [], requestTime: 0, responseTime: 0, varying: ours, context: context)
    try require(ours.count <= VaryRules.maximumNames, "\(ours.count) names")
    try require(VaryRules.matches(first, stored, isForAll: false), "a request does not match itself")
    guard VaryRules.matches(second, stored, isForAll: true) else { return }
    guard let theirs = varying(second) else { throw Finding("what no request could have asked for answers one") }
    try require(theirs == ours, "\(ours) and \(theirs) match")
}

/// What decides by the numbers of a picture's header before anything is allocated: the last 24 bytes are the options, as
/// large as they come, the rest is the picture.
func fuzzPictureNumbers(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count > 24 else { return }
    let chosen = UnsafeRawBufferPointer(rebasing: bytes.suffix(24))
    let picture = UnsafeRawBufferPointer(rebasing: bytes.dropLast(24))
    func number(_ at: Int) -> UInt64 { UInt64(littleEndian: chosen.loadUnaligned(fromByteOffset: at, as: UInt64.self)) }
    var options = DecodeOptions()
    options.maximumPixels = .max
    options.maximumAnimationPixels = .max
    options.decodesAllFrames = true
    options.pixelFormat = [.rgba8, .rgb8, .rgba16][Int(chosen[0] % 3)]
    options.stretches = chosen[0] & 0x40 != 0
    options.targetWidth = Int(UInt32(truncatingIfNeeded: number(8)))
    options.targetHeight = Int(UInt32(truncatingIfNeeded: number(8) >> 32))
    options.maximumOutputBytes = chosen[0] & 0x80 != 0 ? number(16) : nil
    options.maximumMemoryBytes = chosen[0] & 0x10 != 0 ? nil : number(16)
    options.maximumFrames = .max
    var probe = HeaderProbe()
    let size = probe.feed(picture)
    let estimate = MemoryRules.canvas(size, options)
    try require((0...1 << 47).contains(estimate), "\(estimate) bytes")
    if case .known(let width, let height, _, _) = size {
        let frames = Int(UInt32(truncatingIfNeeded: number(0)))
        try? options.checkSize(width: width, height: height)
        try? options.checkFrame(number: frames, width: width, height: height)
        for orientation in [Orientation.upright, .turnedRight] {
            let layout = CanvasLayout(width: width, height: height, orientation: orientation, frames: frames, options)
            try require(
                (1...width).contains(layout.storedWidth) && (1...height).contains(layout.storedHeight),
                "\(width) × \(height) becomes \(layout)")
            try? options.checkMemory(canvas: layout, count: frames, codec: CheckedNumber(width) * CheckedNumber(height))
        }
    }
    try decode(picture, options, hasSide: chosen[0] & 0x20 != 0)
}

/// Through the whole library, with no limit but on memory: so much that a run takes milliseconds. With `hasSide` rows may be
/// as long as a format can say.
private func decode(_ picture: UnsafeRawBufferPointer, _ chosen: DecodeOptions, hasSide: Bool) throws {
    var options = imgdl_decode_options()
    imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
    options.max_pixels = .max
    options.max_animation_pixels = .max
    options.max_memory_bytes = 1 << 20
    options.max_frames = .max
    options.max_side = hasSide ? .max : 0
    options.target_width = UInt32(chosen.targetWidth)
    options.target_height = UInt32(chosen.targetHeight)
    var image: OpaquePointer?
    let code = imgdl_decode(picture.baseAddress, picture.count, &options, &image)
    defer { imgdl_image_release(image) }
    try require((code == 0) == (image != nil), "\(code), and a picture: \(image != nil)")
    guard code == 0 else { return }
    let pixels = UInt64(imgdl_image_width(image)) * UInt64(imgdl_image_height(image))
    try require(pixels * 4 <= options.max_memory_bytes, "\(pixels) pixels in \(options.max_memory_bytes) bytes")
}
