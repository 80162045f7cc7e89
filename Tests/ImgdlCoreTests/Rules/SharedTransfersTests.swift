import XCTest

@testable import ImgdlCore

final class SharedTransfersTests: XCTestCase {
    /// Slots that come and go, few hashes for many of them, beside a dictionary (features B4, D3).
    func testItFindsWhatADictionaryFinds() {
        for seed in UInt64(0)..<20 {
            var random = SmallGenerator(seed: seed)
            var table = SharedTransfers()
            var slotsByKey: [Int: Int] = [:]
            var keysBySlot: [Int: Int] = [:]
            func hash(_ key: Int) -> Int { seed % 2 == 0 ? key : key % 7 &* 0x9E37_79B9 }
            for _ in 0..<3_000 {
                let key = Int(random.next() % 300)
                let slot = Int(random.next() % 500)
                XCTAssertEqual(table.find(hash(key)) { keysBySlot[$0] == key }, slotsByKey[key])
                if random.next() % 2 == 0, let known = keysBySlot[slot] {
                    table.remove(slot, hash(known))
                    slotsByKey[known] = nil
                    keysBySlot[slot] = nil
                } else if slotsByKey[key] == nil, keysBySlot[slot] == nil {
                    if table.isFull { table.grow { hash(keysBySlot[$0]!) } }
                    table.insert(slot, hash(key))
                    slotsByKey[key] = slot
                    keysBySlot[slot] = key
                } else if keysBySlot[slot] == nil {
                    table.remove(slot, hash(key))
                }
                XCTAssertEqual(table.count, keysBySlot.count)
            }
        }
    }
}
