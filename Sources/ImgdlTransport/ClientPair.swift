import CCurl
import ImgdlCore

/// A client's certificate and its key, with the password that opens it. They are tried once, however many requests name
/// them: to open a key takes a millisecond and more.
struct ClientPair {
    let certificate: FileContents
    /// nil: in the certificate's file.
    let key: FileContents?
    let password: String?

    /// Pairs are told from one another by this, which does not have the password in it.
    struct Mark: Hashable {
        fileprivate let certificate: [UInt8]
        fileprivate let key: [UInt8]
        fileprivate let password: Int
    }

    /// By bytes: of two texts that are equal in Unicode's eyes one may open the key.
    var mark: Mark {
        var hasher = Hasher()
        var text = password ?? ""
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        return Mark(
            certificate: certificate.digest, key: (key ?? certificate).digest, password: hasher.finalize())
    }

    var finding: ccurl_pair_finding {
        FileDigest.finding(of: mark) {
            let (certificate, key) = (certificate.bytes, (key ?? certificate).bytes)
            return (password ?? "").withCString { password in
                ccurl_check_pair(certificate.baseAddress, certificate.count, key.baseAddress, key.count, password)
            }
        }
    }
}
