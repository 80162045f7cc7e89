import CImgdl
import Glibc
import ImgdlCore

/// Header fields as an array of imgdl_header, with the strings that it points to.
final class HeaderArray {
    private let headers: UnsafeMutablePointer<imgdl_header>
    let count: Int

    init(_ fields: [HeaderField]) {
        headers = .allocate(capacity: max(fields.count, 1))
        count = fields.count
        for (index, field) in fields.enumerated() {
            (headers + index).initialize(to: imgdl_header(name: strdup(field.name), value: strdup(field.value)))
        }
    }

    deinit {
        for header in UnsafeBufferPointer(start: headers, count: count) {
            free(UnsafeMutablePointer(mutating: header.name))
            free(UnsafeMutablePointer(mutating: header.value))
        }
        headers.deallocate()
    }

    /// Valid while this object lives.
    var pointer: UnsafePointer<imgdl_header> { UnsafePointer(headers) }
}
