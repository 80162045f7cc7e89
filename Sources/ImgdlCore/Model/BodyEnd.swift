/// How sure it is that a body ends where its bytes do.
package enum BodyEnd: Equatable, Sendable {
    /// As long as was announced: by Content-Length, by a last chunk or END_STREAM, by a coding's own end; or not transferred.
    case whole
    /// It may have been cut: nothing but its connection's end told that it was over.
    case closing
}
