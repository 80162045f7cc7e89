import CImgdl
import ImgdlCore

/// A C callback with its user_data, as the library's side of a subscription sees it.
///
/// Holds the library's own reference to the token until the end, so that every event carries a living handle.
final class CallbackSink: EventSink, @unchecked Sendable {
    private let callback: imgdl_event_callback
    private let destructor: imgdl_destructor?
    private let userData: UnsafeMutableRawPointer?
    private let showsFullURLs: Bool
    /// Set before the first event.
    var token: OpaquePointer?

    init(
        _ callback: @escaping imgdl_event_callback, _ destructor: imgdl_destructor?,
        _ userData: UnsafeMutableRawPointer?, showsFullURLs: Bool
    ) {
        self.showsFullURLs = showsFullURLs
        self.callback = callback
        self.destructor = destructor
        self.userData = userData
    }

    func close() {
        if let destructor { Thread.resting { destructor(userData) } }
        _ = HandleTable.shared.release(token, .token)
    }

    func deliver(_ event: DownloadEvent) {
        switch event {
        case .started:
            send(IMGDL_EVENT_STARTED, Progress()) { _ in }
        case .response(let response, let progress):
            ResponseStruct(response, showsFullURLs: showsFullURLs).withPointer { pointer in
                send(IMGDL_EVENT_RESPONSE, progress) {
                    $0.response = pointer
                    $0.http_status = response.head.status
                }
            }
        case .header(let header, let progress):
            withUnsafePointer(to: imageInfo(header)) { info in
                send(IMGDL_EVENT_HEADER, progress) { $0.info = info }
            }
        case .progress(let progress):
            send(IMGDL_EVENT_PROGRESS, progress) { _ in }
        case .partial(let image, let progress):
            let handle = ImageObject.handle(image)
            send(IMGDL_EVENT_PARTIAL, progress) { $0.image = handle }
            _ = HandleTable.shared.release(handle, .image)
        case .terminal(let result): deliverTerminal(result)
        }
    }

    private func deliverTerminal(_ result: DownloadResult) {
        let image = !result.hasImage ? nil : result.image.flatMap { ImageObject.handle($0) }
        let data = result.body.flatMap { DataObject.handle($0) }
        withMetricsStruct(result.metrics) { metrics in
            result.message.withCString { message in
                result.contentType.withCString { contentType in
                    result.preview.withUnsafeBytes { preview in
                        send(IMGDL_EVENT_TERMINAL, result.progress) {
                            $0.code = result.code.rawValue
                            $0.http_status = result.status
                            $0.message = message
                            $0.image = image
                            $0.data = data
                            $0.content_type = contentType
                            // An empty array has an address, too.
                            $0.preview = preview.isEmpty ? nil : preview.baseAddress
                            $0.preview_length = preview.count
                            $0.metrics = metrics
                        }
                    }
                }
            }
        }
        if image != nil { _ = HandleTable.shared.release(image, .image) }
        if data != nil { _ = HandleTable.shared.release(data, .data) }
    }

    private func send(_ kind: some BinaryInteger, _ progress: Progress, _ fill: (inout imgdl_event) -> Void) {
        var event = imgdl_event()
        event.struct_size = UInt32(MemoryLayout<imgdl_event>.stride)
        event.kind = UInt32(kind)
        event.token = token
        event.received = progress.received
        event.expected = progress.expected
        fill(&event)
        withUnsafePointer(to: event) { event in Thread.resting { callback(event, userData) } }
    }
}
