import CImgdl
import Glibc
import ImgdlCore

/// An imgdl_response and the memory that it points to.
final class ResponseStruct {
    private let response: Response
    private var strings: [UnsafeMutablePointer<CChar>?] = []
    private let headers: UnsafeMutablePointer<imgdl_header>
    private let url: UnsafeMutablePointer<CChar>?
    private let storage: UnsafeMutablePointer<imgdl_response>

    init(_ response: Response) {
        self.response = response
        let fields = response.head.fields
        headers = .allocate(capacity: max(fields.count, 1))
        url = strdup(response.url.canonical)
        storage = .allocate(capacity: 1)
        for (index, field) in fields.enumerated() {
            let name = strdup(field.name)
            let value = strdup(field.value)
            strings.append(name)
            strings.append(value)
            headers[index] = imgdl_header(name: name, value: value)
        }
        storage.initialize(
            to: imgdl_response(
                struct_size: UInt32(MemoryLayout<imgdl_response>.stride), status: response.head.status,
                http_version: response.head.httpVersion, redirect_count: UInt32(clamping: response.hops.count),
                content_length: response.head.contentLength ?? -1, url: url, headers: headers, header_count: fields.count, hops: nil, content_type: nil))
    }

    deinit {
        for string in strings { free(string) }
        free(url)
        headers.deallocate()
        storage.deallocate()
    }

    /// Valid while this object lives.
    var pointer: UnsafePointer<imgdl_response> { UnsafePointer(storage) }

    func withPointer(_ body: (UnsafePointer<imgdl_response>) -> Void) {
        withExtendedLifetime(self) { body(pointer) }
    }
}
