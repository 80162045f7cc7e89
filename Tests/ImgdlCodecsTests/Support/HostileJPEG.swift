/// A JPEG written segment by segment: small files that mean much work.
struct HostileJPEG {
    private(set) var bytes: [UInt8] = [0xFF, 0xD8]
    private let width: Int
    private let height: Int

    /// Of one component.
    init(width: Int, height: Int, isProgressive: Bool = true) {
        (self.width, self.height) = (width, height)
        add(0xDB, [0] + [UInt8](repeating: 1, count: 64))
        let size = [height >> 8, height & 255, width >> 8, width & 255].map { UInt8($0) }
        add(isProgressive ? 0xC2 : 0xC0, [8] + size + [1, 1, 0x11, 0])
        // A code of one bit: no difference to the last coefficient.
        addCode(table: 0x00, symbol: 0)
        // Another: as many blocks without coefficients as fourteen bits say, and 2^14.
        addCode(table: 0x10, symbol: 0xE0)
    }

    private var blocks: Int { ((width + 7) / 8) * ((height + 7) / 8) }

    private mutating func add(_ marker: UInt8, _ content: [UInt8]) { bytes += JPEGSegments.segment(marker, content) }

    private mutating func addCode(table: UInt8, symbol: UInt8) {
        add(0xC4, [table, 1] + [UInt8](repeating: 0, count: 15) + [symbol])
    }

    /// Every block's mean, a bit each.
    mutating func addMeans() {
        add(0xDA, [1, 1, 0x00, 0, 0, 0])
        bytes += [UInt8](repeating: 0, count: (blocks + 7) / 8)
    }

    /// Scans that say nothing of all blocks, a hundred bytes each.
    mutating func addEmptyScans(_ count: Int) {
        // Each run: the code, and fourteen bits for how many there are above 2^14, all of them zeros.
        let runs = (blocks + 16_383) / 16_384
        let codes = [UInt8](repeating: 0, count: (15 * runs + 7) / 8)
        for _ in 0..<count {
            add(0xDA, [1, 1, 0x00, 1, 63, 0])
            bytes += codes
        }
    }

    func ended() -> [UInt8] { bytes + [0xFF, 0xD9] }

    /// Ten thousand pixels wide and high, 500 scans: 266 KB.
    static var manyScans: [UInt8] {
        var file = HostileJPEG(width: 10_000, height: 10_000)
        file.addMeans()
        file.addEmptyScans(499)
        return file.ended()
    }
}
