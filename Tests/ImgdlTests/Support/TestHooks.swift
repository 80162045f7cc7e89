import CImgdl
import Origin
import XCTest

/// Hooks as a test writes them: closures, each with the continuation to answer. The handle is released with the object.
final class TestHooks: @unchecked Sendable {
    typealias Next = OpaquePointer

    var modifyRequest: ((imgdl_outgoing, Next) -> Void)?
    var modifyResponse: ((imgdl_response, Next) -> Void)?
    var transformBody: (([UInt8], Next) -> Void)?
    var redirect: ((imgdl_response, String, Next) -> Void)?
    var authenticate: ((imgdl_response, Next) -> Void)?
    /// Counts destructor calls, beyond the life of this object.
    let destroyed = Monitor(0)

    /// Made from the closures that are set at the first use.
    private(set) lazy var handle: OpaquePointer = make()

    private final class Context {
        weak var hooks: TestHooks?
        let destroyed: Monitor<Int>

        init(_ hooks: TestHooks) {
            self.hooks = hooks
            destroyed = hooks.destroyed
        }

        static func at(_ data: UnsafeMutableRawPointer?) -> TestHooks? {
            Unmanaged<Context>.fromOpaque(data!).takeUnretainedValue().hooks
        }
    }

    private func make() -> OpaquePointer {
        var table = imgdl_hooks_table()
        table.struct_size = UInt32(MemoryLayout<imgdl_hooks_table>.stride)
        if modifyRequest != nil {
            table.modify_request = { request, next, data in Context.at(data)?.modifyRequest?(request!.pointee, next!) }
        }
        if modifyResponse != nil {
            table.modify_response = { response, next, data in
                Context.at(data)?.modifyResponse?(response!.pointee, next!)
            }
        }
        if transformBody != nil {
            table.transform_body = { body, next, data in
                let bytes = UnsafeRawBufferPointer(start: imgdl_data_bytes(body), count: imgdl_data_length(body))
                Context.at(data)?.transformBody?([UInt8](bytes), next!)
            }
        }
        if redirect != nil {
            table.redirect = { response, url, next, data in
                Context.at(data)?.redirect?(response!.pointee, String(cString: url!), next!)
            }
        }
        if authenticate != nil {
            table.authenticate = { challenge, next, data in Context.at(data)?.authenticate?(challenge!.pointee, next!) }
        }
        table.user_data = Unmanaged.passRetained(Context(self)).toOpaque()
        table.destructor = { data in
            let context = Unmanaged<Context>.fromOpaque(data!).takeRetainedValue()
            context.destroyed.change { $0 += 1 }
        }
        var hooks: OpaquePointer?
        XCTAssertEqual(imgdl_hooks_create(&table, &hooks), 0, String(cString: imgdl_last_error()))
        return hooks!
    }

    func release() { imgdl_hooks_release(handle) }
}

/// Calls with an imgdl_outgoing made of what is given; the rest stays as it was.
func withOutgoing(
    url: String? = nil, method: String? = nil, headers: [(String, String)]? = nil, body: [UInt8]? = nil,
    _ use: (UnsafePointer<imgdl_outgoing>) -> Int32
) -> Int32 {
    var outgoing = imgdl_outgoing()
    imgdl_outgoing_init(&outgoing, MemoryLayout<imgdl_outgoing>.stride)
    let texts = [url, method].map { $0.map { strdup($0)! } }
    let fields = (headers ?? []).map { (strdup($0.0)!, strdup($0.1)!) }
    defer {
        for text in texts { free(text) }
        for field in fields { free(field.0); free(field.1) }
    }
    outgoing.url = texts[0].map { UnsafePointer($0) }
    outgoing.method = texts[1].map { UnsafePointer($0) }
    let list = fields.map { imgdl_header(name: $0.0, value: $0.1) }
    return list.withUnsafeBufferPointer { list in
        if headers != nil {
            outgoing.headers = list.baseAddress
            outgoing.header_count = list.count
        }
        return (body ?? []).withUnsafeBytes { bytes in
            if body != nil {
                outgoing.body = bytes.baseAddress
                outgoing.body_length = bytes.count
            }
            return use(&outgoing)
        }
    }
}
