import Glibc
import ImgdlCore

/// Follows the marker stream of a JPEG (ITU-T T.81 annex B) as it arrives: which scan the bytes belong to, where each one
/// begins and ends, and where the picture ends. No byte is looked at twice. Segments are passed over by their length, so
/// that a thumbnail within one counts for nothing; stuffed bytes, restart markers and fill bytes are none of its ends
/// (features B9, R25).
struct JPEGScanWalker {
    private enum State {
        /// Between segments; what is no 0xFF is passed over, as libjpeg does.
        case betweenSegments
        /// Behind the 0xFF that may begin a marker.
        case marker(inScan: Bool)
        case length(UInt8, high: UInt8?)
        case segment(remaining: Int, isScanHeader: Bool)
        case scan
    }

    private var state = State.betweenSegments
    /// Of the next byte.
    private var offset = 0
    private var markerStart = 0

    /// Scans that have begun, with their marker.
    private(set) var scanCount = 0
    /// Scans that another marker has ended.
    private(set) var wholeScanCount = 0
    /// Offset of the marker that began the last scan.
    private(set) var scanStart = 0
    /// Offset of the marker that ended the last whole scan.
    private(set) var scanEnd = 0
    /// The end marker was there: what follows is not the picture's.
    private(set) var isAtEnd = false

    /// How many of the bytes belong to so many scans, and to the marker of the next, or come ahead of fill bytes within a scan;
    /// all of them while there is none; and how many of those fill bytes follow.
    mutating func walk(_ bytes: UnsafeRawBufferPointer, maximumScans: Int) -> (count: Int, fill: Int) {
        let first = offset
        var position = 0
        defer { offset = first + position }
        while position < bytes.count, !isAtEnd {
            switch state {
            case .betweenSegments:
                position = Self.next(0xFF, bytes, position)
                begin(first + position, inScan: false, isThere: position < bytes.count)
                position += 1
            case .scan:
                position = Self.next(0xFF, bytes, position)
                begin(first + position, inScan: true, isThere: position < bytes.count)
                position += 1
            case .marker(inScan: true) where bytes[position] == 0xFF:
                let count = position
                position = bytes[position...].firstIndex { $0 != 0xFF } ?? bytes.count
                return (count, position - count)
            case .marker(let inScan):
                read(marker: bytes[position], inScan: inScan)
                position += 1
                if scanCount > maximumScans { return (position, 0) }
            case .length(let marker, nil):
                state = .length(marker, high: bytes[position])
                position += 1
            case .length(let marker, let high?):
                let length = CheckedNumber(Int(high) << 8 | Int(bytes[position]))
                let remaining = (length - 2)?.count(upTo: Int(UInt16.max)) ?? 0
                state = .segment(remaining: remaining, isScanHeader: marker == 0xDA)
                position += 1
            case .segment(let remaining, let isScanHeader):
                let passed = min(remaining, bytes.count - position)
                position += passed
                let rest = remaining - passed
                state =
                    rest > 0
                    ? .segment(remaining: rest, isScanHeader: isScanHeader)
                    : isScanHeader ? .scan : .betweenSegments
            }
        }
        position = bytes.count
        return (position, 0)
    }

    private mutating func begin(_ start: Int, inScan: Bool, isThere: Bool) {
        guard isThere else { return }
        markerStart = start
        state = .marker(inScan: inScan)
    }

    private mutating func read(marker: UInt8, inScan: Bool) {
        switch marker {
        // A fill byte: the marker may follow yet.
        case 0xFF: return
        // A stuffed byte; what stands alone; restarts, and a second start.
        case 0x00, 0x01, 0xD0...0xD8: state = inScan ? .scan : .betweenSegments
        default:
            if inScan {
                wholeScanCount += 1
                scanEnd = markerStart
            }
            if marker == 0xD9 {
                isAtEnd = true
            } else {
                if marker == 0xDA {
                    scanCount += 1
                    scanStart = markerStart
                }
                state = .length(marker, high: nil)
            }
        }
    }

    private static func next(_ byte: Int32, _ bytes: UnsafeRawBufferPointer, _ start: Int) -> Int {
        guard let base = bytes.baseAddress, let found = memchr(base + start, byte, bytes.count - start) else {
            return bytes.count
        }
        return UnsafeRawPointer(found) - base
    }
}
