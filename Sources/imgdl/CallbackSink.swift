import CImgdl
import ImgdlCore

/// A C callback as the library's side of subscriptions sees it; all that ask in the same way have one in common.
///
/// The library has a reference of its own to a subscription's token until the end, so that every event carries a living
/// handle.
final class CallbackSink: EventSink {
    private let callback: imgdl_event_callback
    private let destructor: imgdl_destructor?
    private let showsFullURLs: Bool

    init(_ callback: @escaping imgdl_event_callback, _ destructor: imgdl_destructor?, showsFullURLs: Bool) {
        self.showsFullURLs = showsFullURLs
        self.callback = callback
        self.destructor = destructor
    }

    func close(_ subscription: Subscription) {
        dispose(destructor, subscription.userData)
        _ = HandleTable.shared.release(subscription.handle, .token)
    }

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool {
        switch event {
        case .started:
            return send(IMGDL_EVENT_STARTED, Progress(), to: subscription) { _ in }
        case .response(let response, let progress):
            return ResponseStruct(response, showsFullURLs: showsFullURLs).withPointer { pointer in
                send(IMGDL_EVENT_RESPONSE, progress, to: subscription) {
                    $0.response = pointer
                    $0.http_status = response.head.status
                }
            }
        case .header(let header, let progress):
            return withUnsafePointer(to: imageInfo(header)) { info in
                send(IMGDL_EVENT_HEADER, progress, to: subscription) { $0.info = info }
            }
        case .progress(let progress):
            return send(IMGDL_EVENT_PROGRESS, progress, to: subscription) { _ in }
        case .partial(let image, let progress):
            let handle = ImageObject.handle(image)
            defer { _ = HandleTable.shared.release(handle, .image) }
            return send(IMGDL_EVENT_PARTIAL, progress, to: subscription) { $0.image = handle }
        case .step: preconditionFailure("a request has no steps")
        }
    }

    func deliver(_ result: DownloadResult, of subscription: Subscription) -> Bool {
        let image = !result.hasImage ? nil : result.image.flatMap { ImageObject.handle($0) }
        let data = dataHandle(result.body)
        let isTold = withMetricsStruct(result.metrics) { metrics in
            result.message.withCString { message in
                result.contentType.withCString { contentType in
                    result.preview.withUnsafeBytes { preview in
                        send(IMGDL_EVENT_TERMINAL, result.progress, to: subscription) {
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
        return isTold
    }

    private func send(
        _ kind: some BinaryInteger, _ progress: Progress, to subscription: Subscription,
        _ fill: (inout imgdl_event) -> Void
    ) -> Bool {
        var event = imgdl_event()
        event.struct_size = UInt32(MemoryLayout<imgdl_event>.stride)
        event.kind = UInt32(kind)
        event.token = subscription.handle
        event.received = progress.received
        event.expected = progress.expected
        fill(&event)
        return withUnsafePointer(to: event) { event in HostCode.run { callback(event, subscription.userData) } }
    }
}
