import CZlib

/// Content codings, by zlib.
package enum Deflate {
    static func compress(_ bytes: [UInt8], as coding: Faults.Coding) -> [UInt8] {
        var output: [UInt8] = []
        var stream = Stream(gzip: coding == .gzip)
        stream.write(bytes, flush: Z_FINISH, to: &output)
        stream.end()
        return output
    }

    package static func gzip(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, as: .gzip) }

    /// A thousandth of what it becomes.
    package static func gzipOfZeros(_ count: Int) -> [UInt8] {
        let zeros = [UInt8](repeating: 0, count: 1 << 18)
        var output: [UInt8] = []
        var stream = Stream(gzip: true)
        var rest = count
        while rest > 0 {
            let part = min(rest, zeros.count)
            rest -= part
            stream.write(
                part == zeros.count ? zeros : Array(zeros[..<part]), flush: rest == 0 ? Z_FINISH : Z_NO_FLUSH,
                to: &output)
        }
        stream.end()
        return output
    }

    private struct Stream {
        private var stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

        init(gzip: Bool) {
            stream.initialize(to: z_stream())
            // 15 bits of window; 16 more ask for gzip's wrapping in place of zlib's.
            deflateInit2_(
                stream, 6, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size))
        }

        mutating func write(_ bytes: [UInt8], flush: Int32, to output: inout [UInt8]) {
            var input = bytes
            input.withUnsafeMutableBufferPointer { input in
                stream.pointee.next_in = input.baseAddress
                stream.pointee.avail_in = UInt32(input.count)
                withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 << 10) { part in
                    repeat {
                        stream.pointee.next_out = part.baseAddress
                        stream.pointee.avail_out = UInt32(part.count)
                        _ = deflate(stream, flush)
                        output.append(contentsOf: part[..<(part.count - Int(stream.pointee.avail_out))])
                    } while stream.pointee.avail_out == 0
                }
            }
        }

        mutating func end() {
            deflateEnd(stream)
            stream.deallocate()
        }
    }
}
