import CImgdl
import ImgdlCore

@_cdecl("imgdl_transport_register") @implementation
public func imgdl_transport_register(
    _ handle: OpaquePointer?, _ scheme: UnsafePointer<CChar>?, _ table: UnsafePointer<imgdl_transport_table>?
) -> imgdl_status {
    call { () throws(Failure) in
        let downloader = try object(handle, .downloader, as: Downloader.self)
        guard let scheme = string(scheme), let canonical = SchemeName.canonical(scheme) else {
            throw Failure(.invalidArgument, "scheme is NULL, or no scheme by RFC 3986 section 3.1")
        }
        var loader: HostLoader?
        if table != nil { loader = try HostLoader(try imgdl_transport_table.read(table)) }
        do throws(Failure) {
            try downloader.setLoader(loader, for: canonical)
        } catch {
            // Nothing of a table is called that was not taken.
            loader?.disown()
            throw error
        }
    }
}

private func receiver(_ handle: OpaquePointer?) throws(Failure) -> any LoadReceiver {
    try object(handle, .transfer, as: TransferObject.self).receiver
}

@_cdecl("imgdl_transfer_response") @implementation
public func imgdl_transfer_response(
    _ transfer: OpaquePointer?, _ status: Int32, _ headers: UnsafePointer<imgdl_header>?, _ count: Int
) -> imgdl_status {
    call { () throws(Failure) in
        let receiver = try receiver(transfer)
        guard (200...999).contains(status) else {
            throw Failure(.invalidArgument, "\(status) is not the status of a final response")
        }
        let fields = try headerFields(headers, count).map { HeaderField($0.name, $0.value ?? "") }
        let encoding = fields.first(named: "Content-Encoding").map { !equalIgnoringCase($0, "identity") } ?? false
        try receiver.receive(
            ResponseHead(
                status: status, httpVersion: 0, fields: fields, contentLength: try contentLength(fields),
                isEncoded: encoding))
    }
}

/// nil where there is none.
private func contentLength(_ fields: [HeaderField]) throws(Failure) -> Int64? {
    guard let text = fields.first(named: "Content-Length") else { return nil }
    guard let length = CheckedNumber(digits: text)?.length else {
        throw Failure(.invalidHeader, "Content-Length is not a number of bytes that can be")
    }
    return length
}

@_cdecl("imgdl_transfer_body") @implementation
public func imgdl_transfer_body(_ transfer: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ length: Int) -> imgdl_status {
    call { () throws(Failure) in
        let receiver = try receiver(transfer)
        try receiver.receive(Array(try checkedCount(length, bytes, "bytes")), taken: nil)
    }
}

@_cdecl("imgdl_transfer_end") @implementation
public func imgdl_transfer_end(
    _ transfer: OpaquePointer?, _ code: imgdl_status, _ message: UnsafePointer<CChar>?
) -> imgdl_status {
    call { () throws(Failure) in
        let receiver = try receiver(transfer)
        guard let error = ErrorCode(rawValue: code) else { throw Failure(.invalidArgument, "\(code) is no error code") }
        if error == .ok { return try receiver.end(nil) }
        guard message == nil || string(message) != nil else { throw Failure(.invalidArgument, "message is not UTF-8") }
        try receiver.end(Failure(error, string(message) ?? "\(error.sentence)"))
    }
}

@_cdecl("imgdl_transfer_release") @implementation
public func imgdl_transfer_release(_ transfer: OpaquePointer?) {
    inLibrary {
        guard let released = HandleTable.shared.release(transfer, .transfer) as? TransferObject else { return }
        // Without effect where the end was reported.
        try? released.receiver.end(Failure(.connectionLost, "its loader gave the transfer back without an end"))
    }
}
