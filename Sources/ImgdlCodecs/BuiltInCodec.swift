import ImgdlCore
package final class BuiltInCodec: ImageCodec {
    package init() {}
    package func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder { fatalError() }
}
