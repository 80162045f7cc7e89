import CNghttp2
import Glibc
import Origin

// What nghttp2 tells about a connection, passed on to its `HTTP2Session`, which is the user data of every call.

func makeNghttp2Session(for owner: HTTP2Session) -> OpaquePointer? {
    var callbacks: OpaquePointer?
    guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
    defer { nghttp2_session_callbacks_del(callbacks) }

    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, owner in
        guard let frame, let session = HTTP2Session.from(owner) else { return 0 }
        guard frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
        let id = frame.pointee.hd.stream_id
        var request = Request(method: "", target: "", version: "HTTP/2", headers: [:])
        request.connection = session.connection.number
        request.stream = id
        session.streams[id] = HTTP2Session.Stream(request)
        session.connection.journal.streamOpened(id, on: session.connection.number)
        if UInt32(frame.pointee.hd.flags) & NGHTTP2_FLAG_PRIORITY.rawValue != 0 {
            session.connection.journal.streamWeighed(
                id, on: session.connection.number, weight: frame.pointee.headers.pri_spec.weight)
        }
        return 0
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
        _, frame, name, nameLength, value, valueLength, _, owner in
        guard let frame, let stream = HTTP2Session.from(owner)?.streams[frame.pointee.hd.stream_id] else { return 0 }
        stream.request.headers.add(
            String(decoding: UnsafeBufferPointer(start: name, count: nameLength), as: UTF8.self),
            String(decoding: UnsafeBufferPointer(start: value, count: valueLength), as: UTF8.self))
        return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, bytes, count, owner in
        HTTP2Session.from(owner)?.streams[id]?.request.body += UnsafeBufferPointer(start: bytes, count: count)
        return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, owner in
        guard let frame, let session = HTTP2Session.from(owner) else { return 0 }
        let head = frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
            guard UInt32(head.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 else { break }
            session.streams[head.stream_id]?.request.complete()
            session.requestIsComplete(head.stream_id)
        case NGHTTP2_PRIORITY.rawValue:
            session.connection.journal.streamWeighed(
                head.stream_id, on: session.connection.number, weight: frame.pointee.priority.pri_spec.weight)
        case NGHTTP2_RST_STREAM.rawValue:
            session.connection.journal.streamClosed(
                head.stream_id, on: session.connection.number, resetByClient: frame.pointee.rst_stream.error_code)
        default: break
        }
        return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, _, owner in
        HTTP2Session.from(owner)?.streamIsClosed(id)
        return 0
    }

    var session: OpaquePointer?
    nghttp2_session_server_new(&session, callbacks, Unmanaged.passUnretained(owner).toOpaque())
    return session
}

/// Gives nghttp2 the body bytes that a script has sent so far.
let provideBody: nghttp2_data_source_read_callback = { _, id, buffer, capacity, flags, _, owner in
    guard let session = HTTP2Session.from(owner), let stream = session.streams[id], let buffer, let flags
    else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
    let count = min(capacity, stream.unsent.count - stream.start)
    if count == 0 && !stream.hasEnded {
        stream.isDeferred = true
        return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    }
    stream.unsent.withUnsafeBufferPointer { unsent in
        if let first = unsent.baseAddress { memcpy(buffer, first + stream.start, count) }
    }
    stream.start += count
    if stream.start == stream.unsent.count {
        stream.unsent = []
        stream.start = 0
    }
    if stream.hasEnded && stream.unsent.isEmpty {
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        // Before the client can see the end.
        session.connection.journal.finished(stream.request)
    }
    return count
}

extension HTTP2Session {
    fileprivate static func from(_ pointer: UnsafeMutableRawPointer?) -> HTTP2Session? {
        pointer.map { Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }
}

extension Request {
    /// Turns the pseudo-header fields into what HTTP/1 has in the request line. `:authority` becomes Host.
    fileprivate mutating func complete() {
        var plain = Headers()
        for field in headers {
            switch field.name {
            case ":authority": plain.add("host", field.value)
            case ":method", ":path", ":scheme": break
            default: plain.add(field.name, field.value)
            }
        }
        let body = body
        let (connection, stream) = (connection, stream)
        self = Request(
            method: headers[":method"] ?? "", target: headers[":path"] ?? "", version: version, headers: plain)
        self.body = body
        self.connection = connection
        self.stream = stream
    }
}

/// The fields as nghttp2 wants them, for the length of the call; it copies them.
func withNameValues(_ headers: Headers, _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Void) {
    let bytes = headers.map { (name: Array($0.name.utf8), value: Array($0.value.utf8)) }
    var storage = bytes.flatMap { $0.name + $0.value }
    storage.withUnsafeMutableBufferPointer { storage in
        var fields: [nghttp2_nv] = []
        var next = storage.baseAddress
        for (name, value) in bytes {
            var field = nghttp2_nv()
            field.name = next
            field.namelen = name.count
            field.value = next.map { $0 + name.count }
            field.valuelen = value.count
            field.flags = UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
            next = next.map { $0 + name.count + value.count }
            fields.append(field)
        }
        fields.withUnsafeBufferPointer(body)
    }
}
