import CImgdl
import Glibc
import ImgdlCore

/// An imgdl_outgoing and the memory that it points to.
final class OutgoingStruct {
    private let request: OutgoingRequest
    private let url: UnsafeMutablePointer<CChar>?
    private let method: UnsafeMutablePointer<CChar>?
    private let headers: UnsafeMutablePointer<imgdl_header>

    init(_ request: OutgoingRequest) {
        self.request = request
        url = strdup(request.url.canonical)
        method = strdup(request.method)
        headers = .allocate(capacity: max(request.fields.count, 1))
        for (index, field) in request.fields.enumerated() {
            headers[index] = imgdl_header(name: strdup(field.name), value: strdup(field.value))
        }
    }

    deinit {
        free(url)
        free(method)
        for header in UnsafeBufferPointer(start: headers, count: request.fields.count) {
            free(UnsafeMutablePointer(mutating: header.name))
            free(UnsafeMutablePointer(mutating: header.value))
        }
        headers.deallocate()
    }

    /// Valid inside `body`.
    func withPointer<Result>(_ body: (UnsafePointer<imgdl_outgoing>) -> Result) -> Result {
        (request.body ?? []).withUnsafeBytes { bytes in
            var outgoing = imgdl_outgoing()
            outgoing.struct_size = UInt32(MemoryLayout<imgdl_outgoing>.stride)
            outgoing.url = UnsafePointer(url)
            outgoing.method = UnsafePointer(method)
            outgoing.headers = UnsafePointer(headers)
            outgoing.header_count = request.fields.count
            outgoing.body = request.body == nil ? nil : bytes.baseAddress
            outgoing.body_length = bytes.count
            return withExtendedLifetime(self) { withUnsafePointer(to: outgoing, body) }
        }
    }
}
