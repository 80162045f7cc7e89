/// Whom a request trusts and as whom it appears. A connection made under one set of options never serves a request with
/// another (features B17).
package struct TLSOptions: Hashable, Sendable {
    /// A file of certificate authorities in PEM; nil: the transport's.
    @ExactOptionalText package var certificateAuthorities: String?
    /// Files in PEM; without a key file the key is in the certificate's.
    @ExactOptionalText package var clientCertificate: String?
    @ExactOptionalText package var clientKey: String?
    @ExactOptionalText package var clientKeyPassword: String?
    /// "sha256//BASE64" of the server's public key, several with semicolons between them.
    @ExactOptionalText package var pinnedPublicKey: String?
    /// Contents of the files when the request was made: another certificate under the same name is another one's.
    package var authorities: FileContents?
    package var certificate: FileContents?
    package var key: FileContents?
    /// Reason why what is named here cannot be used, in words: nothing is sent then, nor answered from a cache. As far
    /// as it shows when the files are read; nil: it can, or they have not been read.
    package var unusable: String?
    /// Any certificate of any name will do (features O6).
    package var allowsInvalidCertificates = false

    package init() {}

    /// As whom it appears is for one origin alone.
    package mutating func forgetClient() {
        clientCertificate = nil
        clientKey = nil
        clientKeyPassword = nil
        certificate = nil
        key = nil
    }
}
