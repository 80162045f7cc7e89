import Glibc
import ImgdlCore

/// LZW as GIF has it: codes of growing width, least significant bit first, a code that clears the table, one that ends.
///
/// What a code stands for has been written before: the string of the code ahead of it, and one index more, lie side
/// by side in the output. So the table holds a position and a length for each code, and decoding copies from earlier output.
/// Suspends between any two bytes; no byte is read twice.
final class LZWReader {
    enum Outcome {
        /// Wants more bytes.
        case suspended
        /// All indices are there; what follows does not matter.
        case complete
        case endedEarly
        case impossibleCode
    }

    private static let codes = 4096
    /// In front of the output stand the strings of one index.
    private static let literals = 256
    /// The longest string may be one index short of the end, and copies go eight bytes at a time.
    private static let slack = codes + 16

    /// Of each code: the position of its string, and above bit 32 its length. One entry more than codes is written to.
    private let table = UnsafeMutablePointer<UInt64>.allocate(capacity: codes + 1)
    private var output: UnsafeMutablePointer<UInt8>?
    private var capacity = 0
    private var position = literals
    private var end = literals
    private var copies = false

    private var bits: UInt64 = 0
    private var bitCount = 0
    private var firstWidth = 0
    private var width = 0
    /// The code that the next string will be given.
    private var next = 0
    /// The string ahead and one index more, as the table has it.
    private var last: UInt64 = 0

    deinit {
        table.deallocate()
        free(output)
    }

    /// The indices so far; they stay until `begin`.
    var indices: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: output.map { $0 + Self.literals }, count: min(position, end) - Self.literals)
    }

    /// For `count` indices. Without `copies` the codes are only checked, which costs neither memory nor much time.
    func begin(minimumWidth: Int, count: Int, copies: Bool) throws(Failure) {
        if copies, count > capacity || output == nil {
            free(output)
            // Pages that are never written to cost nothing.
            guard let memory = malloc(Self.literals + count + Self.slack) else {
                (output, capacity) = (nil, 0)
                throw Failure(.outOfMemory, "no memory for a GIF frame of \(count) pixels")
            }
            output = memory.assumingMemoryBound(to: UInt8.self)
            capacity = count
            for index in 0..<Self.literals { output?[index] = UInt8(index) }
        }
        if !copies {
            free(output)
            (output, capacity) = (nil, 0)
        }
        for index in 0..<1 << minimumWidth { table[index] = UInt64(index) | 1 << 32 }
        self.copies = copies
        position = Self.literals
        end = Self.literals + count
        (bits, bitCount) = (0, 0)
        firstWidth = minimumWidth + 1
        width = firstWidth
        next = 1 << minimumWidth + 1
        last = 0
    }

    func feed(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        copies ? run(bytes, copying: true) : run(bytes, copying: false)
    }

    @inline(__always)
    private func run(_ bytes: UnsafeRawBufferPointer, copying: Bool) -> Outcome {
        guard var source = bytes.baseAddress else { return .suspended }
        let sourceEnd = source + bytes.count
        let table = table
        // Only positions are counted while nothing is copied.
        let output = UnsafeMutableRawPointer(self.output ?? UnsafeMutablePointer(bitPattern: 8)!)
        let end = end
        let firstWidth = firstWidth
        let clear = 1 << (firstWidth &- 1)
        var (position, bits, bitCount, width, next, last) = (position, bits, bitCount, width, next, last)
        var mask = 1 &<< width &- 1
        var outcome = Outcome.suspended
        reading: while true {
            if sourceEnd - source >= 8 {
                // Bits above the count are the next bytes' already: to add them again does not change them.
                bits |= UInt64(littleEndian: source.loadUnaligned(as: UInt64.self)) &<< UInt64(bitCount)
                source += (63 &- bitCount) &>> 3
                bitCount |= 56
            } else {
                while bitCount <= 56, source < sourceEnd {
                    bits |= UInt64(source.load(as: UInt8.self)) &<< UInt64(bitCount)
                    source += 1
                    bitCount &+= 8
                }
                if bitCount < width { break }
            }
            while bitCount >= width {
                let code = Int(truncatingIfNeeded: bits) & mask
                bits &>>= UInt64(width)
                bitCount &-= width
                if UInt(bitPattern: code &- clear) < 2 {
                    guard code == clear else {
                        outcome = .endedEarly
                        break reading
                    }
                    width = firstWidth
                    mask = 1 &<< width &- 1
                    // The code behind it has none ahead: it would define the end code, which is not looked up.
                    next = clear &+ 1
                    continue
                }
                guard code <= next else {
                    outcome = .impossibleCode
                    break reading
                }
                table[next] = last
                let string = table[code]
                let length = Int(truncatingIfNeeded: string &>> 32)
                if copying {
                    let from = UnsafeRawPointer(output) + Int(string & 0xFFFF_FFFF)
                    let to = output + position
                    to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
                    var done = 8
                    while done < length {
                        to.storeBytes(
                            of: from.loadUnaligned(fromByteOffset: done, as: UInt64.self), toByteOffset: done,
                            as: UInt64.self)
                        done &+= 8
                    }
                    // The string that is being defined ends with its own beginning.
                    if code == next {
                        to.storeBytes(of: from.load(as: UInt8.self), toByteOffset: length &- 1, as: UInt8.self)
                    }
                }
                last = UInt64(truncatingIfNeeded: position) | UInt64(truncatingIfNeeded: length &+ 1) &<< 32
                position &+= length
                if next < Self.codes {
                    next &+= 1
                    if next > mask, width < 12 {
                        width &+= 1
                        mask = 1 &<< width &- 1
                    }
                }
                if position >= end {
                    outcome = .complete
                    break reading
                }
            }
        }
        (self.position, self.bitCount, self.width, self.next, self.last) = (position, bitCount, width, next, last)
        self.bits = bits & (1 &<< UInt64(bitCount) &- 1)
        return outcome
    }
}
