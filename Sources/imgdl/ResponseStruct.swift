import CImgdl
import Glibc
import ImgdlCore

/// An imgdl_response and the memory that it points to.
final class ResponseStruct {
    private let headers: HeaderArray
    private let url: UnsafeMutablePointer<CChar>?
    private let contentType: UnsafeMutablePointer<CChar>?
    private let hops: UnsafeMutableBufferPointer<imgdl_hop>
    private let storage: UnsafeMutablePointer<imgdl_response>

    /// Without full URLs the values of their queries are left out: they sign and authorize (DESIGN section 2, promise
    /// 8).
    init(_ response: Response, showsFullURLs: Bool) {
        let text = { (url: ParsedURL) in strdup(showsFullURLs ? url.canonical : url.redacted) }
        headers = HeaderArray(response.head.fields)
        url = text(response.url)
        contentType = strdup(PrintableText.escaped(response.head.mediaType))
        hops = .allocate(capacity: response.hops.count)
        for (index, hop) in response.hops.enumerated() {
            hops.initializeElement(at: index, to: imgdl_hop(url: text(hop.url), status: hop.status, reserved: 0))
        }
        storage = .allocate(capacity: 1)
        storage.initialize(
            to: imgdl_response(
                struct_size: UInt32(MemoryLayout<imgdl_response>.stride), status: response.head.status,
                http_version: response.head.httpVersion, redirect_count: UInt32(clamping: response.hops.count),
                content_length: response.head.contentLength ?? -1, url: url, headers: headers.pointer,
                header_count: headers.count, hops: hops.baseAddress, content_type: contentType,
                cache_outcome: response.head.outcome.rawValue, reserved: 0))
    }

    deinit {
        for hop in hops { free(UnsafeMutablePointer(mutating: hop.url)) }
        hops.deallocate()
        free(url)
        free(contentType)
        storage.deallocate()
    }

    /// Valid while this object lives.
    var pointer: UnsafePointer<imgdl_response> { UnsafePointer(storage) }

    func withPointer<Result>(_ body: (UnsafePointer<imgdl_response>) -> Result) -> Result {
        withExtendedLifetime(self) { body(pointer) }
    }
}
