/// What a target found: a sentence about which promise was broken. Crashes and memory errors need no words.
package struct Finding: Error {
    package let words: String

    init(_ words: String) { self.words = words }
}

/// One parser or decoder, fed with bytes that somebody made up. libFuzzer calls it through `fuzz_run`, the tests with the
/// inputs that were found before.
package struct Target {
    package let name: String
    package let run: (UnsafeRawBufferPointer) throws -> Void

    package static var all: [Target] {
        [
            Target(name: "decode", run: fuzzDecode), Target(name: "decoder", run: fuzzDecoder),
            Target(name: "gif", run: fuzzGIF), Target(name: "png", run: fuzzPNG), Target(name: "webp", run: fuzzWebP),
            Target(name: "jpeg", run: fuzzJPEG), Target(name: "exif", run: fuzzEXIF),
            Target(name: "probe", run: fuzzProbe),
            Target(name: "colour", run: fuzzColour),
            Target(name: "http-date", run: fuzzHTTPDate), Target(name: "retry-after", run: fuzzRetryAfter),
            Target(name: "content-type", run: fuzzContentType), Target(name: "response-head", run: fuzzResponseHead),
            Target(name: "content-coding", run: fuzzContentCoding),
            Target(name: "cache-control", run: fuzzCacheControl), Target(name: "content-range", run: fuzzContentRange),
            Target(name: "caching", run: fuzzCaching), Target(name: "url", run: fuzzURL),
            Target(name: "data-url", run: fuzzDataURL), Target(name: "range", run: fuzzRange),
            Target(name: "vary", run: fuzzVary), Target(name: "exchanges", run: fuzzExchanges),
            Target(name: "index-row", run: fuzzIndexRow), Target(name: "picture-numbers", run: fuzzPictureNumbers),
            Target(name: "cookies", run: fuzzCookies), Target(name: "set-cookie", run: fuzzSetCookie),
        ]
    }

    package static func named(_ name: String) -> Target? { all.first { $0.name == name } }
}

/// Called by Tests/Fuzz/main.c. A finding ends the process, so that libFuzzer keeps the input.
@_cdecl("fuzz_run")
public func fuzz_run(_ name: UnsafePointer<CChar>, _ bytes: UnsafeRawPointer?, _ length: Int) {
    guard let target = Target.named(String(cString: name)) else { fatalError("no such target") }
    do { try target.run(UnsafeRawBufferPointer(start: bytes, count: length)) } catch { fatalError("\(error)") }
}

func require(_ holds: Bool, _ words: @autoclosure () -> String) throws {
    if !holds { throw Finding(words()) }
}

extension UnsafeRawBufferPointer {
    /// Pieces of sizes that depend on the seed, each in memory of its own that ends where the piece does and is gone
    /// afterwards: whoever reads behind it or keeps it is caught.
    func forEachPiece(seed: UInt32, _ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        var state = seed | 1
        var start = 0
        while start < count {
            state = state &* 1_664_525 &+ 1_013_904_223
            let longest = [1, 3, 16, 200, 1000, 20_000][Int(state >> 28) % 6]
            let length = Swift.min(count - start, 1 + Int(state >> 8) % longest)
            let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 1)
            defer { piece.deallocate() }
            piece.copyMemory(from: UnsafeRawBufferPointer(rebasing: self[start..<start + length]))
            try body(UnsafeRawBufferPointer(piece))
            start += length
        }
    }

    /// So that the same input is always cut in the same way.
    var seed: UInt32 { reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } }

    /// As text, whatever the bytes are.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// Two parts, cut at the first line end.
    var firstLineAndRest: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) {
        let end = firstIndex(of: 0x0A) ?? count
        return (
            UnsafeRawBufferPointer(rebasing: self[..<end]),
            UnsafeRawBufferPointer(rebasing: self[Swift.min(count, end + 1)...])
        )
    }
}
