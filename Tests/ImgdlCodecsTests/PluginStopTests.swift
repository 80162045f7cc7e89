import Synchronization
import XCTest

@testable import ImgdlCodecs
@testable import ImgdlCore

/// Nobody waits for the picture any more: no function of a codec of the host's is called again but its end.
final class PluginStopTests: XCTestCase {
    private final class Plugin: CodecPlugin {
        let calls = Atomic<Int>(0)

        func canDecode(_ prefix: UnsafeRawBufferPointer) -> Bool? {
            calls.add(1, ordering: .relaxed)
            return true
        }

        func makeDecoder(_ options: DecodeOptions) throws(Failure) -> any ImageDecoder {
            calls.add(1, ordering: .relaxed)
            return Decoder(self)
        }
    }

    private final class Decoder: ImageDecoder {
        let plugin: Plugin
        init(_ plugin: Plugin) { self.plugin = plugin }

        private func count() { plugin.calls.add(1, ordering: .relaxed) }

        var header: ImageHeader? { nil }
        func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) { count() }
        func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage {
            count()
            throw Failure(.truncated, "")
        }
        func partialImage() -> DecodedImage? {
            count()
            return nil
        }
        func salvagedImage() -> DecodedImage? {
            count()
            return nil
        }
    }

    private func feed(_ decoder: any ImageDecoder, _ count: Int) -> ErrorCode? {
        [UInt8](repeating: 1, count: count).withUnsafeBytes { bytes in
            do throws(Failure) {
                try decoder.feed(bytes)
                return nil
            } catch { return error.code }
        }
    }

    private func finish(_ decoder: any ImageDecoder) -> ErrorCode? {
        do throws(Failure) {
            _ = try decoder.finish(.whole)
            return nil
        } catch { return error.code }
    }

    func testNothingOfItIsCalledAfterTheStop() {
        for fed in [0, 100] {
            let (plugin, codec) = (Plugin(), PluggableCodec())
            _ = codec.registry.add(plugin)
            let decoder = codec.makeDecoder(DecodeOptions())
            if fed > 0 { XCTAssertNil(feed(decoder, fed)) }
            let before = plugin.calls.load(ordering: .relaxed)
            XCTAssertEqual(before > 0, fed > 0, "it is the one that decodes")
            decoder.stop()
            XCTAssertNil(decoder.partialImage())
            XCTAssertEqual(feed(decoder, 100), .cancelled)
            XCTAssertEqual(finish(decoder), .cancelled)
            XCTAssertNil(decoder.salvagedImage())
            XCTAssertEqual(plugin.calls.load(ordering: .relaxed), before)
        }
    }
}
