import ImgdlCore
import XCTest

/// What a transport reported of one transfer, and that it kept the order it promises.
struct TransferRecord {
    var connections = 0
    /// Since a pause was over.
    var beginnings = 0
    var head: ResponseHead?
    var body: [UInt8] = []
    var isFinished = false
    var failure: Failure?
    var times = TransferTimes()
    var sent = 0
    var advanced = 0
    /// Whether its body waits for its turn, as it was told.
    var waits: [Bool] = []

    var hasEnded: Bool { isFinished || failure != nil }
    var text: String { String(decoding: body, as: UTF8.self) }
}

/// Listens to all transfers of a test; a test may act inside a report.
final class Recorder: TransportEvents {
    var records: [TransferID: TransferRecord] = [:]
    /// Before something is sent.
    var onLook: () -> Void = {}
    var onConnected: (TransferID) -> Void = { _ in }
    var onHead: (TransferID, ResponseHead) -> BodyDisposition = { _, _ in .receive }
    var onBody: (TransferID, Int) -> Void = { _, _ in }
    var onWaits: (TransferID, Bool) -> Void = { _, _ in }
    var onEnd: (TransferID) -> Void = { _ in }
    /// Bytes that are held, as they were told.
    var held: [TransferID: [Int]] = [:]
    /// Memory of their bodies' codings, as it was told.
    var codings: [TransferID: [Int]] = [:]
    var bodyLimits: [TransferID: Int64] = [:]

    subscript(id: TransferID) -> TransferRecord { records[id] ?? TransferRecord() }

    func lookAtNetwork() { onLook() }

    /// Says so as often as this.
    var unheardPauses = 0
    var isPauseUnheard: Bool {
        guard unheardPauses > 0 else { return false }
        unheardPauses -= 1
        return true
    }

    func transferBeginsAnew(_ id: TransferID) {
        XCTAssertNil(self[id].head)
        XCTAssertFalse(self[id].hasEnded)
        records[id, default: TransferRecord()].connections = 0
        records[id]?.beginnings += 1
    }

    func transferConnected(_ id: TransferID) {
        XCTAssertNil(self[id].head)
        XCTAssertFalse(self[id].hasEnded)
        records[id, default: TransferRecord()].connections += 1
        onConnected(id)
    }

    func transferSent(_ id: TransferID) {
        XCTAssertFalse(self[id].hasEnded)
        records[id, default: TransferRecord()].sent += 1
    }

    func transferAdvanced(_ id: TransferID) {
        XCTAssertNotNil(self[id].head)
        XCTAssertFalse(self[id].hasEnded)
        records[id, default: TransferRecord()].advanced += 1
    }

    func transferReceived(_ id: TransferID, head: ResponseHead) -> BodyDisposition {
        XCTAssertEqual(self[id].connections, 1)
        XCTAssertNil(self[id].head, "one head")
        XCTAssertFalse(self[id].hasEnded)
        records[id, default: TransferRecord()].head = head
        return onHead(id, head)
    }

    func transferReceived(_ id: TransferID, body: UnsafeRawBufferPointer) {
        XCTAssertNotNil(self[id].head)
        XCTAssertFalse(self[id].hasEnded)
        XCTAssertFalse(body.isEmpty)
        records[id, default: TransferRecord()].body += body
        onBody(id, body.count)
    }

    func transferHolds(_ id: TransferID, _ bytes: Int, isEncoded: Bool) {
        XCTAssertFalse(self[id].hasEnded)
        XCTAssertNotEqual(held[id]?.last ?? 0, bytes, "told only where it has changed")
        held[id, default: []].append(bytes)
    }

    func transferHoldsCodings(_ id: TransferID, _ bytes: Int) {
        XCTAssertFalse(self[id].hasEnded)
        XCTAssertNotEqual(codings[id]?.last ?? 0, bytes, "told only where it has changed")
        codings[id, default: []].append(bytes)
    }

    func transferWaits(_ id: TransferID, _ isWaiting: Bool) {
        XCTAssertFalse(self[id].hasEnded)
        XCTAssertNotEqual(self[id].waits.last ?? false, isWaiting, "told only where it has changed")
        records[id, default: TransferRecord()].waits.append(isWaiting)
        onWaits(id, isWaiting)
    }

    func bodyLimit(_ id: TransferID) -> Int64 { bodyLimits[id] ?? .max }

    func transferFinished(_ id: TransferID, _ times: TransferTimes) {
        XCTAssertNotNil(self[id].head)
        XCTAssertFalse(self[id].hasEnded, "one end")
        records[id, default: TransferRecord()].isFinished = true
        records[id]?.times = times
        onEnd(id)
    }

    func transferFailed(_ id: TransferID, _ failure: Failure, _ times: TransferTimes) {
        XCTAssertFalse(self[id].hasEnded, "one end")
        records[id, default: TransferRecord()].failure = failure
        records[id]?.times = times
        onEnd(id)
    }
}
