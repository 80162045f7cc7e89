/// Port: turns bytes into pixels. `ImgdlCodecs` implements it.
package protocol ImageCodec: AnyObject, Sendable {
    /// A decoder that finds out by content what the bytes are.
    func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder
    /// Tells the size of a picture from its first bytes; nil where no codec can.
    func makeProbe() -> (any ImageProbe)?
}

/// One picture being decoded from pieces, whatever their size. Used by one thread at a time; never blocks.
///
/// Pieces and whole give the same pixels and the same verdict (features B7). After a method has thrown, every later
/// `feed` and `finish` throws the same failure; `salvagedImage` still answers.
package protocol ImageDecoder: AnyObject {
    /// Hands over the next bytes, valid during the call only; the decoder keeps what it cannot use yet.
    /// Throws when the picture is broken or breaks a limit; never because bytes are still missing.
    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure)

    /// No more bytes will come: the whole picture, or why there is none. A picture that ends too early is `truncated`,
    /// broken data `badImageData`; a success means every pixel is the file's. Where the body is whole a picture of which all has
    /// come but the mark of its end is shown, too, and marked (`hasIncompleteEnd`).
    func finish(_ end: BodyEnd) throws(Failure) -> DecodedImage

    /// Known as soon as its bytes are there.
    var header: ImageHeader? { get }

    /// Bytes that what was fed needs of memory, as judged before they were allocated: grows with the frames of an animation.
    /// 0: no more than the header let expect, or not known.
    var memoryDemand: Int64 { get }
    /// Bytes of the colour profile that its picture keeps, besides all that.
    var profileBytes: Int64 { get }

    /// The picture so far; nil when nothing can be shown that the last one did not show. Costs work, so it is called
    /// only when somebody wants it: at most once for each scan of a progressive JPEG.
    func partialImage() -> DecodedImage?

    /// Any thread, at any time: nobody waits for the picture any more. What runs ends as soon as it can, and every later
    /// call throws. A codec of the host's cannot be told.
    func stop()

    /// After a failure: the pixels that could be had, marked incomplete; nil when there are none.
    func salvagedImage() -> DecodedImage?
}

extension ImageDecoder {
    package func stop() {}
    package var memoryDemand: Int64 { 0 }
    package var profileBytes: Int64 { 0 }
}
