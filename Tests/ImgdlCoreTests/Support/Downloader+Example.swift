@testable import ImgdlCore

extension Downloader {
    /// Of https://a.example/`path`; events are told on the engine's thread.
    @discardableResult
    func download(
        _ path: String, _ options: SubscriberOptions, _ sink: (any EventSink)? = nil
    ) throws(Failure) -> Subscription {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: options), profile: TransferRequest.Profile(),
            recipient: Recipient(self, executor: InlineExecutor.shared, sink: sink))
        let url = try Array("https://a.example/\(path)".utf8).withUnsafeBufferPointer { (text) throws(Failure) in
            try parse(text, desk(for: nil))
        }
        var accepted: Subscription?
        try download(url, template) { accepted = $0 }
        return accepted!
    }
}
