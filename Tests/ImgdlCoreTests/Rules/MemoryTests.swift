import XCTest

@testable import ImgdlCore

/// Features B20: a budget of bytes for bodies and canvases.
final class MemoryTests: XCTestCase {
    private let picture = PictureSize.known(width: 6_000, height: 4_000, held: 0)
    private let canvas: Int64 = 96_000_000

    private func options(_ change: (inout DecodeOptions) -> Void) -> DecodeOptions {
        var options = DecodeOptions()
        change(&options)
        return options
    }

    /// Without a limit of pixels a header may name more than there is: however many do at once, their sum is a number.
    func testPicturesThatCannotBe() {
        let all = options {
            $0.maximumPixels = .max
            $0.pixelFormat = .rgba16
        }
        var memory = MemoryRules(budget: .max)
        for (width, height) in [(1 << 28, 1 << 28), (1 << 31, 1 << 25), (1 << 32, 1 << 32), (.max, .max), (1, 1 << 56)]
        {
            let canvas = MemoryRules.canvas(.known(width: width, height: height, held: 8), all)
            XCTAssertTrue((0...1 << 47).contains(canvas), "\(width) × \(height)")
            for _ in 0..<10_000 { memory.changeCanvases(canvas) }
            XCTAssertTrue(memory.fits(canvas))
        }
        XCTAssertGreaterThan(memory.inUse, 1 << 60)
    }

    func testACanvasIsThatOfThePictureAsDecoded() {
        XCTAssertEqual(MemoryRules.canvas(picture, DecodeOptions()), canvas)
        XCTAssertEqual(
            MemoryRules.canvas(.known(width: 6_000, height: 4_000, held: 4), DecodeOptions()), 2 * canvas)
        let box = options {
            $0.targetWidth = 600
            $0.targetHeight = 600
        }
        XCTAssertEqual(MemoryRules.canvas(picture, box), 600 * 400 * 4)
        XCTAssertEqual(MemoryRules.canvas(picture, options { $0.targetWidth = 9_000 }), canvas, "never enlarged")
        // 600 wide as stored is 267 high once it is turned: the larger of both.
        XCTAssertEqual(MemoryRules.canvas(picture, options { $0.targetWidth = 600 }), 900 * 600 * 4)
        let exact = options {
            $0.targetWidth = 10
            $0.targetHeight = 20
            $0.stretches = true
        }
        XCTAssertEqual(MemoryRules.canvas(picture, exact), 800)
        XCTAssertEqual(MemoryRules.canvas(picture, options { $0.maximumOutputBytes = 1_000 }), 1_000)
    }

    /// Three samples of two bytes, and two canvases while somebody watches: what a baseline JPEG of three scans took at once,
    /// which counted as one canvas.
    func testPicturesOfSeveralScansCountWithWhatTheirDecodersHold() {
        let scans = PictureSize.known(width: 6_000, height: 4_000, held: 6)
        XCTAssertEqual(MemoryRules.canvas(scans, DecodeOptions()), canvas + canvas * 6 / 4)
        XCTAssertEqual(MemoryRules.canvas(scans, DecodeOptions(), showsParts: true), 2 * canvas + canvas * 6 / 4)
        XCTAssertEqual(MemoryRules.canvas(picture, DecodeOptions(), showsParts: true), canvas, "they share it")
        let small = options { $0.targetWidth = 600 }
        XCTAssertEqual(MemoryRules.canvas(scans, small), 900 * 600 * 4 + canvas * 6 / 4, "all coefficients")
        let impossible = PictureSize.known(width: 6_000, height: 4_000, held: .max)
        XCTAssertEqual(MemoryRules.canvas(impossible, DecodeOptions()), 3 * canvas)
    }

    /// Of a picture whose rows are final as they come, looks share the canvas; and what is scaled takes as much of the codec.
    func testWhatACodecTakesBesideTheCanvasCounts() {
        let lossless = PictureSize.known(width: 6_000, height: 4_000, held: 0, beside: 4)
        XCTAssertEqual(MemoryRules.canvas(lossless, DecodeOptions()), 2 * canvas)
        XCTAssertEqual(MemoryRules.canvas(lossless, DecodeOptions(), showsParts: true), 2 * canvas)
        XCTAssertEqual(MemoryRules.canvas(lossless, options { $0.targetWidth = 600 }), 900 * 600 * 4 + canvas)
        let impossible = PictureSize.known(width: 6_000, height: 4_000, held: .max, beside: .max)
        XCTAssertEqual(MemoryRules.canvas(impossible, DecodeOptions()), 5 * canvas)
    }

    func testWhatIsRefusedOrUnknownReservesNothing() {
        XCTAssertEqual(MemoryRules.canvas(.unknown, DecodeOptions()), 0)
        XCTAssertEqual(MemoryRules.canvas(.undecided, DecodeOptions()), 0)
        XCTAssertEqual(MemoryRules.canvas(picture, options { $0.maximumPixels = 23_999_999 }), 0)
        for (width, height) in [(Int.max, Int.max), (0, 5), (-1, 5), (Int.max, 1)] {
            var everything = DecodeOptions()
            everything.maximumPixels = .max
            let size = PictureSize.known(width: width, height: height, held: 8)
            XCTAssertEqual(MemoryRules.canvas(size, everything), 0)
        }
    }

    /// 100 concurrent 24-megapixel JPEGs: bodies and canvases stay within the budget, and all of them end.
    func testAHundredLargePicturesStayWithinTheBudget() { playAHundredLargePictures(.image) { _ in 1 } }

    /// Some are whole long before others, and wait for canvases that those have.
    func testSoTheyDoWhereSomeAreWatchedAndComeSlowly() {
        playAHundredLargePictures(.with(.partial)) { $0 < 9 ? 9 : 1 }
    }

    /// `rounds`: in how many a piece of this one comes.
    private func playAHundredLargePictures(_ options: SubscriberOptions, rounds: (Int) -> Int) {
        let budget: Int64 = 256 << 20
        var play = Play(width: 100) { $0.memoryBudget = budget }
        let chunk = 64 << 10
        let chunks = 128
        let all = (0..<100).map { play.submit("\($0)", options).transfer }
        let numbers = Dictionary(uniqueKeysWithValues: all.enumerated().map { ($1, $0) })
        var received: [TransferID: Int] = [:]
        var paused: Set<TransferID> = []
        var decodes: [TransferID] = []
        var charged: [(id: TransferID, bytes: Int64)] = []
        var (ended, steps, round, peak) = (0, 0, 0, Int64(0))
        func perform() {
            for action in play.downloads.takeActions() {
                switch action {
                case .start(let id): received[id] = -1
                case .setPaused(let id, let isPaused):
                    if isPaused { paused.insert(id) } else { paused.remove(id) }
                case .reserve(let id, _, let bytes): charged.append((id, bytes))
                case .decode(let id, _, _): decodes.append(id)
                case .end(_, let outcome):
                    XCTAssertEqual(outcome, .success(variant: 0))
                    ended += 1
                default: break
                }
            }
        }
        perform()
        while ended < 100, steps < 1_000_000 {
            round += 1
            for (id, chunksDone) in received.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                steps += 1
                guard !paused.contains(id), round % rounds(numbers[id]!) == 0 else { continue }
                if chunksDone < 0 {
                    play.connected(id)
                    play.head(id, length: Int64(chunk * chunks))
                    play.downloads.probed(id, picture)
                    received[id] = 0
                } else if chunksDone < chunks {
                    play.body(id, chunk)
                    received[id] = chunksDone + 1
                } else {
                    received[id] = nil
                    play.finished(id)
                }
                perform()
                // What was on its way, and the body of the one that leads.
                peak = max(peak, play.downloads.memoryInUse)
            }
            if let id = decodes.first {
                decodes.removeFirst()
                let isLast = play.downloads.transfers[id].phase == .decoding
                play.stepped(id, isLast ? .finished : .fed, header: true)
                perform()
            }
            // Terminal callbacks return.
            while let index = charged.firstIndex(where: { play.downloads.request($0.id) == nil }) {
                play.downloads.memoryReleased(charged.remove(at: index).bytes, play.now)
                perform()
            }
        }
        XCTAssertEqual(ended, 100)
        XCTAssertLessThanOrEqual(peak, budget + Int64(100 * chunk + chunk * chunks))
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        XCTAssertGreaterThan(play.downloads.memoryPeak, budget / 2)
        play.expectEmpty()
    }

    /// The cache gives bodies faster than pictures are decoded: those that would only wait for room are not read.
    func testStoredPicturesThatWouldWaitForRoomAreNotRead() {
        let body = 60
        var play = Play(width: 6) {
            $0.memoryBudget = canvas + 100
            $0.maximumConsulting = 4
        }
        play.downloads.hasStore = true
        for number in 0..<100 {
            let url = testURL("https://a.example/\(number)")
            _ = play.submit(TransferRequest(url: url, cacheMode: .use), .image)
        }
        var consultations: [(id: TransferID, number: UInt64)] = []
        var decodes: [TransferID] = []
        var (ended, peak) = (0, Int64(0))
        func look() {
            for action in play.downloads.takeActions() {
                switch action {
                case .consult(let id, let consultation): consultations.append((id, consultation.number))
                case .decode(let id, _, _): decodes.append(id)
                case .end(_, let outcome):
                    XCTAssertEqual(outcome, .success(variant: 0))
                    ended += 1
                default: break
                }
            }
        }
        look()
        while !consultations.isEmpty || !decodes.isEmpty {
            // All that the cache was asked at once has been read when the first of it is looked at.
            peak = max(peak, play.downloads.memoryInUse + Int64(consultations.count * body))
            if !consultations.isEmpty {
                let (id, number) = consultations.removeFirst()
                play.downloads.consulted(id, number, .play, play.now)
                play.head(id, length: Int64(body))
                play.downloads.probed(id, picture)
                play.body(id, body)
                play.finished(id)
            } else {
                play.stepped(decodes.removeFirst(), .finished, header: true)
                look()
                play.downloads.memoryReleased(canvas, play.now)
            }
            look()
        }
        XCTAssertEqual(ended, 100)
        XCTAssertLessThanOrEqual(peak, canvas + 100 + Int64(5 * body))
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.expectEmpty()
    }

    /// One that is too large for the whole budget is decoded alone.
    func testAtLeastOneIsDecoded() {
        var play = Play(width: 2) { $0.memoryBudget = 1_000 }
        let a = play.submit("a", .image)
        let b = play.submit("b", .image)
        for entry in [a, b] {
            play.connected(entry.transfer)
            play.head(entry.transfer)
            play.downloads.probed(entry.transfer, picture)
            play.body(entry.transfer, 10)
            play.finished(entry.transfer)
        }
        let actions = play.downloads.takeActions()
        XCTAssert(actions.contains(.decode(a.transfer, variant: 0, .finish)))
        XCTAssert(!actions.contains(.decode(b.transfer, variant: 0, .finish)))
        play.stepped(a.transfer, .finished, header: true)
        play.expect([.end(a.subscriber, .success(variant: 0)), .forget(a.transfer)])
        // Its terminal callback has returned.
        play.downloads.memoryReleased(canvas, play.now)
        play.expect([
            .reserve(b.transfer, variant: 0, bytes: canvas), .decode(b.transfer, variant: 0, .finish),
        ])
    }

    /// Two decoders whose bodies still come have the canvases that there is room for. A whole picture waits for the end of one of
    /// them, though both would be paused for memory.
    func testAnOpenDecoderEndsBeforeAnotherGoesBeyondTheBudget() {
        var play = Play(width: 3) { $0.memoryBudget = 2 * canvas + 100 }
        let whole = play.submit("whole", .image)
        let a = play.submit("a", .with(.partial))
        let b = play.submit("b", .with(.partial))
        for entry in [whole, a, b] {
            play.connected(entry.transfer)
            play.head(entry.transfer)
            play.downloads.probed(entry.transfer, picture)
        }
        for entry in [a, b] { play.body(entry.transfer, 20) }
        play.body(whole.transfer, 50)
        play.finished(whole.transfer)
        XCTAssertEqual(reservations(play.take()), [a.transfer, b.transfer])
        for entry in [a, b] { play.stepped(entry.transfer, .fed, header: true) }
        play.skip()

        play.body(b.transfer, 20)
        let actions = play.take()
        XCTAssertTrue(actions.contains(.setPaused(b.transfer, true)), "\(actions)")
        XCTAssertFalse(actions.contains(.setPaused(a.transfer, true)), "it leads: \(actions)")
        XCTAssertEqual(reservations(actions), [])
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 2 * canvas + 110)
        play.finished(a.transfer)
        play.stepped(a.transfer, .finished, header: true)
        let atItsEnd = play.take()
        XCTAssertTrue(atItsEnd.contains(.end(a.subscriber, .success(variant: 0))), "\(atItsEnd)")
        XCTAssertEqual(reservations(atItsEnd), [], "somebody still has the picture")
        play.downloads.memoryReleased(canvas, play.now)
        XCTAssertTrue(play.take().contains(.decode(whole.transfer, variant: 0, .finish)))
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 2 * canvas + 100)
    }

    /// Its canvas stays until its transfer ends, which goes on for another: that will make room.
    func testAPictureThatNobodyWantsAnyMoreGoesBeforeAnotherGoesBeyondTheBudget() {
        var play = Play(width: 2) { $0.memoryBudget = canvas + 200 }
        let watching = play.submit("a", .with(.partial))
        let body = play.submit("a")
        let whole = play.submit("whole", .image)
        XCTAssertEqual(watching.transfer, body.transfer)
        for entry in [body, whole] {
            play.connected(entry.transfer)
            play.head(entry.transfer)
            play.downloads.probed(entry.transfer, picture)
            play.body(entry.transfer, 20)
        }
        play.cancel(watching)
        play.finished(whole.transfer)
        XCTAssertEqual(reservations(play.take()), [body.transfer])
        play.finished(body.transfer)
        let actions = play.take()
        XCTAssertTrue(actions.contains(.end(body.subscriber, .success(variant: nil))), "\(actions)")
        XCTAssertEqual(reservations(actions), [], "a worker has the canvas")
        play.downloads.memoryReleased(canvas, play.now)
        XCTAssertTrue(play.take().contains(.decode(whole.transfer, variant: 0, .finish)))
    }

    private func reservations(_ actions: [Action]) -> [TransferID] {
        actions.compactMap { if case .reserve(let id, _, _) = $0 { id } else { nil } }
    }

    /// Frames of an animation count as they come, and what comes after them waits.
    func testAnAnimationIsCountedAsItGrows() {
        var play = Play(width: 2) { $0.memoryBudget = 3 * canvas }
        let animation = play.submit("animation", .with(.partial))
        let other = play.submit("other", .image)
        for entry in [animation, other] {
            play.connected(entry.transfer)
            play.head(entry.transfer)
            play.downloads.probed(entry.transfer, picture)
        }
        play.skip()
        play.body(animation.transfer, 50)
        XCTAssertTrue(play.take().contains(.reserve(animation.transfer, variant: 0, bytes: canvas)))
        play.stepped(animation.transfer, .fed, header: true, demand: canvas)
        XCTAssertEqual(play.downloads.memoryInUse, canvas + 50, "no more than was reserved")
        play.body(animation.transfer, 50)
        play.skip()
        play.stepped(animation.transfer, .fed, demand: 3 * canvas)
        XCTAssertTrue(play.take().contains(.reserveMore(animation.transfer, variant: 0, bytes: 2 * canvas)))
        XCTAssertEqual(play.downloads.memoryInUse, 3 * canvas + 100)
        play.body(other.transfer, 50)
        play.finished(other.transfer)
        XCTAssertFalse(play.take().contains(.decode(other.transfer, variant: 0, .finish)), "there is no room")
        play.finished(animation.transfer)
        play.skip()
        play.stepped(animation.transfer, .finished, header: true, demand: 3 * canvas)
        XCTAssertTrue(play.take().contains(.end(animation.subscriber, .success(variant: 0))))
        play.downloads.memoryReleased(3 * canvas, play.now)
        XCTAssertTrue(play.take().contains(.decode(other.transfer, variant: 0, .finish)))
    }

    /// What no look at the first bytes could tell counts from when its decoder says so.
    func testWhatADecoderSaysCountsAlsoWhereNothingWasReserved() {
        var play = Play { $0.memoryBudget = 3 * canvas }
        let entry = play.submit("a", .with(.partial))
        play.connected(entry.transfer)
        play.head(entry.transfer)
        play.downloads.probed(entry.transfer, .unknown)
        play.body(entry.transfer, 50)
        play.skip()
        play.stepped(entry.transfer, .fed, header: true, demand: .max)
        XCTAssertTrue(play.take().contains(.reserveMore(entry.transfer, variant: 0, bytes: 1 << 47)))
        XCTAssertEqual(play.downloads.memoryInUse, (1 << 47) + 50)
    }

    /// Whatever was reserved for more than its canvas.
    func testAProfileCountsBesideWhatWasReserved() {
        var play = Play { $0.memoryBudget = 3 * canvas }
        let entry = play.submit("a", .with(.partial))
        play.connected(entry.transfer)
        play.head(entry.transfer)
        play.downloads.probed(entry.transfer, picture)
        play.body(entry.transfer, 50)
        play.skip()
        play.stepped(entry.transfer, .fed, header: true, beside: 1_000)
        XCTAssertTrue(play.take().contains(.reserveMore(entry.transfer, variant: 0, bytes: 1_000)))
        play.body(entry.transfer, 50)
        play.skip()
        play.stepped(entry.transfer, .fed, demand: canvas, beside: 1_000)
        XCTAssertEqual(play.downloads.memoryInUse, canvas + 1_000 + 100, "once")
        play.body(entry.transfer, 50)
        play.skip()
        play.stepped(entry.transfer, .fed, demand: 2 * canvas, beside: 1_000)
        XCTAssertEqual(play.downloads.memoryInUse, 2 * canvas + 1_000 + 150)
    }

    private func receive(_ play: inout Play, _ id: TransferID, _ count: Int, version: Int32 = 11) {
        play.connected(id)
        let head = ResponseHead(status: 200, httpVersion: version, fields: [], contentLength: nil, isEncoded: false)
        _ = play.downloads.headReceived(id, head, location: nil, play.now)
        play.body(id, count)
    }

    /// The oldest of the highest priority runs on, HTTP/2 too; nothing new starts until there is room.
    func testAFullBudgetPausesAllButOne() {
        var play = Play(width: 5) { $0.memoryBudget = 1_000 }
        let low = play.submit("low", .priority(.low))
        let first = play.submit("first")
        let second = play.submit("second")
        let stream = play.submit("stream")
        for entry in [low, first, second] { receive(&play, entry.transfer, 100) }
        receive(&play, stream.transfer, 100, version: 20)
        play.skip()
        play.body(second.transfer, 600)
        play.expect([.setPaused(low.transfer, true), .setPaused(second.transfer, true)])
        let later = play.submit("later")
        play.expect([])
        play.finished(first.transfer)
        // The next may run; 900 of 1000 are still too much for all.
        XCTAssertTrue(play.downloads.takeActions().contains(.setPaused(second.transfer, false)))
        play.finished(second.transfer)
        let actions = play.downloads.takeActions()
        XCTAssertTrue(actions.contains(.setPaused(low.transfer, false)))
        XCTAssertTrue(actions.contains(.start(later.transfer)))
    }

    /// A pause is no start: it comes at once, and what goes on again waits.
    func testBackPressureBeginsWhileStartsAreHeld() {
        var play = Play(width: 2) { $0.memoryBudget = 1_000 }
        let first = play.submit("first")
        let second = play.submit("second")
        for entry in [first, second] { receive(&play, entry.transfer, 100) }
        play.skip()
        play.downloads.holdStarts()
        play.body(second.transfer, 900)
        play.expect([.setPaused(second.transfer, true)])
        play.finished(first.transfer)
        XCTAssertFalse(play.downloads.takeActions().contains(.setPaused(second.transfer, false)))
        play.downloads.releaseStarts(play.now)
        play.expect([.setPaused(second.transfer, false)])
    }

    /// It has stood still for the background, and now does for memory: only one goes on while that is full.
    func testWhatComesBackFromTheBackgroundWaitsForMemory() {
        for isJoined in [false, true] {
            var play = Play(width: 2) { $0.memoryBudget = 1_000 }
            let continuing = SubscriberOptions.with {
                $0.decode = nil
                $0.continuesInBackground = true
            }
            let first = play.submit("first", continuing)
            let second = play.submit("second")
            for entry in [first, second] { receive(&play, entry.transfer, 100) }
            play.downloads.enterBackground(grace: nil, play.now)
            play.body(first.transfer, 900)
            play.skip()
            if isJoined { _ = play.submit("second", continuing) } else { play.downloads.enterForeground(play.now) }
            play.expect([])
            play.finished(first.transfer)
            XCTAssertTrue(play.downloads.takeActions().contains(.setPaused(second.transfer, false)))
        }
    }

    /// Who joins may have the running transfer decoded in another way, at once.
    func testBackPressureBeginsWhenAJoinedRequestOpensADecoder() {
        var play = Play(width: 2) { $0.memoryBudget = 2 * 96_000_000 + 50 }
        let watching = SubscriberOptions.with([.header, .progress, .partial]) { _ in }
        let a = play.submit("a", watching)
        play.connected(a.transfer)
        play.head(a.transfer, length: 100)
        play.downloads.probed(a.transfer, picture)
        play.body(a.transfer, 31)
        let b = play.submit("b")
        receive(&play, b.transfer, 19)
        play.skip()
        let other = SubscriberOptions.with([.header, .progress, .partial]) { $0.decode?.maximumPixels = 30_000_000 }
        let joined = play.submit("a", other)
        XCTAssertEqual(joined.transfer, a.transfer)
        let actions = play.take()
        XCTAssertTrue(actions.contains(.reserve(a.transfer, variant: 1, bytes: canvas)), "\(actions)")
        XCTAssertTrue(actions.contains(.setPaused(b.transfer, true)), "\(actions)")
    }

    /// Idle clocks stand still while we do not read.
    func testAPauseForMemoryIsNoSilenceOfTheServer() {
        var play = Play(width: 2) {
            $0.memoryBudget = 1_000
            $0.idleTimeout = 500
            $0.slowBytes = 1
        }
        let a = play.submit("a")
        let b = play.submit("b")
        receive(&play, a.transfer, 10)
        receive(&play, b.transfer, 990)
        play.skip()
        for _ in 0..<10 {
            play.pass(400)
            play.body(a.transfer, 1)
        }
        play.expect([])
        play.finished(a.transfer)
        XCTAssertTrue(play.downloads.takeActions().contains(.setPaused(b.transfer, false)))
        play.pass(499)
        play.expect([])
    }

    /// Early decoding waits for the bytes that tell the size, and for room; progress does not.
    func testEarlyDecodingWaits() {
        let watching = SubscriberOptions.with([.header, .progress, .partial]) { _ in }
        var play = Play { $0.memoryBudget = 2 * 96_000_000 }
        let a = play.submit("a", watching)
        play.connected(a.transfer)
        play.head(a.transfer, length: 100)
        play.downloads.probed(a.transfer, .undecided)
        play.body(a.transfer, 1)
        play.expect([.start(a.transfer), .emit(a.subscriber, .progress(received: 1, expected: 100))])
        play.downloads.probed(a.transfer, picture)
        play.body(a.transfer, 30)
        play.expect([
            .reserve(a.transfer, variant: 0, bytes: canvas), .decode(a.transfer, variant: 0, .feed(showing: true)),
        ])
        let b = play.submit("b", watching)
        play.connected(b.transfer)
        play.head(b.transfer, length: 100)
        play.downloads.probed(b.transfer, picture)
        play.body(b.transfer, 31)
        play.expect([.start(b.transfer), .emit(b.subscriber, .progress(received: 31, expected: 100))])
    }

    /// Nobody has looked at the bytes of a body that was only to be handed over: who decodes them waits until the engine
    /// has.
    func testALateDecoderIsCountedToo() {
        var play = Play { $0.memoryBudget = 100_000_000 }
        let a = play.submit("a", .quiet)
        play.receive(a.transfer, 10, of: 100)
        XCTAssertFalse(play.downloads.needsProbe(a.transfer))
        play.skip()
        let watching = SubscriberOptions.with([.header, .progress, .partial]) { _ in }
        let request = TransferRequest(url: testURL("https://a.example/a"))
        let b = play.downloads.submit(request, Boxed(wrappedValue: watching), play.now)
        XCTAssertEqual(b.transfer, a.transfer)
        XCTAssertTrue(play.downloads.needsProbe(a.transfer))
        XCTAssertTrue(play.downloads.awaitsLook(a.transfer))
        play.expect([], "neither a decoder before its canvas is counted, nor progress before the header")
        play.downloads.looked(a.transfer, picture, play.now)
        play.expect([
            .reserve(a.transfer, variant: 0, bytes: canvas), .decode(a.transfer, variant: 0, .feed(showing: true)),
        ])
        XCTAssertFalse(play.downloads.awaitsLook(a.transfer))
        let c = play.downloads.submit(request, Boxed(wrappedValue: .with { $0.decode = .number(1) }), play.now)
        XCTAssertFalse(play.downloads.awaitsLook(c.transfer), "the next one knows")
    }

    func testACancelledDecodeCountsUntilItsWorkerIsDone() {
        var play = Play { $0.memoryBudget = 100_000_000 }
        let a = play.submit("a", .image)
        play.connected(a.transfer)
        play.head(a.transfer)
        play.downloads.probed(a.transfer, picture)
        play.body(a.transfer, 50)
        play.finished(a.transfer)
        play.cancel(a)
        XCTAssertEqual(play.downloads.memoryInUse, canvas)
        play.downloads.memoryReleased(canvas, play.now)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        XCTAssertEqual(play.downloads.memoryPeak, canvas + 50)
    }

    /// A body that comes once a hook has answered waits for memory as any other.
    func testAnAnswerUnderPressureDoesNotUnpause() {
        var play = Play { $0.memoryBudget = 1_000 }
        let hooks = SilentHooks([.modifyResponse])
        let a = play.submit(TransferRequest(url: testURL("https://a.example/a"), hooks: hooks))
        let leader = play.submit("leader")
        play.connected(a.transfer)
        play.head(a.transfer)
        receive(&play, leader.transfer, 1_000)
        play.skip()
        play.answer(a.transfer, 1, .unchanged)
        let paused = play.take().last { if case .setPaused(a.transfer, _) = $0 { true } else { false } }
        XCTAssertEqual(paused, .setPaused(a.transfer, true))
        play.cancel(leader)
        XCTAssertTrue(play.take().contains(.setPaused(a.transfer, false)))
    }

    /// Bytes that come while a hook is asked count for the hook, and for all once it has answered.
    func testBytesThatComeDuringAQuestionPressOnceItIsAnswered() {
        var play = Play { $0.memoryBudget = 1_000 }
        let first = play.submit("first")
        let second = play.submit("second")
        for entry in [first, second] { receive(&play, entry.transfer, 10) }
        let hooks = SilentHooks([.modifyResponse])
        let a = play.submit(TransferRequest(url: testURL("https://a.example/a"), hooks: hooks))
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        play.body(a.transfer, 1_000)
        play.expect([])
        play.answer(a.transfer, 1, .unchanged)
        XCTAssertTrue(play.take().contains(.setPaused(second.transfer, true)))
    }

    /// What rests gives nothing back: where all else is paused in the background, the next begins.
    func testWhatRestsHoldsUpNobody() {
        var play = Play(width: 2) { $0.memoryBudget = 1_000 }
        let flagged = SubscriberOptions.with {
            $0.decode = nil
            $0.continuesInBackground = true
            $0.retry.count = 1
        }
        let plain = play.submit("plain")
        let a = play.submit("a", flagged)
        receive(&play, plain.transfer, 1_000)
        play.downloads.enterBackground(grace: nil, play.now)
        let next = play.submit("next", flagged)
        play.skip()
        play.failed(a.transfer, .lost)
        XCTAssertEqual(play.takeStarts(), [next.transfer])
    }

    /// A new attempt has its canvas counted anew; the old one's counts until its worker is done.
    func testARetryGivesBackWhatItHeld() {
        var play = Play { $0.memoryBudget = 3 * 96_000_000 }
        let a = play.submit(
            "a",
            .with(.partial) {
                $0.retry.count = 1; $0.retry.base = 0
            })
        for attempt in 1...2 {
            play.connected(a.transfer)
            play.head(a.transfer)
            play.downloads.probed(a.transfer, picture)
            play.skip()
            play.body(a.transfer, 50)
            XCTAssertTrue(play.take().contains(.reserve(a.transfer, variant: 0, bytes: canvas)))
            guard attempt == 1 else { break }
            play.failed(a.transfer, .lost)
            XCTAssertEqual(play.downloads.memoryInUse, canvas, "the body is gone, a worker has the canvas")
        }
        XCTAssertEqual(play.downloads.memoryInUse, 2 * canvas + 50)
        play.downloads.memoryReleased(canvas, play.now)
        XCTAssertEqual(play.downloads.memoryInUse, canvas + 50)
    }

    func testWhoPausesIsCountedOnce() {
        var play = Play { $0.memoryBudget = 1_000 }
        let entries = ["a", "b", "c"].map { play.submit($0) }
        for entry in entries { receive(&play, entry.transfer, 10) }
        play.body(entries[0].transfer, 1_000)
        XCTAssertEqual(play.downloads.pausedCount, 2)
        play.downloads.enterBackground(grace: nil, play.now)
        XCTAssertEqual(play.downloads.pausedCount, 3)
        play.cancel(entries[1])
        XCTAssertEqual(play.downloads.pausedCount, 2)
        play.downloads.enterForeground(play.now)
        XCTAssertEqual(play.downloads.pausedCount, 1)
        play.failed(entries[2].transfer, .lost)
        XCTAssertEqual(play.downloads.pausedCount, 0)
    }

    /// What a loader of the host's has reported and nobody has been given is memory, too, and is no way past a limit.
    func testWhatATransportHoldsCounts() {
        var play = Play { $0.memoryBudget = 1_000 }
        let entries = [("a", Int64(400)), ("b", 1_000)].map { path, limit in
            play.submit(path, .with { $0.maximumBodyBytes = limit })
        }
        for entry in entries { receive(&play, entry.transfer, 10) }
        let (a, b) = (entries[0].transfer, entries[1].transfer)
        play.downloads.bodyHeld(a, 300, play.now)
        XCTAssertEqual(play.downloads.memoryInUse, 320)
        play.downloads.bodyHeld(a, 0, play.now)
        play.body(a, 300)
        XCTAssertEqual(play.downloads.memoryInUse, 320)
        play.downloads.bodyHeld(b, 900, play.now)
        XCTAssertEqual(play.downloads.pausedCount, 1, "the budget is used up: one goes on")
        XCTAssertEqual(play.downloads.bodyLimit(a), 400)
        _ = play.take()
        play.downloads.bodyHeld(a, 91, play.now)
        let ends = play.take().compactMap { action -> ErrorCode? in
            guard case .end(entries[0].subscriber, .failure(let failure, _)) = action else { return nil }
            return failure.code
        }
        XCTAssertEqual(ends, [.bodyLimit])
        XCTAssertEqual(play.downloads.memoryInUse, 910)
        XCTAssertEqual(play.downloads.bodyLimit(a), .max, "it is over")
        play.downloads.bodyHeld(a, 5, play.now)
        play.failed(b, .lost)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
    }

    func testALimitOfTheBodyHoldsForWhatIsHeldOnceItsCodingsAreUndone() {
        var play = Play { $0.memoryBudget = 1_000 }
        let entry = play.submit("a", .with { $0.maximumBodyBytes = 400 })
        play.downloads.bodyHeld(entry.transfer, 423, isEncoded: true, play.now)
        XCTAssertEqual(play.downloads.memoryInUse, 423)
        play.downloads.bodyHeld(entry.transfer, 0, isEncoded: true, play.now)
        receive(&play, entry.transfer, 400)
        play.downloads.bodyHeld(entry.transfer, 23, isEncoded: true, play.now)
        XCTAssertEqual(play.downloads.memoryInUse, 423)
        XCTAssertEqual(play.downloads.bodyLimit(entry.transfer), 400, "it goes on")
        play.downloads.bodyHeld(entry.transfer, 0, isEncoded: true, play.now)
        _ = play.take()
        play.downloads.bodyHeld(entry.transfer, 23, play.now)
        let ends = play.take().compactMap { action -> ErrorCode? in
            guard case .end(entry.subscriber, .failure(let failure, _)) = action else { return nil }
            return failure.code
        }
        XCTAssertEqual(ends, [.bodyLimit], "without codings it is more than anybody takes")
    }

    /// A few bytes of a server ask for megabytes of memory to undo a coding: they are seen, and hold up nobody.
    func testWhatCodingsHoldIsSeenAndHoldsUpNobody() {
        var play = Play(width: 2) { $0.memoryBudget = 1_000 }
        let entries = ["a", "b"].map { play.submit($0, .with { $0.maximumBodyBytes = 400 }) }
        for entry in entries { receive(&play, entry.transfer, 10) }
        let (a, b) = (entries[0].transfer, entries[1].transfer)
        let later = play.submit("c", .quiet)
        play.downloads.codingsHeld(a, 900)
        play.downloads.codingsHeld(b, 800)
        XCTAssertEqual(play.downloads.memoryInUse, 1_720, "it is no part of the body, which has a limit of its own")
        XCTAssertEqual(play.downloads.pausedCount, 0)
        play.downloads.codingsHeld(a, 50)
        XCTAssertEqual(play.downloads.memoryInUse, 870)
        play.skip()
        play.finished(a)
        XCTAssertEqual(play.takeStarts(), [later.transfer])
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 820, "the codings are gone with the exchange")
        play.downloads.codingsHeld(a, 700)
        play.failed(b, .lost)
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 10, "who is over holds nothing")
        XCTAssertEqual(play.downloads.memoryPeak, 1_720)
    }
}
