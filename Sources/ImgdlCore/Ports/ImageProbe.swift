/// Looks at the first bytes of a body for how large the picture is, before anything is allocated for it (features B20).
/// Cheap: the engine's thread calls it for each piece until it is decided.
package protocol ImageProbe {
    /// The next bytes, in pieces of any size; `undecided` asks for more.
    mutating func feed(_ bytes: UnsafeRawBufferPointer) -> PictureSize
}

extension ImageCodec {
    /// A codec that cannot tell: nothing is reserved for its pictures.
    package func makeProbe() -> (any ImageProbe)? { nil }
}
